"""A latency in whichever form it was recorded: of all operations, of reads and of writes, by device, path or adapter.

vCenter, esxtop, Telegraf and exports keep different ones of these. A rule names the latency once (`forms` for its
needs) and gets one group per recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.derived import derived
from leadline.core.model.metrics import metrics
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.disks import is_whole, read_write_mean, weighted_mean
from leadline.estate.derived.series import Places, placed, placed_by_parent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.derived import Recorded
    from leadline.core.model.entities import Entity

RATE_METRICS = ("disk_iops", "disk_reads_per_s", "disk_writes_per_s")
# What the await of block devices is read from; rules that ask for it declare them.
AWAIT_METRICS = ("guest_disk_await_ms", "guest_disk_await_ms_read", "guest_disk_await_ms_write", *RATE_METRICS)
# Of the same commands; what lies nearest to the disk tells most.
NEAREST = (EntityKind.DEVICE, EntityKind.PATH, EntityKind.ADAPTER)


def forms(metric: str) -> str:
    """The need of a rule that judges a latency: as a whole, else of reads, else of writes.

    >>> forms("disk_kernel_latency_ms")
    'disk_kernel_latency_ms|disk_kernel_latency_ms_read|disk_kernel_latency_ms_write'
    """
    return "|".join(name for name in (metric, f"{metric}_read", f"{metric}_write") if name in metrics())


def latencies(context: Recorded, metric: str, *kinds: EntityKind) -> list[SeriesGroup]:
    """A latency per operation of entities of some kinds: as recorded, else the mean of reads and writes.

    The mean is weighted by their rates. Of what was only read or only written there is only that latency.

    Args:
        context: of the rule.
        metric: without its direction.
        kinds: of entities.
    """
    return [_of_all(context, group, metric) for group in _recorded(context, metric, kinds)]


def latency_parts(context: Recorded, metric: str, *kinds: EntityKind) -> Iterator[SeriesGroup]:
    """The same in parts of a few entities, for who keeps none of them: a wide recording has gigabytes of it."""
    for group in _recorded(context, metric, kinds):
        for part in group.slices():
            yield _of_all(context, part, metric)


def _recorded(context: Recorded, metric: str, kinds: tuple[EntityKind, ...]) -> Iterator[SeriesGroup]:
    """The series to take a latency from: of all operations, else of reads, else of writes, by entity and recording.

    A disk of which fewer samples hold a read than a write is taken from its writes: a watch that follows a recording
    has no series of what was never read until it is.
    """
    known: set[tuple[int, Entity]] = set()
    for group in _others(context.of(metric, *kinds), known):
        yield group
        known.update((group.source, entity) for entity in group.entities)
    reads, writes = (context.of(f"{metric}{way}", *kinds) for way in ("_read", "_write"))
    if len({(group.source, len(group.times_ns)) for group in (*reads, *writes)}) > len({one.source for one in reads}):
        written = {(one.source, entity): len(one.times_ns) for one in writes for entity in one.entities}
        late = {
            (one.source, entity)
            for one in reads
            for entity in one.entities
            if len(one.times_ns) < written.get((one.source, entity), 0)
        }
    else:
        late = set()
    passed = known | late
    for group in _others(reads, passed):
        yield group
        passed.update((group.source, entity) for entity in group.entities)
    known = passed - late
    for group in _others(writes, known):
        yield group
        known.update((group.source, entity) for entity in group.entities)


def _of_all(context: Recorded, group: SeriesGroup, metric: str) -> SeriesGroup:
    """Latencies of all operations from a group of `_recorded`."""
    if group.metric == metric:
        return group
    named = metric if metric in metrics() else f"{metric}_read"
    if group.metric.endswith("_read"):
        return replace(group, metric=named, values=read_write_mean(context, group, f"{metric}_write"))
    reads = _at_times(context, group, f"{metric}_read")
    if reads is None:
        return replace(group, metric=named)
    return replace(group, metric=named, values=weighted_mean(context, group, reads, group.values))


def _at_times(context: Recorded, group: SeriesGroup, metric: str) -> NDArray[np.floating[Any]] | None:
    """Another metric of the group's entities and source [k, n], NaN where it has no sample; None where it has none."""
    rows = {entity: row for row, entity in enumerate(group.entities)}
    whole: NDArray[np.floating[Any]] | None = None
    for other in context.of(metric):
        if other.source != group.source or rows.keys().isdisjoint(other.entities):
            continue
        places = np.searchsorted(group.times_ns, other.times_ns)
        places[places == len(group.times_ns)] = 0
        same = group.times_ns[places] == other.times_ns
        whole = np.full(group.stored.shape, np.nan) if whole is None else whole
        for entity, values in zip(other.entities, other.values, strict=True):
            if entity in rows:
                whole[rows[entity], places[same]] = values[same]
    return whole


def nearest_latencies(context: Recorded, metric: str) -> list[SeriesGroup]:
    """A latency of devices; of paths, else of adapters, where no recording has it of devices."""
    return next((groups for kind in NEAREST if (groups := latencies(context, metric, kind))), [])


def block_awaits(context: Recorded) -> list[SeriesGroup]:
    """Await of the guests' whole block devices, ms per request."""
    return context.table(_block_awaits)


@derived(*AWAIT_METRICS)
def awaits_by_disk(reader: Recorded) -> Places:
    """Await of the guests' whole block devices, by device, ms per request."""
    return placed(block_awaits(reader))


@derived(*AWAIT_METRICS)
def awaits_by_guest(reader: Recorded) -> Places:
    """The same by the guest that the devices are of."""
    return placed_by_parent(block_awaits(reader))


@derived(*AWAIT_METRICS)
def _block_awaits(reader: Recorded) -> list[SeriesGroup]:
    whole = []
    for group in latencies(reader, "guest_disk_await_ms", EntityKind.BLOCK_DEVICE):
        rows = [row for row, entity in enumerate(group.entities) if is_whole(reader, entity)]
        if rows:
            whole.append(group if len(rows) == len(group.entities) else group.take(rows))
    return whole


def _others(groups: Iterable[SeriesGroup], known: set[tuple[int, Entity]]) -> Iterable[SeriesGroup]:
    """The series of entities that are not known yet, by source."""
    for group in groups:
        rows = [row for row, entity in enumerate(group.entities) if (group.source, entity) not in known]
        if rows:
            yield group if len(rows) == len(group.entities) else group.take(rows)
