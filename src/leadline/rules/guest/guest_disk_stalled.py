"""A disk stands still: requests are under way and hardly any completes.

Finds:
    A block device that answers nobody for 1 s or more, once or again and again. Requests are under way (utilisation of
    95 % or more, or a queue of 1 or more), and in the whole sample none completes. Or up to 10 per second complete,
    with less than 1 MiB/s, and either those waited 1 s or more by Little's law (queue / completions per second), or
    95 % of the sample passed with requests under way that are not among the completed. High severity when the disk
    stood still for 2 s in sum, or more than once. Low severity for a disk that threads of the same machine serve
    (loop, nbd, rbd, drbd) while it has more than 2 runnable tasks per CPU, and for a disk that completed nothing in
    the whole recording while no task of the guest waits for I/O.

Why:
    Await is the mean of completed requests: while nothing completes it is not measured, and after a freeze one slow
    request is averaged with hundreds of quick ones. A commit that meets a freeze of 3 s waits 3 s all the same.

Do:
    Look at what lies below in these seconds: aborts, resets and lost paths in the host's vmkernel log or in dmesg; path
    failover, a snapshot or its removal, a backup's quiescing, a failover of the storage cluster, a throttle with
    bursts. Record esxtop on the host for the same minutes: outstanding commands with no completions there accuse the
    storage, an idle device there accuses the layers between. Freezes at equal distances point to a job or a timer.

When it is wrong:
    Some Linux kernels count a request twice and then show 100 % utilisation of an idle disk for ever; that is why a
    disk without any completion needs tasks that wait. A long discard (fstrim) keeps a disk busy without a read or a
    write. Samples longer than a freeze hide it: record once per second. A freeze of less than two samples may fill
    none of them, so it is missed or told too short.

Sources:
    Linux Documentation/admin-guide/iostats.rst: fields 9 to 11, requests in progress, time with any, weighted time.
    iostat(1): aqu-sz, await, %util. Little's law: wait = requests under way / completions per second.
    Judgement: 1 s, no healthy disk keeps all requests for so long; 10 per second, a tenth of what one spinning disk
    does; 1 MiB/s, below what any large request on a working disk moves; 2 s in sum is felt by every session.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows, sample_bounds
from leadline.estate.derived.disks import MS_PER_S, io_rate, is_whole
from leadline.estate.derived.series import mean_of
from leadline.estate.language.guests import starved_by_cpu
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity

_IOSTATS = "Linux Documentation/admin-guide/iostats.rst"
_STILL_SHARE = 0.9  # of the least duration: samples of one second are often a few milliseconds shorter
_GAP_S = 15.0  # Judgement: freezes that come every 15 s or so are one trouble
_NAMED_COUNT_MAX = 3  # stalls named one by one in the evidence
_REGULAR_COUNT_MIN = 3  # distances between stalls that make a rhythm
_REGULAR_SPREAD_MAX = 0.25  # of the median distance

META = RuleMeta(
    code="GST108",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    causes=("disk-stalled",),
    needs=("guest_disk_util_pct|guest_disk_queue_count", "disk_iops|disk_reads_per_s|disk_writes_per_s"),
    uses=(
        "guest_disk_await_ms",
        "guest_disk_discards_per_s",
        "disk_read_mib_per_s",
        "disk_write_mib_per_s",
        "guest_blocked_count",
        "guest_cpu_iowait_pct",
        "guest_run_queue_count",
    ),
    thresholds={
        "util_min": Threshold(95.0, "pct", f"{_IOSTATS}, field 10; Judgement: 5 % for samples that are cut unevenly"),
        "queue_min": Threshold(1.0, "count", f"{_IOSTATS}, field 9: one request under way at any time"),
        "done_max": Threshold(10.0, "per_s", "Judgement: a tenth of what one spinning disk does"),
        "moved_max": Threshold(1.0, "mib_per_s", "Judgement: a disk that moves more is slow, it does not stand still"),
        "duration": Threshold(1.0, "s", "Judgement: no healthy disk keeps every request for so long"),
        "high_sum": Threshold(2.0, "s", "Judgement: every session that touches the disk feels it"),
        "blocked_min": Threshold(1.0, "count", "Judgement: one task that waits shows that requests are real"),
        "iowait_min": Threshold(1.0, "pct", "Judgement: some CPU idles for I/O"),
        "starved": Threshold(2.0, "ratio", "yaspe documentation: run queue per CPU"),
    },
    explains=GUEST_AND_DATABASE_WAIT_FOR_DISK,
    examines="disks",
)


@dataclass(frozen=True, slots=True, eq=False)
class _Disk:
    """What one recording shows of one disk, [n] each; NaN not measured."""

    entity: Entity
    group: SeriesGroup
    util_pct: NDArray[np.floating[Any]]
    queue: NDArray[np.floating[Any]]
    done_per_s: NDArray[np.floating[Any]]
    moved_mib_per_s: NDArray[np.floating[Any]]


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per whole block device; of several recordings of one disk the one that shows the longest standstill."""
    longest: dict[Entity, Finding] = {}
    for disk in _disks(context):
        finding = _finding(context, disk)
        known = longest.get(disk.entity)
        if finding is not None and (known is None or finding.score > known.score):
            longest[disk.entity] = finding
    yield from longest.values()


