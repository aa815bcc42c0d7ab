"""Limits, reservations and shares of disks on a given capacity.

Answers:
    Whether limits, reservations and shares fit a capacity, which disk gets what when all are busy, how a limit
    becomes latency, and the same settings as storage policy, QEMU throttle group, cgroup or cloud disk. Disks that
    are not given come from a recording.

Method:
    When all are busy each disk gets max(reservation, min(limit, λ shares)), λ such that all together get the
    capacity: the fluid allocation that mClock approaches, solved exactly; ``is_checked`` simulates it request by
    request. Reservations above the capacity: mClock tags a request max(last tag + 1 / reservation, time of arrival).
    A disk that gets less than its reservation keeps no older tag, so that requests go in the order of arrival: each
    disk gets min(reservation, λ outstanding), and disks without a reservation get nothing. What a disk wants caps
    what it gets, and what it leaves goes to others. Operations count in units of 32 KiB, rounded up. A closed loop of
    n outstanding at rate X has n / X of latency (Little's law): the part above what the device takes is waiting at
    the limit.

    From a recording: what a disk wants is the 95th percentile of its rate, its block the mean size, what it has
    outstanding the 95th percentile as recorded, else of rate x latency (Little's law).

Assumptions:
    The capacity is that of the device under this mix, from `leadline bench sweep`. Schedulers hold what they promise.

Bends:
    Reservations above four fifths of the capacity; limits on a tier 1 database; limits below what a disk wants; IOPS
    or throughput that a cloud's disk of the type named cannot have.

Sources:
    Gulati, Merchant and Varman, "mClock" (OSDI 2010), section 2.2 for the allocation, algorithm 1 for the tags.
    C. Hogan, "VSAN 6.2 part 4: IOPS limit for object" (2016), for units of 32 KB.
    Linux kernel, admin-guide/cgroup-v2, io.max. QEMU documentation, throttle groups.
    AWS EC2 API reference, ModifyVolume; Microsoft, Azure managed disk types; Google, About Hyperdisk Balanced.
"""

from __future__ import annotations

from typing import Any, cast

from leadline import _core
from leadline.core.contracts.planner import (
    Bend,
    Figure,
    Infeasible,
    Plan,
    PlanContext,
    PlanInput,
    PlannerMeta,
    Sheet,
)
from leadline.core.model.capture import Capture
from leadline.core.model.units import several, share_text
from leadline.estate.derived.recorded_loads import RecordedInput, by_default, device_latency, filled
from leadline.planners._qos import settings
from leadline.planners._qos.inputs import UNIT_KIB, Qos, QosDisk
from leadline.planners._qos.recorded import disks, disks_of_inventory

MCLOCK, HOGAN, LITTLE = "mClock, OSDI 2010", "Hogan 2016", "Little 1961"
STARVED_PER_S = 0.01
LEAST = 1e-9  # a limit is above 0
BUSY = 64  # outstanding requests that always leave some waiting
DEPTH_MAX = 65_536  # what a scenario takes
RESERVED_MAX = 0.8  # Judgement: above, a failed device or a rebuild breaks promises

META = PlannerMeta(
    about="Whether limits, reservations and shares fit a capacity, who gets what, and what a limit costs in latency.",
    example={
        "capacity_iops": 1200.0,
        "disks": [
            {"name": "rd", "shares": 1000, "reservation_iops": 250},
            {"name": "oltp", "shares": 2000, "reservation_iops": 250},
            {"name": "dm", "shares": 3000, "limit_iops": 1000},
        ],
    },
    grows=(("capacity_iops", "given in all"),),
    reads="virtual disks of VMs that run, or a recording of operations of disks",
)

