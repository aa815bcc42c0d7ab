"""The hypervisor stopped a VM for longer than a moment.

Finds:
    Standstills of a VM that its log tells ("vm stopped for ... us") of more than 1 s; of high severity from 10 s, or
    when they come to that in sum. With the snapshot or consolidation of disks that was under way.

Why:
    To take a snapshot, to consolidate disks or to move a VM the hypervisor stops it, for well under a second when
    storage is quick. While it is stopped nothing in the guest runs: connections time out, clusters fail over, clocks
    jump. Nothing that is recorded inside the guest shows it but a gap.

Do:
    Where it was stopped by a consolidation: remove snapshots at a time of few writes, and soon after they were taken,
    so that little is to be merged; take backups with few and short snapshots, of a database by its own means.

    Look which job took the snapshot: backup software names it. Back up databases by their own means or from a standby.
    Keep the VM's disks on storage that is quick for small synchronous writes, and look at latency of the datastore in
    the same seconds. Do not snapshot memory. Raise the timeouts of cluster software above the longest standstill.

When it is wrong:
    A VM that was suspended on purpose, or moved while it was not in use, was stopped for as long.

Sources:
    VMware KB 1002836 and 2039754: a VM is stopped while a snapshot is taken or committed.
    Judgement: 1 s is what sessions feel as a hang; 10 s is beyond the usual timeouts of clusters.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.events import Happened, events_of
from leadline.core.model.finding import Evidence, Finding, Window, iso
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="VMC191",
    layer=Layer.VM,
    severity=Severity.HIGH,
    needs=("vm_stopped_s",),
    thresholds={
        "warn": Threshold(1.0, "s", "Judgement: sessions feel it as a hang"),
        "high_sum": Threshold(10.0, "s", "Judgement: beyond the usual timeouts of clusters"),
        "near": Threshold(300.0, "s", "Judgement: a snapshot that ended within five minutes belongs to it"),
        "open": Threshold(86_400.0, "s", "Judgement: consolidations take hours, not days"),
    },
    explains=("guest-disk-stalled", *GUEST_AND_DATABASE_WAIT_FOR_DISK),
    clears=False,
)
_KINDS = ("snapshot-created", "snapshot-quiesced", "snapshot-consolidated")
_SHOWN_MAX = 4
_NS_PER_S = 1e9


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    for group in context.of("vm_stopped_s", EntityKind.VM):
        for row in range(len(group.entities)):
            with np.errstate(invalid="ignore"):
                places = np.flatnonzero(group.values[row] > context.limit("warn")).tolist()
            if places:
                yield _finding(context, group, row, places)


def _finding(context: RuleContext, group: SeriesGroup, row: int, places: list[int]) -> Finding:
    vm = group.entities[row]
    stopped_s = {place: float(group.values[row][place]) for place in places}
    longest = sorted(places, key=lambda place: -stopped_s[place])[:_SHOWN_MAX]
    evidence = []
    for place in sorted(longest):
        end_ns = int(group.times_ns[place])
        start_ns = end_ns - round(stopped_s[place] * _NS_PER_S)
        around = _around(context, vm, Window(start_ns, end_ns))
        evidence.append(
            Evidence(
                f"{vm.label()} stood still for {stopped_s[place]:,.3g} s from {iso(start_ns)} to {iso(end_ns)}{around}",
                metric=group.metric,
                entity=vm,
                statistic="max",
                value=stopped_s[place],
                threshold=context.limit("warn"),
                unit="s",
                source=context.source_name(group),
            )
        )
    if len(places) > len(evidence):
        evidence.append(Evidence(f"and {len(places) - len(evidence)} shorter ones"))
    total_s, most_s = sum(stopped_s.values()), max(stopped_s.values())
    times = f"{len(places)} times, the longest for {most_s:,.3g} s" if len(places) > 1 else f"for {most_s:,.3g} s"
    ends = {place: int(group.times_ns[place]) for place in places}
    windows = [Window(ends[place] - round(stopped_s[place] * _NS_PER_S), ends[place]) for place in places]
    return context.finding(
        vm,
        f"VM {vm.label()} was stopped by the hypervisor {times}{_around(context, vm, _widest(windows))}",
        evidence,
        severity=Severity.HIGH if total_s >= context.stated_limit("high_sum") else Severity.MEDIUM,
        windows=joined_windows(windows),
        score=min(total_s / context.stated_limit("warn"), SCORE_MAX),
    )


def _widest(windows: list[Window]) -> Window:
    return max(windows, key=lambda window: window.duration_s)


def _around(context: RuleContext, vm: Entity, window: Window) -> str:
    """The snapshot or consolidation during which a VM was stopped, as the end of a sentence; empty where none was."""
    near_ns, open_ns = (round(context.stated_limit(name) * _NS_PER_S) for name in ("near", "open"))
    events = events_of(context.inventory, vm, _KINDS)
    before = [event for event in events if event.time_ns <= window.end_ns]
    if before and _is_begin(before[-1]) and window.start_ns - before[-1].time_ns <= open_ns:
        return f", during a {_noun(before[-1])} that began at {iso(before[-1].time_ns)}"
    near = [e for e in events if window.start_ns - near_ns <= e.time_ns <= window.end_ns + near_ns]
    if not near:
        return ""
    nearest = min(near, key=lambda event: min(abs(event.time_ns - window.start_ns), abs(event.time_ns - window.end_ns)))
    return f", near a {_noun(nearest)} ({nearest.text or 'logged'} at {iso(nearest.time_ns)})"


def _is_begin(event: Happened) -> bool:
    return "begins" in event.text


def _noun(event: Happened) -> str:
    if event.kind == "snapshot-consolidated":
        return "consolidation of snapshots"
    return "quiesced snapshot" if event.kind == "snapshot-quiesced" else "snapshot"
