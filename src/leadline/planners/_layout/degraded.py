"""An array with one device failed, and while its successor is rebuilt: load, operations and latency of reads."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

from leadline.core.contracts.planner import Bend, Figure, Sheet
from leadline.planners._layout.inputs import LayoutInputs
from leadline.planners._layout.levels import RaidLevel

QUEUES = "closed form: M/M/1 of each device"
DEGRADED = "Holland and Gibson 1992"
SATURATED, NO_LOAD = "saturated", "no load"


@dataclass(frozen=True, slots=True)
class FailedArray:
    """Operations per second of devices, before and after a failure; which reads are slow, and how many each makes.

    ``busiest_per_s`` is the load of a surviving device that stands in for the failed one, ``others_per_s`` that of
    the other survivors. ``slow_share`` of all reads go to what the failed device had (0 to 1), or with mirrors to its
    pair; each makes ``fan_out`` reads at once.
    """

    healthy_per_s: float
    busiest_per_s: float
    others_per_s: float
    slow_share: float
    fan_out: int


def failed_array(level: RaidLevel, devices: int, reads_per_s: float, writes_per_s: float) -> FailedArray:
    """Return the load of the devices of an array of ``devices`` devices, one of them failed.

    Mirrors: the partner has the reads of both and its writes. Parity: the reads of the failed device are made of one
    on each device that is needed to compute it. A write whose data was on it reads the other data and writes parity;
    one whose parity was on it leaves that out.
    Source: Holland and Gibson, "Parity declustering for continuous operation in redundant disk arrays" (ASPLOS 1992),
    for one parity; the same count with two.

    >>> from leadline.planners._layout.levels import LEVELS
    >>> failed_array(LEVELS[1], 5, 1000.0, 0.0)
    FailedArray(healthy_per_s=200.0, busiest_per_s=400.0, others_per_s=400.0, slow_share=0.2, fan_out=4)
    """
    healthy = (reads_per_s + level.penalty * writes_per_s) / devices
    if level.is_mirrored:
        partner = 2.0 * (reads_per_s + writes_per_s) / devices
        return FailedArray(healthy, partner, healthy, 2.0 / devices, 1)
    reads_lost = devices - level.spare  # to compute what one device had: the other data, and one parity
    reads = reads_per_s * (devices - 1 + reads_lost) / devices
    survivor = (reads + writes_per_s * _write_operations(level, devices)) / (devices - 1)
    return FailedArray(healthy, survivor, survivor, 1.0 / devices, reads_lost)


def _write_operations(level: RaidLevel, devices: int) -> float:
    """Return the operations of a small write on an array with parity and a failed device, on average over stripes."""
    data_failed = devices - 1  # reads the other data, writes every parity: each survivor once
    parity_failed = 1 if level.spare == 1 else level.penalty - 2  # the failed parity is neither read nor written
    untouched = devices - 1 - level.spare
    return (data_failed + level.spare * parity_failed + untouched * level.penalty) / devices


@dataclass(frozen=True, slots=True)
class ArrayState:
    """An array in one state: operations it can do, and the mean latency of a read, ms; inf where it cannot keep up."""

    iops: float
    read_ms: float


def states(level: RaidLevel, inputs: LayoutInputs) -> tuple[ArrayState, ArrayState, ArrayState]:
    """Return the array of this level as planned: whole, with one device failed, and during the rebuild."""
    array = failed_array(level, level.devices(inputs), inputs.reads_per_s, inputs.writes_per_s)
    left = 1.0 - inputs.rebuild_share_pct / 100.0
    whole = ArrayState(_iops(inputs, array.healthy_per_s, 1.0), _response_ms(inputs, array.healthy_per_s, 1.0))
    return whole, _state(inputs, array, 1.0, 1.0), _state(inputs, array, left, 1.0 if level.is_mirrored else left)


def _state(inputs: LayoutInputs, array: FailedArray, left: float, others_left: float) -> ArrayState:
    """Return the array with a failed device; ``left`` of the busiest and ``others_left`` of the others serve the load.

    The slowest of k reads made at once takes H(k) = 1 + 1/2 + ... + 1/k times one, where each is exponential and they
    do not depend on each other.
    """
    slowest = sum(1.0 / number for number in range(1, array.fan_out + 1))
    slow = slowest * _response_ms(inputs, array.busiest_per_s, left)
    plain = _response_ms(inputs, array.others_per_s, others_left)
    mean = array.slow_share * slow + (1.0 - array.slow_share) * plain
    return ArrayState(_iops(inputs, array.busiest_per_s, left), mean)


def _response_ms(inputs: LayoutInputs, load_per_s: float, left: float) -> float:
    """Return the mean response time of a device, ms: its service time over what is left of it; inf from 100 % on."""
    able = inputs.device_iops * left
    service_ms = (inputs.device_ms or 1000.0 / inputs.device_iops) / left
    return service_ms / (1.0 - load_per_s / able) if load_per_s < able else inf


def _iops(inputs: LayoutInputs, busiest_per_s: float, left: float) -> float:
    """Return the operations per second at which the busiest device has no time left, at the same share of writes."""
    total = inputs.reads_per_s + inputs.writes_per_s
    return total * inputs.device_iops * left / busiest_per_s if busiest_per_s else inf


def rebuild_h(inputs: LayoutInputs) -> float:
    """Return how long a device is written whole at the share that a rebuild has, h."""
    bytes_per_s = inputs.device_mb_per_s * 1e6 * inputs.rebuild_share_pct / 100.0
    return inputs.device_gib * 1024.0**3 / bytes_per_s / 3600.0


def figures(level: RaidLevel, inputs: LayoutInputs) -> tuple[Figure, ...]:
    """Return what the chosen level does with one device failed, and how long that lasts."""
    count = level.devices(inputs)
    array = failed_array(level, count, inputs.reads_per_s, inputs.writes_per_s)
    whole, failed, rebuilt = states(level, inputs)
    who = "partner of the failed device" if level.is_mirrored else "each of the others"
    times = array.busiest_per_s / array.healthy_per_s if array.healthy_per_s else 1.0
    load = f"{who}: {array.busiest_per_s:,.0f} /s, before {array.healthy_per_s:,.0f} ({times:.3g} times)"
    slow = f"{100.0 * array.slow_share:.3g} % of reads make {array.fan_out} on the others"
    if level.is_mirrored:
        slow = f"{100.0 * array.slow_share:.3g} % of reads find one device instead of two"
    seconds = f"{inputs.device_gib:,.0f} GiB / ({inputs.rebuild_share_pct:g} % of {inputs.device_mb_per_s:,.0f} MB/s)"
    return (
        Figure("operations, one device failed", *_value(failed.iops, "per_s"), load, DEGRADED),
        Figure("latency of reads", *_value(whole.read_ms, "ms"), _busy(inputs, array.healthy_per_s), QUEUES),
        Figure("latency of reads, one device failed", *_value(failed.read_ms, "ms"), slow, QUEUES),
        Figure("latency of reads, rebuilding", *_value(rebuilt.read_ms, "ms"), "as the rebuild begins", QUEUES),
        Figure("rebuild of a device", round(rebuild_h(inputs), 2), "h", seconds),
    )


def _busy(inputs: LayoutInputs, load_per_s: float) -> str:
    return f"devices are {100.0 * load_per_s / inputs.device_iops:.0f} % busy"


def _value(number: float, unit: str) -> tuple[float | str, str]:
    """Return a value with its unit, or a word for one without end: any rate without load, or a queue that grows."""
    if isfinite(number):
        return round(number, 0 if unit == "per_s" else 3), unit
    return (NO_LOAD if unit == "per_s" else SATURATED), ""


def sheets(levels: tuple[RaidLevel, ...], inputs: LayoutInputs) -> tuple[Sheet, Sheet]:
    """Return every level side by side, whole, failed and during the rebuild: operations, then latency of reads."""
    operations, latencies = [], []
    for level in levels:
        each, count = states(level, inputs), level.devices(inputs)
        operations.append(
            (level.name, count, *(_value(state.iops, "per_s")[0] for state in each), round(rebuild_h(inputs), 2))
        )
        latencies.append((level.name, count, *(_value(state.read_ms, "ms")[0] for state in each)))
    columns = ("level", "devices", "whole", "failed", "rebuilding")
    return (
        Sheet("Operations per second at most, one device failed", (*columns, "rebuild h"), tuple(operations)),
        Sheet("Latency of reads, ms, one device failed", columns, tuple(latencies)),
    )


def bends(level: RaidLevel, inputs: LayoutInputs) -> list[Bend]:
    """Return a bend where the load is more than the array does with one device failed, or during the rebuild."""
    total = inputs.reads_per_s + inputs.writes_per_s
    _, failed, rebuilt = states(level, inputs)
    for state, when in ((failed, "with one device failed"), (rebuilt, "while a device is rebuilt")):
        if state.iops < total:
            cost = f"{state.iops:,.0f} of {total:,.0f} operations per second {when}: requests queue; use more devices"
            return [Bend("the load is carried while a device is replaced", cost, DEGRADED)]
    return []