MODEL = Qos


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return what each disk gets when all are busy, its latency, and the settings to apply."""
    inputs, evidence, assumed = _known(cast("Qos", inputs), context.capture)  # read with MODEL
    reserved = sum(_reserved(disk) for disk in inputs.disks)
    share = 100.0 * reserved / inputs.capacity_iops
    given = allocation(inputs)
    rows = tuple(_row(inputs, disk, units) for disk, units in zip(inputs.disks, given, strict=True))
    figures = [
        Figure("reserved", round(reserved, 1), "per_s", "sum of reservations", MCLOCK),
        Figure(
            "reserved share",
            round(100 * reserved / inputs.capacity_iops, 1),
            "pct",
            f"{reserved:,.0f} / {inputs.capacity_iops:,.0f}",
        ),
        Figure("given in all", round(sum(given), 1), "per_s", "units of 32 KiB, when all are busy", HOGAN),
        Figure("left over", round(inputs.capacity_iops - sum(given), 1), "per_s", "no disk may or wants more"),
        *(
            Figure(f"{disk.name} gets", round(units / disk.units, 1), "per_s", _units_arithmetic(disk, units), MCLOCK)
            for disk, units in zip(inputs.disks, given, strict=True)
        ),
    ]
    if inputs.is_checked:
        figures += _checked(inputs, given, context)
    first = inputs.disks[0]
    return Plan(
        headline=f"{several(len(inputs.disks), 'disk')} on {inputs.capacity_iops:,.0f} per second: {first.name} gets "
        f"{given[0] / first.units:,.0f}; {share:.0f} % is reserved.",
        figures=tuple(figures),
        sheets=(
            Sheet("When all are busy", ("disk", "ops/s", "of 32 KiB", "held by", "outstanding", "latency ms"), rows),
        ),
        assumptions=("The capacity is measured with this mix; a larger share of writes has another.", *assumed),
        bends=(*_bends(inputs, reserved), *settings.bends(inputs.disks, given, inputs.cloud)),
        snippets=settings.snippets(inputs.disks, given, inputs.cloud),
        evidence=evidence,
        infeasible=None
        if not is_overbooked(inputs)
        else Infeasible(
            f"reservations of {reserved:,.0f} on a capacity of {inputs.capacity_iops:,.0f}",
            f"all reservations times {inputs.capacity_iops * RESERVED_MAX / reserved:.2f}, or a capacity of "
            f"{reserved / RESERVED_MAX:,.0f}",
        ),
    )


def _known(inputs: Qos, capture: Capture | None) -> tuple[Qos, tuple[str, ...], tuple[str, ...]]:
    """Return the inputs completed from a recording, the evidence, and the assumptions this needs."""
    if capture is None:
        return inputs, (), ()
    below = device_latency(capture)
    known_latency = (
        [RecordedInput("latency_ms", below.mean, f"average of {below.origin}")] if below and below.mean > 0 else []
    )
    inputs, evidence = filled(inputs, known_latency)
    if "disks" not in inputs.model_fields_set:
        seen, disk_notes = disks(capture, inputs.most_disks)
        if not seen:
            seen, disk_notes = disks_of_inventory(capture.inventory, inputs.most_disks)
        if seen:
            inputs = inputs.model_copy(update={"disks": tuple(QosDisk.model_validate(disk) for disk in seen)})
            evidence = (*disk_notes, *evidence)
    wants = "What a disk did is taken for what it wants: one that was held back wants more."
    return inputs, evidence, (wants, *by_default(inputs, ("capacity_iops", "latency_ms", "disks")))


def allocation(inputs: Qos) -> list[float]:
    """Units per second of each disk when all are busy."""
    policies = [(disk.shares, _reserved(disk), disk.most_units) for disk in inputs.disks]
    if is_overbooked(inputs):
        policies = [(float(disk.outstanding * disk.units), 0.0, max(_reserved(disk), LEAST)) for disk in inputs.disks]
    return list(_core.fluid_allocation(policies, inputs.capacity_iops))


def is_overbooked(inputs: Qos) -> bool:
    """Return whether the reservations that disks use exceed the capacity."""
    return sum(_reserved(disk) for disk in inputs.disks) > inputs.capacity_iops * (1 + 1e-9)


def _reserved(disk: QosDisk) -> float:
    """Return the most units per second that the disk's reservation can give it."""
    return min(disk.reservation_iops, disk.most_units)


def _bound_by(disk: QosDisk, units: float) -> str:
    near = 1e-6 * max(units, 1.0)
    if units < _reserved(disk) - near:
        return "order of arrival"
    if disk.limit_iops is not None and units >= disk.limit_iops - near:
        return "limit"
    if disk.wanted_iops is not None and units >= disk.wanted_iops * disk.units - near:
        return "nothing"
    if disk.reservation_iops and units <= disk.reservation_iops + near:
        return "reservation"
    return "shares"


def _units_arithmetic(disk: QosDisk, units: float) -> str:
    counted = f"{units:,.0f} units / {disk.units}" if disk.units > 1 else f"{units:,.0f} units"
    return f"{counted}, by {_bound_by(disk, units)}"


