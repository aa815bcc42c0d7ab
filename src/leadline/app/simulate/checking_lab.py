"""Adapters, their queue depths and their host's for real: a guest of a lab for each variant of a scenario, one by one.

Under software emulation a guest's own rates say nothing; how they change with the depth does, where the storage below
takes long enough for every request. So every guest has a disk of that latency, and what is compared is each variant
beside the first one. Where the host's queue is the smaller one in any variant, the storage of all is a server that
works on as many requests at once as the host's queue holds; else it takes all that come.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from leadline.app.measure.guests import LabResult, plan_lab
from leadline.app.simulate.checking_results import NAN, CheckPlan, CheckRow, RealCheck, scenario_of
from leadline.app.simulate.simulating import PlannedSimulation, Simulated
from leadline.core.contracts.scenario import Variant
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import adjusted
from leadline.core.system.tools import require_program
from leadline.lab.machine import STORAGE_DEPTH
from leadline.lab.specification import Adapter, DiskLimits, Guest, GuestLoad, Lab, LabDisk
from leadline.scenarios.storage_path import Device, StoragePath, Vm, index_of

SIZE_BYTES = 64 * 1024**2
MEMORY_BYTES = 448 * 1024**2
WARM_UP_S = 2.0
SAME_PCT = 5.0  # Judgement: rates nearer than that have no order
# Adapters whose driver does not let a disk's depth be changed later. Source: Linux, sym53c8xx_2, parameter cmd_per_lun.
_BY_MODULE = {"lsi": "cmd_per_lun={}"}
_WITHOUT_DEPTH = (*_BY_MODULE, "nvme")  # no depth of the device in the guest's /sys
_SERVER = "nbdkit"
_STEP_S = 0.001  # in which its delay is given


def plan_guests(planned: PlannedSimulation, seconds: float) -> CheckPlan:
    """What booting the variants of a scenario as guests will do.

    Raises:
        UsageError: a scenario has no adapters everywhere, or copies, or a device of changing latency.
        ToolError: QEMU, a kernel or what serves the host's queue is missing, or memory does not suffice.
    """
    pairs = [(scenario_of(variant), vm) for variant in planned.variants for vm in scenario_of(variant).vms]
    by_server = any(_host_depth(scenario, vm) < vm.depth for scenario, vm in pairs)
    if by_server:
        require_program(_SERVER, "what makes the host's queue", _SERVER)
    guests = [
        _guest(f"v{index}-{number}", variant, vm, seconds, by_server=by_server)
        for index, variant in enumerate(planned.variants)
        for number, vm in enumerate(scenario_of(variant).vms)
    ]
    lab = Lab(name="check", question=f"{planned.scenario.name}: adapters and depths", guests=tuple(guests))
    lab_plan = plan_lab(lab)
    words = (
        f"{len(guests)} guests with the adapters of the scenario, loaded one after the other for {seconds:g} s",
        f"by {lab_plan.accelerator.name}: {lab_plan.accelerator.reason}",
        *(
            ["nbdkit is the storage: it works on as many requests at once as the host's queue holds"]
            if by_server
            else []
        ),
        "the guests live in a scratch folder that is removed at the end; no device is touched",
    )
    notes = ["each variant is compared with the first one: a guest's own rates are those of the emulation"]
    if any(len(scenario_of(variant).vms) > 1 for variant in planned.variants):
        notes.append("guests are loaded one after the other: what VMs do to each other is not checked")
    if any(host.scheduler != "fifo" for scenario, _ in pairs for host in scenario.hosts):
        notes.append("the order at the hosts is not made: their queues serve first come, first served")
    return CheckPlan(planned, seconds, words, tuple(notes), lab_plan.expected_s, lab_plan)


def _host_depth(scenario: StoragePath, vm: Vm) -> int:
    """Requests that get through to the device at once, of those the adapter lets go."""
    return min(scenario.hosts[index_of(scenario.hosts, vm.host)].queue_depth, _device(scenario, vm).parallelism)


def _guest(name: str, variant: Variant, vm: Vm, seconds: float, *, by_server: bool) -> Guest:
    scenario = scenario_of(variant)
    service = _constant(_device(scenario, vm))
    load = vm.loaded
    if vm.adapter is None or load is None or vm.disks or vm.count > 1 or service is None:
        raise UsageError(
            f"--check-real: VM {vm.name}",
            found="a VM that cannot be made as a guest",
            expected="one VM with an adapter, a workload and one disk, near a device whose service is a constant",
            advice="Leave adapter out to check limits and copies on the block layer.",
        )
    depth, at_host = vm.depth, _host_depth(scenario, vm)
    if by_server:
        _check_server(vm, service, min(depth, at_host))
    disk = LabDisk(
        name="data",
        adapter="scsi0",
        size=SIZE_BYTES,
        null_latency=None if by_server else service,
        storage_latency=service if by_server else None,
        queue_depth=None if vm.adapter in _WITHOUT_DEPTH else depth,
        limits=None if vm.iops_limit is None else DiskLimits(iops=round(vm.iops_limit), iops_size=32 * 1024),
    )
    workload = adjusted(load, size=SIZE_BYTES, seconds=seconds, rounds=1, warm_up=WARM_UP_S)
    return Guest(
        name=name,
        memory=MEMORY_BYTES,
        host_queue_depth=min(at_host, STORAGE_DEPTH) if by_server else None,
        adapters=(Adapter(name="scsi0", type=vm.adapter, module_options=_BY_MODULE.get(vm.adapter, "").format(depth)),),
        disks=(disk,),
        load=GuestLoad(workload={**workload.plain(), "name": "check"}, disk="data"),
    )


def _check_server(vm: Vm, service_s: float, reach: int) -> None:
    """Refuse what the server of the host's queue cannot do.

    Raises:
        UsageError: more requests at once than it is given, or a time it does not know.
    """
    if reach > STORAGE_DEPTH:
        raise UsageError(
            f"--check-real: VM {vm.name}",
            found=f"queues that let {reach} requests through to the device",
            expected=f"at most {STORAGE_DEPTH} where a host's queue is the smaller one: QEMU has no more on their way",
            advice="Vary smaller depths.",
        )
    if service_s < _STEP_S or abs(service_s / _STEP_S - round(service_s / _STEP_S)) > 1e-6:
        raise UsageError(
            f"--check-real: VM {vm.name}",
            found=f"a device that takes {service_s * 1e3:g} ms",
            expected="whole milliseconds where a host's queue is the smaller one",
            advice="Vary `devices.*.service` to 20ms or more, beside which the emulation is fast.",
        )


def _device(scenario: StoragePath, vm: Vm) -> Device:
    return scenario.devices[index_of(scenario.devices, vm.device)]


def _constant(device: Device) -> float | None:
    """Seconds a device takes for every request; None where that changes."""
    draw = device.service
    if draw is None or draw.kind != "constant" or device.write_service is not None or device.network is not None:
        return None
    return draw.mean


def check_guests(plan: CheckPlan, simulations: Sequence[Simulated], result: LabResult) -> RealCheck:
    """Compare the variants as simulated with the guests that were loaded for them.

    Args:
        plan: the plan that `plan_guests` made.
        simulations: the variants as simulated with the scenario's own devices.
        result: the loads of the plan's guests.
    """
    runs = tuple(load.run.id for load in result.loads if load.run is not None)
    rows = _rows(plan, simulations, result)
    notes = [*plan.notes, *result.notes, *(f"{load.guest}: {load.error}" for load in result.loads if load.error)]
    notes += _order(rows)
    return RealCheck(f"lab guests, {result.accelerator.name}", tuple(rows), runs, (), tuple(notes))


def _rows(plan: CheckPlan, simulations: Sequence[Simulated], result: LabResult) -> list[CheckRow]:
    """Operations per second of each variant, as a multiple of the first one's."""
    rows: list[CheckRow] = []
    rates = {load.guest: load.run.counted_per_s() for load in result.loads if load.run is not None}
    for index, simulation in enumerate(simulations):
        for number, vm in enumerate(scenario_of(plan.planned.variants[index]).vms):
            first = simulations[0].outcome.measure(vm.name, "iops").value
            now = simulation.outcome.measure(vm.name, "iops").value
            real_first, real = rates.get(f"v0-{number}", NAN), rates.get(f"v{index}-{number}", NAN)
            rows.append(CheckRow(simulation.variant.label, vm.name, "iops", "per_s", now, real))
            if index:
                rows.append(
                    CheckRow(simulation.variant.label, vm.name, "iops_ratio", "", now / first, real / real_first)
                )
    return rows


def _order(rows: Sequence[CheckRow]) -> list[str]:
    """Whether variants stand in the same order, simulated and measured; those near each other have none."""
    notes = []
    for entity in dict.fromkeys(row.entity for row in rows):
        iops_rows = [r for r in rows if (r.entity, r.measure) == (entity, "iops") and isfinite(r.distance_pct)]
        pairs = [(one, other) for n, one in enumerate(iops_rows) for other in iops_rows[n + 1 :]]
        apart = [pair for pair in pairs if abs(pair[1].simulated / pair[0].simulated - 1.0) * 100.0 > SAME_PCT]
        kept = sum((a.simulated < b.simulated) == (a.measured < b.measured) for a, b in apart)
        if apart:
            notes.append(f"{entity}: {kept} of {len(apart)} pairs of variants stand in the same order in both")
    return notes
