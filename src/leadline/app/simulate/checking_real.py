"""Use case: a scenario done for real where that is possible, simulated beside measured.

Limits, streams and copies of a storage path are done on this machine's user-space block layer; a scenario that names
adapters goes to guests of a lab instead: the plan names them, and `checking_lab` compares what their loads gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leadline.app.simulate.checking_block_layer import BURST_S, IO_UNIT_BYTES, SCRATCH, RealDisk
from leadline.app.simulate.checking_lab import plan_guests
from leadline.app.simulate.checking_loads import CALIBRATION_COUNTS, Calibration, Ground, calibrated, loaded
from leadline.app.simulate.checking_results import NAN, CheckPlan, CheckRow, RealCheck, scenario_of
from leadline.app.simulate.simulating import PlannedSimulation, Simulated, simulate
from leadline.core.contracts.scenario import Variant
from leadline.core.model.errors import UsageError
from leadline.core.model.result import Operation, Tick
from leadline.core.model.run import percentiles, pool
from leadline.core.system.leftovers import scratch_folder, scratch_name, temporary_folder
from leadline.core.system.tools import require_program
from leadline.scenarios.storage_path import StoragePath
from leadline.stores.runs import RunStore

VARIANTS_MAX, VMS_MAX = 12, 16  # Judgement: more takes minutes, and more processes than a small machine runs at once
WARM_UP_S = 3.0  # Judgement: several times the residence time of a few hundred requests at a few hundred per second
CALIBRATION_S = 2.0
_NOT_TIMES = ("name", "parallelism", "congestion_threshold")
MEASURES = (("iops", "per_s"), ("latency_ms_mean", "ms"), ("latency_ms_p99", "ms"))
Say = Callable[[str], None]
ShareReport = Callable[[float, int, int], None]


def plan_check(planned: PlannedSimulation, seconds: float) -> CheckPlan:
    """What a real run of a scenario will do.

    Raises:
        UsageError: nothing real can be made of it.
        ToolError: a program is missing.
    """
    if planned.scenario.system != "storage-path":
        raise UsageError(
            f"--check-real: {planned.scenario.name}",
            found=f"system {planned.scenario.system}",
            expected="a storage path: only that can be done for real here",
            advice="Simulate it without --check-real.",
        )
    if any(vm.trace is not None for variant in planned.variants for vm in scenario_of(variant).vms):
        raise UsageError(
            f"--check-real: {planned.scenario.name}",
            found="a VM whose load is a trace",
            expected="workloads",
            advice="`leadline trace replay` replays it for real.",
        )
    vms = max(len(scenario_of(variant).disk_names()) for variant in planned.variants)
    if len(planned.variants) > VARIANTS_MAX or vms > VMS_MAX:
        raise UsageError(
            "--check-real",
            found=f"{len(planned.variants)} variants of up to {vms} disks",
            expected=f"at most {VARIANTS_MAX} variants of {VMS_MAX} disks",
            advice="Name fewer values with --vary.",
        )
    if any(vm.adapter is not None for variant in planned.variants for vm in scenario_of(variant).vms):
        return plan_guests(planned, seconds)
    for program in ("qemu-storage-daemon", "fio"):
        require_program(program, "the program, for --check-real")
    count = len(planned.variants)
    calibrating_s = len(CALIBRATION_COUNTS) * CALIBRATION_S * len(_backings(planned))
    words = (
        f"{count} real run{'s' * (count > 1)} of {seconds:g} s after {WARM_UP_S:g} s of warm-up, "
        f"and {calibrating_s:g} s without limits to measure the devices",
        "qemu-storage-daemon serves every disk with its limit over NBD on a Unix socket; fio and libnbd load them",
        f"scratch folder {temporary_folder() / scratch_name(SCRATCH)}*, removed at the end; no device touched",
    )
    expected = calibrating_s + count * (seconds + WARM_UP_S + 1.0)
    return CheckPlan(planned, seconds, words, tuple(_notes(planned)), expected)


def _backings(planned: PlannedSimulation) -> list[int | None]:
    """Latencies of the devices there are, ns; None is a file."""
    latencies = [
        _latency_ns(scenario_of(variant), index)
        for variant in planned.variants
        for index in range(_device_count(variant))
    ]
    return list(dict.fromkeys(latencies))


def _device_count(variant: Variant) -> int:
    return len(scenario_of(variant).devices)


def _latency_ns(scenario: StoragePath, index: int) -> int | None:
    """Return the time of every request on a device that is always as fast, ns; None for other devices."""
    device = scenario.devices[index].model_dump(mode="json")
    service = device.pop("service")
    plain = {key: value for key, value in device.items() if key not in _NOT_TIMES and value}
    wanted = sum(stream.oio * stream.jobs for vm in scenario.vms for stream in vm.streams) + sum(
        copy.oio for copy in scenario.copies
    )
    reached = any(disk.iops_limit is None for vm in scenario.vms for disk in (vm, *vm.disks.values()))
    is_wide = scenario.devices[index].parallelism >= wanted or not reached
    if service is None or service["kind"] != "constant" or plain or not is_wide:
        return None
    return round(float(service["mean"]) * 1e9)


def _notes(planned: PlannedSimulation) -> list[str]:
    """Return a sentence for each difference between the scenario and the block layer that runs it."""
    scenarios = [scenario_of(variant) for variant in planned.variants]
    notes = []
    if any(host.scheduler != "fifo" for scenario in scenarios for host in scenario.hosts):
        notes.append("the order at the hosts is not made: the block layer serves first come, first served")
    sizes = [size for scenario in scenarios for vm in scenario.vms for stream in vm.streams for size in stream.block]
    if any(size > IO_UNIT_BYTES and size % IO_UNIT_BYTES for size in sizes):
        notes.append("sizes between multiples of 32 KB count as fractions in QEMU, rounded up in the scenario")
    disks = [disk for scenario in scenarios for vm in scenario.vms for disk in (vm, *vm.disks.values())]
    if all(disk.iops_limit is None for disk in disks):
        notes.append("nothing is limited: the comparison is about this machine's speed")
    else:
        notes.append(
            "limits decide here, not the scenario's device: that is replaced by what was measured without limits"
        )
    if any(0 < stream.read_pct < 100 for scenario in scenarios for vm in scenario.vms for stream in vm.streams):
        notes.append(
            "QEMU has reads and writes wait apart at a limit, so that percentiles spread more than the means say"
        )
    notes.append("queue depths of adapters and hosts are not made; name an adapter to check those in guests of a lab")
    return notes


def check_block_layer(
    plan: CheckPlan, simulations: Sequence[Simulated], store: RunStore, *, say: Say, report: ShareReport
) -> RealCheck:
    """Measure the devices, do every variant, simulate it again with the devices as measured.

    Args:
        plan: what to do.
        simulations: the variants as simulated with the scenario's own devices.
        store: takes the runs.
        say: told what happens.
        report: told the share that is done.

    Raises:
        ToolError: a tool fails.
        KeyboardInterrupt: passed on after everything was ended and removed; the runs until then are kept.
    """
    measured: list[dict[str, list[Operation]]] = []
    runs: list[str] = []
    elapsed = share = 0.0

    def tick(now: Tick) -> None:
        nonlocal share
        share = max(share, min((elapsed + now.elapsed_s) / plan.expected_s, 1.0))
        report(share, len(measured), len(plan.planned.variants))

    with scratch_folder(SCRATCH) as folder:
        ground = Ground(folder, store, plan.planned.scenario.name, plan.seconds, WARM_UP_S, tick)
        calibrations: dict[int | None, Calibration] = {}
        for latency in _backings(plan.planned):
            say("measuring the device without limits")
            calibrations[latency] = calibrated(ground, latency, _probe_streams(plan.planned), CALIBRATION_S)
            elapsed += len(CALIBRATION_COUNTS) * CALIBRATION_S
            runs += calibrations[latency].runs
        for variant in plan.planned.variants:
            say(variant.label or "measuring")
            scenario = scenario_of(variant)
            by_vm, own_runs = loaded(ground, scenario, _disks(scenario), variant.label)
            measured.append(by_vm)
            runs += own_runs
            elapsed += plan.seconds + WARM_UP_S
    again = [_with_measured(variant, calibrations) for variant in plan.planned.variants]
    simulated = simulate(PlannedSimulation(plan.planned.system, plan.planned.scenario, tuple(again)), store)
    rows = [
        row
        for before, after, by_vm in zip(simulations, simulated, measured, strict=True)
        for row in _rows(after.variant.label, (before, after), by_vm)
    ]
    return RealCheck("block layer", tuple(rows), tuple(runs), tuple(calibrations.values()), plan.notes)


def _probe_streams(planned: PlannedSimulation) -> Any:  # noqa: ANN401 - a stream
    """What the device is measured with: the first stream of the scenario, without its rate and bursts."""
    scenario = scenario_of(planned.variants[0])
    first = next((stream for vm in scenario.vms for stream in vm.streams), None)
    probe = first or scenario.copied()[0][1].model_copy(update={"read_pct": 50.0, "random_pct": 100.0})
    return probe.model_copy(
        update={"rate_iops": None, "burst": None, "request_burst": None, "think_time_s": 0.0, "role": None, "jobs": 1}
    )


def _disks(scenario: StoragePath) -> list[RealDisk]:
    disks, names = [], iter(scenario.disk_names())
    for vm in scenario.vms:
        for _ in vm.names():
            for disk in (vm, *vm.disks.values()):
                index = 0 if disk.device is None else [device.name for device in scenario.devices].index(disk.device)
                disks.append(RealDisk(next(names), disk.iops_limit, _latency_ns(scenario, index)))
    return disks


def _with_measured(variant: Variant, calibrations: dict[int | None, Calibration]) -> Variant:
    """The variant with devices as they were measured, and limits with the burst that QEMU gives them."""
    scenario = scenario_of(variant)
    plain = scenario.plain()
    for index, device in enumerate(plain["devices"]):
        curve = calibrations[_latency_ns(scenario, index)]
        plain["devices"][index] = {"name": device["name"], "curve": curve.curve(), "spread": curve.spread}
    for vm in plain["vms"]:
        for disk in (vm, *vm["disks"].values()):
            if disk["iops_limit"] is not None:
                disk["iops_burst"] = max(disk["iops_burst"], round(disk["iops_limit"] * BURST_S), 1)
    return Variant(variant.settings, type(scenario).model_validate(plain))


def _rows(label: str, simulated: tuple[Simulated, Simulated], by_vm: dict[str, list[Operation]]) -> list[CheckRow]:
    before, after = simulated
    rows = []
    for vm, operations in by_vm.items():
        whole = pool("all", operations)
        known = {} if whole.histogram is None else percentiles(whole.histogram)
        values = {
            "iops": sum(part.per_s for part in operations),
            "latency_ms_mean": whole.mean_ms,
            "latency_ms_p99": known.get("p99", (NAN, 0))[0],
        }
        for name, unit in MEASURES:
            given, now = (part.outcome.measure(vm, name).value for part in (before, after))
            rows.append(CheckRow(label, vm, name, unit, now, values[name], given))
    return rows