def latency_ms(inputs: Qos, disk: QosDisk, units: float) -> float:
    """Response time with the disk's outstanding operations, ms: Little's law above what the device takes."""
    return max(inputs.latency_ms, 1000.0 * disk.outstanding / (units / disk.units))


def _row(inputs: Qos, disk: QosDisk, units: float) -> tuple[str | float | int, ...]:
    rate = units / disk.units
    start = (disk.name, round(rate, 1), round(units, 1), _bound_by(disk, units))
    if rate < STARVED_PER_S:
        return (*start, disk.outstanding, "starved")
    if start[-1] == "nothing":
        return (*start, round(rate * inputs.latency_ms / 1000, 2), inputs.latency_ms)
    return (*start, disk.outstanding, round(latency_ms(inputs, disk, units), 2))


def _bends(inputs: Qos, reserved: float) -> list[Bend]:
    bends = []
    if reserved > RESERVED_MAX * inputs.capacity_iops:
        cost = f"{100 * reserved / inputs.capacity_iops:.0f} %: a failed device or a rebuild breaks them"
        bends.append(Bend(f"at most {share_text(RESERVED_MAX)} of a capacity is reserved", cost))
    if is_overbooked(inputs):
        cost = (
            "mClock serves reserved requests in the order in which they arrive: who has more outstanding gets more, "
            "shares count for nothing, and disks without a reservation get nothing"
        )
        bends.append(Bend("reservations fit the capacity", cost, MCLOCK))
    for disk in inputs.disks:
        if disk.limit_iops is None:
            continue
        if disk.is_tier_1:
            cost = f"{disk.name} is held at {disk.limit_iops:,.0f}: every burst queues there"
            bends.append(Bend("tier 1 databases have no IOPS limit", cost, HOGAN))
        elif disk.wanted_iops is not None and disk.limit_iops < disk.wanted_iops * disk.units:
            late = 1000.0 * disk.outstanding * disk.units / disk.limit_iops
            cost = f"{disk.name} wants {disk.wanted_iops:,.0f}: {disk.outstanding} outstanding wait {late:,.0f} ms"
            bends.append(Bend("a limit is above what is wanted", cost, LITTLE))
    return bends


def _checked(inputs: Qos, given: list[float], context: PlanContext) -> list[Figure]:
    """Return the largest difference between the answer and a simulation of mClock."""
    outcome = context.simulated(scenario(inputs))
    apart = max(
        abs(outcome.measure(f"disk-{number}", "iops").value * disk.units - units)
        for number, (disk, units) in enumerate(zip(inputs.disks, given, strict=True), 1)
    )
    return [
        Figure(
            "simulated apart by",
            round(100 * apart / inputs.capacity_iops, 3),
            "pct",
            "of the capacity, largest of all disks",
        )
    ]


def _queued(inputs: Qos) -> list[int]:
    """Requests each disk has before the scheduler: enough to wait always, and where that decides, in proportion."""
    if not is_overbooked(inputs):
        return [max(BUSY, disk.outstanding) for disk in inputs.disks]
    times = max(1, BUSY // min(disk.outstanding for disk in inputs.disks))
    return [min(disk.outstanding * times, DEPTH_MAX) for disk in inputs.disks]


def scenario(inputs: Qos) -> dict[str, Any]:
    """Return a scenario of the disks on one device of this capacity, under mClock in units of 32 KiB."""
    vms = []
    for number, (disk, queued) in enumerate(zip(inputs.disks, _queued(inputs), strict=True), 1):
        stream: dict[str, Any] = {"block": f"{disk.units * UNIT_KIB:.0f}k", "oio": queued}
        if disk.wanted_iops is not None:
            stream = {"block": stream["block"], "rate_iops": disk.wanted_iops}
        depth = queued if is_overbooked(inputs) else 1024
        vm = {"name": f"disk-{number}", "shares": disk.shares, "workload": {"io": [stream]}, "adapter_depth": depth}
        vms.append({**vm, "reservation_iops": disk.reservation_iops, "iops_limit": disk.limit_iops})
    # One operation at a time, which takes as long as its units do.
    mb_per_s = inputs.capacity_iops * UNIT_KIB * 1024 / 1e6
    return {
        "name": "qos-plan",
        "system": "storage-path",
        "timing": {"warm_up_s": 10, "measure_s": 60, "window_s": 5},
        "vms": vms,
        "hosts": [{"name": "host", "queue_depth": 1, "scheduler": "sioc-v2"}],
        "devices": [{"name": "device", "service": 1e-9, "mb_per_s": mb_per_s}],
    }