def _disks(context: RuleContext) -> Iterator[_Disk]:
    seen: set[tuple[int, Entity]] = set()
    for metric in ("guest_disk_util_pct", "guest_disk_queue_count"):
        for group in context.of(metric, EntityKind.BLOCK_DEVICE):
            done = io_rate(context, group)
            if done is None:
                continue
            unknown = np.full(done.shape, np.nan)
            discards = _aligned(context, group, "guest_disk_discards_per_s", unknown)
            done = done + np.nan_to_num(discards)
            queue = _queue(context, group, done, unknown)
            util = group.values if metric == "guest_disk_util_pct" else unknown
            moved = io_rate(context, group, (("disk_read_mib_per_s", "disk_write_mib_per_s"),))
            moved = unknown if moved is None else moved
            for row, entity in enumerate(group.entities):
                if is_whole(context, entity) and (group.source, entity) not in seen:
                    seen.add((group.source, entity))
                    yield _Disk(entity, group, util[row], queue[row], done[row], moved[row])


def _queue(
    context: RuleContext, group: SeriesGroup, done: NDArray[np.floating[Any]], unknown: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """Requests under way [k, n] as recorded, else by Little's law from those that completed."""
    await_ms = _aligned(context, group, "guest_disk_await_ms", unknown)
    by_law = np.where(done == 0, 0.0, done * await_ms / MS_PER_S)
    if group.metric == "guest_disk_queue_count":
        return group.values
    queue = _aligned(context, group, "guest_disk_queue_count", unknown)
    return np.where(np.isnan(queue), by_law, queue)


def _aligned(
    context: RuleContext, group: SeriesGroup, metric: str, unknown: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    values = context.aligned(group, metric)
    return unknown if values is None else values


def _standing(context: RuleContext, disk: _Disk) -> NDArray[np.bool_]:
    """Samples [n] in which the disk stood still."""
    util, queue, done = disk.util_pct, np.nan_to_num(disk.queue), disk.done_per_s
    with np.errstate(invalid="ignore", divide="ignore"):
        busy = util >= context.limit("util_min")
        under_way = busy | (disk.queue >= context.limit("queue_min"))
        few = (done <= context.limit("done_max")) & ~(disk.moved_mib_per_s >= context.limit("moved_max"))
        # What completed does not account for the busy time: others were under way and did not complete.
        unaccounted = 100.0 * (util / 100.0 - queue) >= context.limit("util_min")
        waited = (busy | np.isnan(util)) & (queue / done >= context.limit("duration")) & (queue >= 1.0)
        standing: NDArray[np.bool_] = under_way & few & ((done == 0) | unaccounted | waited)
    return standing


def _stalls(context: RuleContext, disk: _Disk, standing: NDArray[np.bool_]) -> list[Window]:
    """Spans of samples on end in which the disk stood still, those that are long enough."""
    starts, ends = sample_bounds(disk.group)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], standing, [False])).astype(np.int8)))
    spans = [(int(starts[first]), int(ends[last - 1])) for first, last in zip(edges[::2], edges[1::2], strict=True)]
    least_ns = _STILL_SHARE * context.limit("duration") * 1e9
    return [Window(start, end) for start, end in spans if end - start >= least_ns]


