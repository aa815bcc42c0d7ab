"""A host lost its access to a device or datastore for a time that its log tells.

Finds:
    Spans in which all paths to a device or datastore were down (APD), the device was gone for good (PDL) or the
    connection to an NFS server was lost, from the line that says so to the line that says it is back. A single path
    that was down is a finding of medium severity.

Why:
    Without a path commands neither succeed nor fail: guests hang and databases time out until storage is back. With one
    path less the others carry its load.

Do:
    Take it as an outage, not as slowness. Compare the span with the logs of the array or NFS server and of the
    switches, and repair what failed. Check that each host has two paths over separate fabrics, and set the response of
    vSphere HA to APD and PDL.

    Where a single path failed: check its port, cable, transceiver and zoning, and whether the other paths have errors.

When it is wrong:
    A LUN that was unmapped before it was detached, a planned failover and a restarted filer log the same. Where the log
    ends before storage was back, the end of the log is taken as the end.

Sources:
    VMware KB 2004684: APD and PDL. vSphere Storage, status of paths (active, standby, disabled, dead).
    Judgement: any span counts, since nothing is answered in it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.finding import Evidence, Finding, Window, iso
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows, sample_bounds
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK, SLOW_DEVICE, WAITS_FOR_DEVICE

META = RuleMeta(
    code="STO191",
    layer=Layer.STORAGE_PATH,
    severity=Severity.CRITICAL,
    causes=("disk-stalled",),
    needs=("disk_access_lost_pct",),
    thresholds={"warn": Threshold(0.0, "pct", "Judgement: any, since nothing is answered without a path")},
    explains=(
        "disk-latency-jump-logged",
        "disk-aborts",
        "disk-resets",
        "disk-failed-commands",
        *SLOW_DEVICE,
        *WAITS_FOR_DEVICE,
        *GUEST_AND_DATABASE_WAIT_FOR_DISK,
    ),
    clears=False,
    examines="disks",
)
_SHOWN_MAX = 4
_PCT = 100.0


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device, datastore and path."""
    for group in context.of("disk_access_lost_pct", EntityKind.DEVICE, EntityKind.DATASTORE, EntityKind.PATH):
        for row in range(len(group.entities)):
            with np.errstate(invalid="ignore"):
                is_lost = group.values[row] > context.limit("warn")
            if is_lost.any():
                yield _finding(context, group, row, is_lost)


def _finding(
    context: RuleContext, group: SeriesGroup, row: int, is_lost: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Finding:
    entity = group.entities[row]
    starts, ends = sample_bounds(group)
    windows = joined_windows([Window(int(starts[i]), int(ends[i])) for i in np.flatnonzero(is_lost).tolist()])
    lost_s = float(np.nansum(group.values[row] / _PCT * (ends - starts))) / 1e9
    is_path = entity.kind is EntityKind.PATH
    is_open = windows[-1].end_ns == int(ends[-1])
    times = f"{len(windows)} times, {lost_s:,.3g} s in sum" if len(windows) > 1 else f"for {lost_s:,.3g} s"
    if is_open:
        times = times if len(windows) > 1 else f"from {iso(windows[0].start_ns)} to the end of the log"
    longest = sorted(windows, key=lambda window: -window.duration_s)[:_SHOWN_MAX]
    evidence = [
        Evidence(
            f"{entity.label()} was gone from {iso(window.start_ns)} to {iso(window.end_ns)}"
            f"{', where the log ends' if is_open and window == windows[-1] else ''}",
            metric=group.metric,
            entity=entity,
            statistic="sum",
            value=window.duration_s,
            unit="s",
            source=context.source_name(group),
        )
        for window in sorted(longest, key=lambda window: window.start_ns)
    ]
    if len(windows) > len(evidence):
        evidence.append(Evidence(f"and {len(windows) - len(evidence)} shorter spans"))
    verb = "was down" if is_path else "could not be reached by the host"
    return context.finding(
        entity,
        f"{'Path' if is_path else 'Storage'} {entity.label()} {verb} {times}",
        evidence,
        severity=Severity.MEDIUM if is_path else Severity.CRITICAL,
        windows=windows,
        score=min(max(lost_s, 1.0), SCORE_MAX),
    )
