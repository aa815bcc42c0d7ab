"""Storage stands still: commands are outstanding and none completes.

Finds:
    A device or datastore of a host (a path or an adapter, where neither was recorded) that completes nothing for 5 s or
    more, in two samples on end or more, while one command or more is outstanding; up to 10 completed per second count
    too, where by Little's law those took 5 s or more each. High severity from 10 s in sum, or when it comes again.
    Low severity where nothing completed in the whole recording and no command was queued.

Why:
    Latency is the mean of commands that completed: while none does, esxtop prints 0.00, and every limit on latency
    stays quiet. The guests' requests wait as long as the storage stands still.

Do:
    Look at these seconds in vmkernel.log: aborts, "performance has deteriorated", paths or the NFS server lost (APD,
    PDL), resets. Then at the array, the filer and the network between: a failover, a full pool, a rebuild. A snapshot
    that is created or removed stalls one VM, not the device.

When it is wrong:
    Some drivers keep a command outstanding for ever on a device that nobody uses; that is why a device without any
    completion needs commands in the queue. Samples longer than the standstill hide it.

Sources:
    VMware, "Using esxtop to identify storage performance issues": ACTV, QUED, CMDS/s.
    J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.
    Judgement: 5 s, one sample of esxtop, is more than any device takes; 10 s is felt by every session; two samples,
    since the outstanding commands are those of a moment.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows, sample_bounds
from leadline.estate.derived.disks import io_rate
from leadline.estate.derived.latencies import NEAREST
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK, WAITS_FOR_DEVICE

_GAP_S = 60.0  # Judgement: standstills a minute apart are one trouble
_SAMPLES_MIN = 2
_STILL_SHARE = 0.9  # of the least duration: samples are often a little shorter than their interval

META = RuleMeta(
    code="STO151",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    needs=("disk_active_count|disk_queued_count", "disk_iops|disk_reads_per_s|disk_writes_per_s"),
    thresholds={
        "outstanding_min": Threshold(1.0, "count", "esxtop ACTV: one command is under way"),
        "done_max": Threshold(10.0, "per_s", "Judgement: a tenth of what one spinning disk does"),
        "duration": Threshold(5.0, "s", "Judgement: one sample of esxtop; no device takes as long"),
        "high_sum": Threshold(10.0, "s", "Judgement: every session that touches the storage feels it"),
    },
    explains=(*WAITS_FOR_DEVICE, *GUEST_AND_DATABASE_WAIT_FOR_DISK, "guest-disk-stalled"),
    clears=False,
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device and datastore, else per path or adapter."""
    kinds = [(kind,) for kind in NEAREST[1:]]
    for some in ((EntityKind.DEVICE, EntityKind.DATASTORE), *kinds):
        groups = context.of("disk_active_count", *some) or context.of("disk_queued_count", *some)
        for group in groups:
            yield from _of_group(context, group)
        if groups:
            return


def _of_group(context: RuleContext, group: SeriesGroup) -> Iterator[Finding]:
    done = io_rate(context, group)
    if done is None:
        return
    queued = context.aligned(group, "disk_queued_count") if group.metric == "disk_active_count" else group.values
    waiting = np.zeros(done.shape) if queued is None else np.nan_to_num(queued)
    outstanding = np.nan_to_num(group.values) + (waiting if group.metric == "disk_active_count" else 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        slow = (done <= context.limit("done_max")) & (outstanding / done >= context.stated_limit("duration"))
        still = (outstanding >= context.limit("outstanding_min")) & ((done == 0.0) | slow)
    starts, ends = sample_bounds(group)
    for row in np.flatnonzero(still.any(axis=1)):
        spans = list(_spans(context, still[row], starts, ends))
        if spans:
            works = bool(np.any(done[row] > 0) or np.any(waiting[row] > 0))
            yield _finding(context, group, int(row), spans, float(np.median(outstanding[row][still[row]])), works=works)


def _spans(
    context: RuleContext, still: NDArray[np.bool_], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> Iterator[Window]:
    """Spans of samples on end in which nothing completed, those that are long enough."""
    least_ns = _STILL_SHARE * context.limit("duration") * 1e9
    edges = np.flatnonzero(np.diff(np.concatenate(([False], still, [False])).astype(np.int8)))
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if end - first >= min(_SAMPLES_MIN, len(still)) and ends[end - 1] - starts[first] >= least_ns:
            yield Window(int(starts[first]), int(ends[end - 1]))


def _finding(
    context: RuleContext, group: SeriesGroup, row: int, spans: list[Window], outstanding: float, *, works: bool
) -> Finding:
    entity = group.entities[row]
    total_s = sum(span.duration_s for span in spans)
    times = f"{len(spans)} times, {total_s:.3g} s in sum" if len(spans) > 1 else f"for {total_s:.3g} s"
    evidence = [
        Evidence(
            f"{entity.label()} meanwhile: {outstanding:,.0f} commands outstanding, hardly any completed",
            metric=group.metric,
            entity=entity,
            statistic="median",
            value=outstanding,
            threshold=context.limit("outstanding_min"),
            unit="count",
            source=context.source_name(group),
        )
    ]
    is_certain = len(spans) > 1 or total_s >= context.limit("high_sum")
    severity = Severity.HIGH if is_certain else Severity.MEDIUM
    if not works:
        evidence.append(Evidence("but nothing completed in the whole recording, nor was queued: it may be unused"))
        severity = Severity.LOW
    return context.finding(
        entity,
        f"{entity.label()} stood still {times}: {outstanding:,.0f} commands outstanding, none completed",
        evidence,
        severity=severity,
        windows=joined_windows(spans, _GAP_S),
        score=min(total_s / context.stated_limit("duration"), SCORE_MAX),
    )