def _finding(context: RuleContext, disk: _Disk) -> Finding | None:
    standing = _standing(context, disk)
    stalls = _stalls(context, disk, standing)
    if not stalls:
        return None
    stood_s = [(stall.end_ns - stall.start_ns) / 1e9 for stall in stalls]
    total_s, name = sum(stood_s), disk.entity.label()
    often = len(stalls) > 1
    times = f"{len(stalls)} times, {total_s:.3g} s in sum" if often else f"for {total_s:.3g} s"
    done = float(np.median(disk.done_per_s[standing]))
    rest = "none completed" if done == 0 else f"only {show(done, 'per_s')} completed"
    certain = often or total_s + 1e-6 >= context.limit("high_sum")
    finding = context.finding(
        disk.entity,
        f"Disk {name} stood still {times}: requests were under way and {rest}",
        [_measured(context, disk, standing), *_named(stalls, stood_s), *_rhythm(stalls)],
        severity=Severity.HIGH if certain else Severity.MEDIUM,
        windows=joined_windows(stalls, _GAP_S),
        score=min(total_s / context.limit("duration"), SCORE_MAX),
    )
    if not np.any(disk.done_per_s > 0):
        finding = _without_completions(context, finding)
    return starved_by_cpu(context, finding)


def _measured(context: RuleContext, disk: _Disk, standing: NDArray[np.bool_]) -> Evidence:
    """What the disk showed while it stood still, and what a request waited where some completed."""
    name, done = disk.entity.label(), float(np.median(disk.done_per_s[standing]))
    util, queue = float(np.median(disk.util_pct[standing])), float(np.median(disk.queue[standing]))
    parts = [f"{show(done, 'per_s')} completed"]
    if np.isfinite(util):
        parts.insert(0, f"{show(util, 'pct')} utilisation")
    if done > 0 and queue >= context.limit("queue_min"):
        parts.append(f"{queue:.3g} requests under way, so each waits about {queue / done:.3g} s")
    by_util = bool(np.isfinite(util))
    return Evidence(
        f"{name} meanwhile: {', '.join(parts)}",
        metric="guest_disk_util_pct" if by_util else "guest_disk_queue_count",
        entity=disk.entity,
        statistic="median",
        value=util if by_util else queue,
        threshold=context.limit("util_min" if by_util else "queue_min"),
        unit="pct" if by_util else "count",
        source=context.source_name(disk.group),
    )


def _named(stalls: list[Window], stood_s: list[float]) -> Iterator[Evidence]:
    if len(stalls) > 1:
        longest = sorted(stood_s, reverse=True)[:_NAMED_COUNT_MAX]
        shown = ", ".join(f"{seconds:.3g} s" for seconds in longest)
        yield Evidence(f"the longest of {len(stalls)}: {shown}", statistic="max", value=longest[0], unit="s")


def _rhythm(stalls: list[Window]) -> Iterator[Evidence]:
    """Evidence that the disk stands still at equal distances, as a job or a timer makes it."""
    distances = np.diff([stall.start_ns for stall in stalls]) / 1e9
    if len(distances) < _REGULAR_COUNT_MIN:
        return
    usual = float(np.median(distances))
    if np.all(np.abs(distances - usual) <= _REGULAR_SPREAD_MAX * usual):
        yield Evidence(f"it stops about every {usual:.3g} s", statistic="median", value=usual, unit="s")


def _without_completions(context: RuleContext, finding: Finding) -> Finding:
    """A disk that never completed anything: dead, or a counter that is stuck. Tasks that wait tell them apart."""
    guest = finding.entity.ancestor(EntityKind.GUEST)
    for metric, limit in (("guest_blocked_count", "blocked_min"), ("guest_cpu_iowait_pct", "iowait_min")):
        waiting = None if guest is None else mean_of(context, metric, guest, finding.windows)
        if waiting is not None and waiting >= context.limit(limit):
            return finding
    doubt = Evidence(
        "but it completed nothing in the whole recording and no task was seen waiting: its busy counter may be stuck"
    )
    return context.finding(
        finding.entity,
        finding.summary,
        [*finding.evidence, doubt],
        severity=Severity.LOW,
        windows=finding.windows,
        score=finding.score,
    )
