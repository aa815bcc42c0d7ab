"""Adapters and their queue depths for real: a guest of a lab for each variant of a scenario, under load one by one.

Under software emulation a guest's own rates say nothing; how they change with the depth does, where the storage below
takes long enough for every request. So every guest has a disk of that latency, and what is compared is each variant
beside the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from leadline.app.checking_results import NAN, Check, CheckPlan, Row, scenario_of
from leadline.app.lab import LabResult, plan_lab, run_lab
from leadline.app.lab_results import rate_of
from leadline.app.simulating import Planned, Simulated
from leadline.core.errors import UsageError
from leadline.core.scenario import Variant
from leadline.core.workload import adjusted
from leadline.lab.specification import Adapter, Disk, Guest, Lab, Limits, Load
from leadline.scenarios.storage_path import StoragePath, Vm
from leadline.stores.runs import RunStore

SIZE_BYTES = 64 * 1024**2
MEMORY_BYTES = 448 * 1024**2
WARM_UP_S = 2.0
SAME_PCT = 5.0  # Judgement: rates nearer than that have no order
# Adapters whose driver does not let a disk's depth be changed later. Source: Linux, sym53c8xx_2, parameter cmd_per_lun.
_BY_MODULE = {"lsi": "cmd_per_lun={}"}
Said = Callable[[str], None]
Told = Callable[[float, int, int], None]


def plan_guests(planned: Planned, seconds: float) -> CheckPlan:
    """What booting the variants of a scenario as guests will do.

    Raises:
        UsageError: a scenario has no adapters everywhere, or copies, or a device of changing latency.
        ToolError: QEMU or a kernel is missing, or memory does not suffice.
    """
    guests = [
        _guest(f"v{index}-{number}", own, vm, seconds)
        for index, own in enumerate(planned.variants)
        for number, vm in enumerate(scenario_of(own).vms)
    ]
    lab = Lab(name="check", question=f"{planned.scenario.name}: adapters and depths", guests=tuple(guests))
    made = plan_lab(lab)
    words = (
        f"{len(guests)} guests with the adapters of the scenario, loaded one after the other for {seconds:g} s",
        f"by {made.accelerator.name}: {made.accelerator.reason}",
        "the guests live in a scratch folder that is removed at the end; no device is touched",
    )
    notes = ["each variant is compared with the first one: a guest's own rates are those of the emulation"]
    if any(len(scenario_of(own).vms) > 1 for own in planned.variants):
        notes.append("guests are loaded one after the other: what VMs do to each other is not checked")
    if len({host.queue_depth for own in planned.variants for host in scenario_of(own).hosts}) > 1:
        notes.append("the host's queue is not made: only adapters and their depths are")
    return CheckPlan(planned, seconds, words, tuple(notes), made.expected_s, made)


def _guest(name: str, variant: Variant, vm: Vm, seconds: float) -> Guest:
    scenario = scenario_of(variant)
    service = _device(scenario, vm)
    if vm.adapter is None or vm.workload is None or vm.disks or vm.count > 1 or service is None:
        raise UsageError(
            f"--check-real: VM {vm.name}",
            found="a VM that cannot be made as a guest",
            expected="one VM with an adapter, a workload and one disk, on a device whose service is a constant",
            advice="Leave adapter out to check limits and copies on the block layer.",
        )
    depth = vm.depth
    disk = Disk(
        name="data",
        adapter="scsi0",
        size=SIZE_BYTES,
        null_latency=service,
        queue_depth=None if vm.adapter in _BY_MODULE else vm.adapter_depth,
        limits=None if vm.iops_limit is None else Limits(iops=round(vm.iops_limit), iops_size=32 * 1024),
    )
    workload = adjusted(vm.workload, size=SIZE_BYTES, seconds=seconds, rounds=1, warm_up=WARM_UP_S)
    return Guest(
        name=name,
        memory=MEMORY_BYTES,
        adapters=(Adapter(name="scsi0", type=vm.adapter, module_options=_BY_MODULE.get(vm.adapter, "").format(depth)),),
        disks=(disk,),
        load=Load(workload={**workload.plain(), "name": "check"}, disk="data"),
    )


def _device(scenario: StoragePath, vm: Vm) -> float | None:
    """Seconds of the device's service where it is a constant."""
    names = [device.name for device in scenario.devices]
    device = scenario.devices[0 if vm.device is None else names.index(vm.device)]
    draw = device.service
    return draw.mean if draw is not None and draw.kind == "constant" and device.write_service is None else None


def check_in_guests(made: CheckPlan, found: Sequence[Simulated], store: RunStore, *, say: Said, told: Told) -> Check:
    """Boot, load, compare.

    Raises:
        ToolError: a guest does not start, or its load fails.
        KeyboardInterrupt: passed on after the guests were ended and removed.
    """
    if made.guests is None:
        return Check("lab guests", (), (), (), made.notes)
    result = run_lab(made.guests, store, say=say, done=lambda number, whole: told(number / whole, number, whole))
    runs = tuple(load.run.id for load in result.loads if load.run is not None)
    rows = _rows(made, found, result)
    notes = [*made.notes, *result.notes, *(f"{load.guest}: {load.error}" for load in result.loads if load.error)]
    notes += _order(rows)
    return Check(f"lab guests, {result.accelerator.name}", tuple(rows), runs, (), tuple(notes))


def _rows(made: CheckPlan, found: Sequence[Simulated], result: LabResult) -> list[Row]:
    """Operations per second of each variant, as a multiple of the first one's."""
    rows: list[Row] = []
    rates = {load.guest: rate_of(load.run) for load in result.loads if load.run is not None}
    for index, own in enumerate(found):
        for number, vm in enumerate(scenario_of(made.planned.variants[index]).vms):
            first = found[0].outcome.measure(vm.name, "iops").value
            now = own.outcome.measure(vm.name, "iops").value
            real_first, real = rates.get(f"v0-{number}", NAN), rates.get(f"v{index}-{number}", NAN)
            rows.append(Row(own.variant.label, vm.name, "iops", "per_s", now, real))
            if index:
                rows.append(Row(own.variant.label, vm.name, "iops_ratio", "", now / first, real / real_first))
    return rows


def _order(rows: Sequence[Row]) -> list[str]:
    """Whether variants stand in the same order, simulated and measured; those near each other have none."""
    found = []
    for entity in dict.fromkeys(row.entity for row in rows):
        own = [r for r in rows if (r.entity, r.measure) == (entity, "iops") and isfinite(r.distance_pct)]
        pairs = [(one, other) for n, one in enumerate(own) for other in own[n + 1 :]]
        apart = [pair for pair in pairs if abs(pair[1].simulated / pair[0].simulated - 1.0) * 100.0 > SAME_PCT]
        kept = sum((a.simulated < b.simulated) == (a.measured < b.measured) for a, b in apart)
        if apart:
            found.append(f"{entity}: {kept} of {len(apart)} pairs of variants stand in the same order in both")
    return found
