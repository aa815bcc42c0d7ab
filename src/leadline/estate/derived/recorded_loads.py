"""Loads of a recording: 95th percentile and mean of entities or of their sum, with window and source.

A planner takes inputs that were not given from here, and names them. What was not recorded is None or NaN, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from leadline.core.contracts.planner import PlanInput
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.disks import MS_PER_S, io_rate, read_write_mean, whole_disk

if TYPE_CHECKING:
    from numpy.typing import NDArray

PERCENTILE = 95.0
DAY_NS = 86_400 * NS_PER_S
# The first kind that was recorded counts: the others have the same requests again.
DISK_KINDS = (EntityKind.VIRTUAL_DISK, EntityKind.BLOCK_DEVICE, EntityKind.DEVICE)
# Ways to tell a rate: metrics of one way are added, the first way that was recorded counts.
Ways = tuple[tuple[str, ...], ...]
OPERATIONS: Ways = (("disk_iops",), ("disk_reads_per_s", "disk_writes_per_s"))
THROUGHPUT: Ways = (("disk_read_mib_per_s", "disk_write_mib_per_s"), ("guest_disk_busy_mib_per_s",))
READS: Ways = (("disk_reads_per_s",),)
WRITES: Ways = (("disk_writes_per_s",),)
WRITTEN: Ways = (("disk_write_mib_per_s",),)
_LATENCIES = ("disk_guest_latency_ms", "guest_disk_await_ms", "virtual_disk_latency_ms")
_QUEUES = (("virtual_disk_outstanding_count",), ("guest_disk_queue_count",), ("disk_active_count", "disk_queued_count"))
_STACKED = re.compile(r"(dm-|md|loop|zram|ram|sr|fd)\d+")  # on other disks, or none at all

Inputs = TypeVar("Inputs", bound=PlanInput)


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """95th percentile and mean in the metric's unit; ``origin`` says of what, when, and in which recordings."""

    peak: float
    mean: float
    origin: str


@dataclass(frozen=True, slots=True)
class RecordedInput:
    """A value for an input that was not given, and the words that say where it is from."""

    key: str
    value: Any
    origin: str


def filled(inputs: Inputs, values: Iterable[RecordedInput]) -> tuple[Inputs, tuple[str, ...]]:
    """Return the inputs, those not given filled with recorded values, and a sentence for each value taken.

    The first value of a key counts; None and NaN are not known.
    """
    taken: dict[str, Any] = {}
    sentences = []
    for one in values:
        known = one.value is not None and not (isinstance(one.value, float) and not isfinite(one.value))
        if known and one.key not in taken and one.key not in inputs.model_fields_set:
            taken[one.key] = one.value
            shown = number(one.value) if isinstance(one.value, float) else one.value
            sentences.append(f"{one.key} {shown}: {one.origin}")
    return inputs.model_copy(update=taken), tuple(sentences)


def number(value: float) -> str:
    """A recorded number for people: four digits, whole from 1,000 on.

    >>> number(49_812.3), number(0.05136)
    ('49,812', '0.05136')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def by_default(inputs: PlanInput, keys: Iterable[str]) -> tuple[str, ...]:
    """Return one assumption that names the inputs neither given nor recorded; empty where all are known."""
    left = [f"{key} {getattr(inputs, key)}" for key in keys if key not in inputs.model_fields_set]
    return (f"Neither given nor in the recordings, so by default: {', '.join(left)}.",) if left else ()


def series_of(capture: Capture, ways: Ways, *kinds: EntityKind) -> list[SeriesGroup]:
    """The series of the first of the kinds that has any; partitions and devices on other devices left out."""
    for kind in kinds:
        groups = [group for way in _of_kind(capture, ways, kind) for group in way]
        if groups:
            return groups
    return []


def _of_kind(capture: Capture, ways: Ways, kind: EntityKind) -> Iterable[list[SeriesGroup]]:
    had: set[tuple[int, Entity]] = set()
    for metrics in ways:
        recorded = []
        for group in capture.of(metrics[0], kind):
            entities = set(group.entities)
            rows = [
                row
                for row, entity in enumerate(group.entities)
                if (group.source, entity) not in had and _is_counted(entity, entities)
            ]
            part = group.take(rows)
            values = part.values if len(metrics) == 1 else io_rate(capture, part, (metrics,))
            if rows and values is not None and np.isfinite(values).any():
                recorded.append(replace(part, values=values))
        had |= {(group.source, entity) for group in recorded for entity in group.entities}
        yield recorded


def _is_counted(entity: Entity, entities: set[Entity]) -> bool:
    """False for a partition whose disk was recorded too, and for a device stacked on others that were."""
    if entity.kind is not EntityKind.BLOCK_DEVICE:
        return True
    stem = whole_disk(entity.name)
    if stem != entity.name and replace(entity, name=stem) in entities:
        return False
    return not _STACKED.fullmatch(entity.name) or all(_STACKED.fullmatch(other.name) for other in entities)


def of_each(capture: Capture, groups: Sequence[SeriesGroup]) -> dict[Entity, RecordedLoad]:
    """The load of each entity; where several recordings have it, the one with the highest peak."""
    loads: dict[Entity, RecordedLoad] = {}
    for group in groups:
        for entity, row in zip(group.entities, group.values, strict=True):
            known = row[np.isfinite(row)]
            if len(known):
                peak = float(np.percentile(known, PERCENTILE))
                if entity not in loads or peak > loads[entity].peak:
                    loads[entity] = RecordedLoad(peak, float(np.mean(known)), window(capture, [group]))
    return loads


def of_sum(capture: Capture, groups: Sequence[SeriesGroup]) -> RecordedLoad | None:
    """The load of all together; where a recording has another's entities as well, the larger of the two counts."""
    peaks: dict[frozenset[Entity], tuple[float, float]] = {}
    for group in groups:
        times = np.isfinite(group.values).any(axis=0)
        if not times.any():
            continue
        sums = np.nansum(group.values[:, times], axis=0)
        peak, mean = float(np.percentile(sums, PERCENTILE)), float(np.mean(sums))
        names = frozenset(group.entities)
        other = next((known for known in peaks if known & names), None)
        if other is not None:
            old = peaks.pop(other)
            peak, mean, names = max(peak, old[0]), max(mean, old[1]), names | other
        peaks[names] = (peak, mean)
    if not peaks:
        return None
    count = sum(len(names) for names in peaks)
    adds = " (percentiles of recordings added)" if len(peaks) > 1 else ""
    kind = next(iter(next(iter(peaks)))).kind.value
    description = f"the sum of {count} of kind {kind}{adds}, {window(capture, groups)}"
    return RecordedLoad(sum(peak for peak, _ in peaks.values()), sum(mean for _, mean in peaks.values()), description)


