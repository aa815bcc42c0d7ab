"""Programs waited long for reads, writes or syncs of their files.

Finds:
    A guest in which a tracer saw a read, write, open or sync of a file take 100 ms or more (high: 1 s), in at least
    three seconds of the recording.

Why:
    What ext4slower and its kin print is the time that a program itself waited for its file: the disk, the queue in
    front of it, the journal and locks of the file system, all together. A slow sync of a transaction log is a slow
    commit.

Do:
    Look at which file it was and who waited. Where the disk's own latency (`iostat -x 1`, `biosnoop-bpfcc -Q`) is as
    long in the same seconds, the storage is slow. Where it is not, the file system is: a full journal, many syncs at
    once, writeback of dirty pages (`sysctl vm.dirty_bytes`), a snapshot, or an NFS server.

When it is wrong:
    Reads of 100 ms of a backup or of a large sequential read hurt nobody. The tracer prints nothing of what is quicker
    than its limit.

Sources:
    bcc, tools/ext4slower_example.txt. B. Gregg, BPF Performance Tools, chapter 8, File Systems.
    Judgement: 100 ms is ten times what a spinning disk takes; three seconds of it are no single accident.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.episodes import joined_windows, sample_bounds
from leadline.estate.templates import SCORE_MAX
from leadline.rules._families.symptoms import DATABASE_WAITS_FOR_DISK

_LONGEST = "guest_file_wait_ms_max"
_SYNC = "guest_file_sync_wait_ms_max"
META = RuleMeta(
    code="GST179",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=(_LONGEST,),
    uses=(_SYNC, "guest.slow_files_ms"),
    thresholds={
        "warn": Threshold(100.0, "ms", "Judgement: ten times what a spinning disk takes"),
        "crit": Threshold(1000.0, "ms", "Judgement: every user notices"),
        "often": Threshold(3.0, "count", "Judgement: fewer seconds are a single accident"),
        "gap": Threshold(60.0, "s", "Judgement: waits a minute apart are one trouble"),
    },
    explains=DATABASE_WAITS_FOR_DISK,
    clears=False,  # what is quicker than the tracer's limit is not printed
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    for group in context.of(_LONGEST, EntityKind.GUEST):
        starts, ends = sample_bounds(group)
        for row, guest in enumerate(group.entities):
            waits_ms = np.nan_to_num(group.values[row])
            places = np.flatnonzero(waits_ms >= context.limit("warn")).tolist()
            if len(places) < context.limit("often"):
                continue
            peak_ms = float(waits_ms.max())
            windows = joined_windows([Window(int(starts[i]), int(ends[i])) for i in places], context.limit("gap"))
            severity = META.severity if peak_ms >= context.limit("crit") else META.severity.lowered()
            who = _who(context)
            yield context.finding(
                guest,
                f"{who or f'A program of {guest.name}'} waited up to {show(peak_ms, 'ms')} for its files",
                [_evidence(group, guest, len(places), peak_ms), *_details(context, guest)],
                severity=severity,
                windows=windows,
                score=min(peak_ms / context.limit("warn"), SCORE_MAX),
            )


def _evidence(group: SeriesGroup, guest: Entity, count: int, peak_ms: float) -> Evidence:
    return Evidence(
        f"operations on files took up to {show(peak_ms, 'ms')}, long ones in {count} seconds",
        metric=group.metric,
        entity=guest,
        statistic="max",
        value=peak_ms,
        unit="ms",
    )


def _details(context: RuleContext, guest: Entity) -> Iterator[Evidence]:
    """The slowest sync, and the files that were waited for longest."""
    syncs = [float(np.nanmax(group.values)) for group in context.of(_SYNC, EntityKind.GUEST)]
    if syncs:
        yield Evidence(f"the slowest sync took {show(max(syncs), 'ms')}", metric=_SYNC, value=max(syncs), unit="ms")
    files = context.inventory.get(guest, "slow_files_ms")
    if isinstance(files, dict) and files:
        slowest = sorted(files.items(), key=lambda item: -float(item[1]))[:3]
        names = ", ".join(f"{name} ({show(float(wait), 'ms')})" for name, wait in slowest)
        yield Evidence(f"slowest files: {names}", entity=guest)


def _who(context: RuleContext) -> str:
    """The program with the longest waits together; "" where none is known."""
    sums: dict[str, float] = {}
    for group in context.of(_LONGEST, EntityKind.PROCESS):
        for row, program in enumerate(group.entities):
            sums[program.name] = sums.get(program.name, 0.0) + float(np.nansum(group.values[row]))
    return max(sums, key=lambda name: sums[name], default="")
