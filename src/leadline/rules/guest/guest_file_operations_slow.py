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
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows, sample_bounds
from leadline.estate.language.templates import SCORE_MAX
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
_FILES_SHOWN = 3


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    who, syncs_ms = _who(context), _slowest_syncs_ms(context)
    for group in context.of(_LONGEST, EntityKind.GUEST):
        starts, ends = sample_bounds(group)
        for guest, values in zip(group.entities, group.values, strict=True):
            waits_ms = np.nan_to_num(values)
            places = np.flatnonzero(waits_ms >= context.limit("warn")).tolist()
            if len(places) < context.limit("often"):
                continue
            peak_ms = float(waits_ms.max())
            windows = joined_windows([Window(int(starts[i]), int(ends[i])) for i in places], context.limit("gap"))
            severity = META.severity if peak_ms >= context.limit("crit") else META.severity.lowered()
            yield context.finding(
                guest,
                f"{who.get(guest) or f'A program of {guest.name}'} waited up to {show(peak_ms, 'ms')} for its files",
                [
                    Evidence(
                        f"operations on files took up to {show(peak_ms, 'ms')}, long ones in {len(places)} seconds",
                        metric=group.metric,
                        entity=guest,
                        statistic="max",
                        value=peak_ms,
                        unit="ms",
                    ),
                    *_details(context, guest, syncs_ms.get(guest)),
                ],
                severity=severity,
                windows=windows,
                score=min(peak_ms / context.limit("warn"), SCORE_MAX),
            )


def _details(context: RuleContext, guest: Entity, sync_ms: float | None) -> Iterator[Evidence]:
    """The slowest sync, and the files that were waited for longest."""
    if sync_ms is not None:
        yield Evidence(f"the slowest sync took {show(sync_ms, 'ms')}", metric=_SYNC, value=sync_ms, unit="ms")
    files = context.inventory.get(guest, "slow_files_ms")
    if isinstance(files, dict) and files:
        slowest = sorted(files.items(), key=lambda item: -float(item[1]))[:_FILES_SHOWN]
        names = ", ".join(f"{name} ({show(float(wait), 'ms')})" for name, wait in slowest)
        yield Evidence(f"slowest files: {names}", entity=guest)


def _slowest_syncs_ms(context: RuleContext) -> dict[Entity, float]:
    """The slowest sync of each guest that has one."""
    slowest: dict[Entity, float] = {}
    for group in context.of(_SYNC, EntityKind.GUEST):
        for guest, values in zip(group.entities, np.nan_to_num(group.values), strict=True):
            slowest[guest] = max(float(values.max()), slowest.get(guest, 0.0))
    return {guest: wait_ms for guest, wait_ms in slowest.items() if wait_ms > 0}


def _who(context: RuleContext) -> dict[Entity, str]:
    """The program of each guest with the longest waits together."""
    sums: dict[Entity, float] = {}
    for group in context.of(_LONGEST, EntityKind.PROCESS):
        for program, values in zip(group.entities, group.values, strict=True):
            sums[program] = sums.get(program, 0.0) + float(np.nansum(values))
    longest: dict[Entity, tuple[float, str]] = {}
    for program, total_ms in sums.items():
        if program.parent is not None:
            longest[program.parent] = max((total_ms, program.name), longest.get(program.parent, (0.0, "")))
    return {guest: name for guest, (_, name) in longest.items()}