def total(capture: Capture, ways: Ways, *kinds: EntityKind) -> RecordedLoad | None:
    """The load of all entities of the first kind recorded together; None when it was not recorded."""
    return of_sum(capture, series_of(capture, ways, *kinds))


def only(groups: Iterable[SeriesGroup], keep: Callable[[Entity], bool]) -> list[SeriesGroup]:
    """The groups with the series of some entities alone."""
    rows = [(group, [row for row, entity in enumerate(group.entities) if keep(entity)]) for group in groups]
    return [group.take(kept) for group, kept in rows if kept]


def machine_of(inventory: Inventory, part: Entity) -> Entity | None:
    """The VM a disk belongs to; of a guest whose VM is not known the guest; None for what belongs to neither."""
    guest = part.ancestor(EntityKind.GUEST)
    return part.ancestor(EntityKind.VM) if guest is None else inventory.vm_of(guest) or guest


def by_owner(groups: Iterable[SeriesGroup], owner: Callable[[Entity], Entity | None]) -> list[SeriesGroup]:
    """Series of parts added up to those of what owns them; parts of no known owner are left out."""
    sums = []
    for group in groups:
        parts: dict[Entity, list[int]] = {}
        for row, entity in enumerate(group.entities):
            whole = owner(entity)
            if whole is not None:
                parts.setdefault(whole, []).append(row)
        if parts:
            values = np.vstack([_sum(group.values[rows]) for rows in parts.values()])
            sums.append(replace(group, entities=list(parts), values=values))
    return sums


def _sum(values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """The sum [n] of rows [k, n]; NaN where no row was measured."""
    return np.where(np.isfinite(values).any(axis=0), np.nansum(values, axis=0), np.nan)


def latencies(capture: Capture, group: SeriesGroup) -> NDArray[np.floating[Any]] | None:
    """Time of an operation [k, n] in ms as its sender sees it, at the times of the group; None when not recorded."""
    for name in _LATENCIES:
        whole = capture.aligned(group, name) if name != "virtual_disk_latency_ms" else None
        if whole is not None:
            return whole
        reads = capture.aligned(group, f"{name}_read")
        if reads is not None:
            return read_write_mean(capture, replace(group, values=reads), f"{name}_write")
    return None


def outstanding(capture: Capture, operations: SeriesGroup) -> tuple[SeriesGroup, str] | None:
    """Operations under way at the times of a group of rates, and how they are known; None when they are not.

    As recorded, else rate times latency. Source: Little, Operations Research 9, 1961.
    """
    for metrics in _QUEUES:
        values = io_rate(capture, operations, (metrics,))
        if values is not None:
            return replace(operations, values=values), "as recorded"
    waits = latencies(capture, operations)
    if waits is None:
        return None
    return replace(operations, values=operations.values * waits / MS_PER_S), "rate x latency"


def device_latency(capture: Capture) -> RecordedLoad | None:
    """Time of an operation below the hypervisor, ms, averaged over devices by their rates; None when not recorded."""
    slowest: RecordedLoad | None = None
    for group in series_of(capture, OPERATIONS, EntityKind.DEVICE):
        waits = capture.aligned(group, "disk_device_latency_ms")
        if waits is None:
            continue
        weights = np.where(np.isfinite(waits) & np.isfinite(group.values), group.values, 0.0)
        whole = weights.sum(axis=0)
        busy = whole > 0
        if not busy.any():
            continue
        means = (np.nan_to_num(waits) * weights).sum(axis=0)[busy] / whole[busy]
        peak = float(np.percentile(means, PERCENTILE))
        if slowest is None or peak > slowest.peak:
            where = f"{len(group.entities)} devices by their rates, {window(capture, [group])}"
            description = f"latency below the hypervisor (DAVG) of {where}"
            slowest = RecordedLoad(peak, float(np.mean(means)), description)
    return slowest


def window(capture: Capture, groups: Sequence[SeriesGroup]) -> str:
    """From when to when series were recorded, and in which recordings."""
    first = min(int(group.times_ns[0]) for group in groups)
    last = max(int(group.times_ns[-1]) for group in groups)
    sources = ", ".join(sorted({capture.sources[group.source].name for group in groups}))
    short = "; less than a day, other hours may be worse" if last - first < DAY_NS else ""
    return f"{_at(first)} to {_at(last)} UTC, {sources}{short}"


def _at(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / NS_PER_S, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
