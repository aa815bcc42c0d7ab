"""A virtual disk of a VM on Hyper-V ends requests with errors.

Finds:
    The error count of a virtual disk that rises while it is recorded.

Why:
    Hyper-V counts a request that it could not complete on the VHDX: the volume was away or full, a path failed, the
    file is damaged. The guest repeats it or sees an I/O error; a database that sees one on its log stops, and on a
    data file may leave a damaged page.

Do:
    On the host, read the System log of these minutes: Get-WinEvent -LogName System, sources disk, Ntfs, mpio and
    StorDiag, then Microsoft-Windows-Hyper-V-StorageVSP-Admin. Check free space of the volume that holds the VHDX and
    the state of its paths. In the guest, check the database for damaged pages before the next backup replaces a good
    one.

When it is wrong:
    The counter also counts requests a guest makes that the disk does not have, as some programs do when they start: a
    few errors once, at the start of a guest, are no fault.

Sources:
    Microsoft's explanation of Hyper-V Virtual Storage Device, Error Count: the total number of errors that have
    occurred on this virtual device.
    Judgement: one error more while it was recorded is enough to look, ten are a fault.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows
from leadline.estate.language.templates import SCORE_MAX

META = RuleMeta(
    code="VMC192",
    layer=Layer.VM,
    severity=Severity.HIGH,
    needs=("virtual_disk_errors_count",),
    thresholds={
        "warn": Threshold(0.0, "count", "Judgement: one error is enough to look"),
        "crit": Threshold(10.0, "count", "Judgement: that many are no start of a guest"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""
    for group in context.of("virtual_disk_errors_count", EntityKind.VIRTUAL_DISK):
        for row in range(len(group.entities)):
            measured = np.flatnonzero(~np.isnan(group.values[row]))
            counts = group.values[row][measured]
            rises = np.diff(counts)
            rises[rises < 0] = counts[1:][rises < 0]  # the count began anew: the disk was attached again
            if rises.sum() > context.limit("warn"):
                yield _finding(
                    context,
                    group,
                    row,
                    [(int(measured[i]), int(measured[i + 1]), rises[i]) for i in np.flatnonzero(rises > 0)],
                )


def _finding(context: RuleContext, group: SeriesGroup, row: int, rises: list[tuple[int, int, float]]) -> Finding:
    disk, total = group.entities[row], float(sum(rise for _, _, rise in rises))
    windows = [Window(int(group.times_ns[before]), int(group.times_ns[after])) for before, after, _ in rises]
    evidence = Evidence(
        f"the error count of {disk.label()} rose by {total:,.0f}",
        metric=group.metric,
        entity=disk,
        statistic="rise",
        value=total,
        threshold=context.limit("warn"),
        unit="count",
        source=context.source_name(group),
    )
    many = total > context.stated_limit("crit")
    return context.finding(
        disk,
        f"virtual disk {disk.label()} ended {total:,.0f} requests with errors",
        [evidence],
        severity=Severity.HIGH if many else Severity.MEDIUM,
        windows=joined_windows(windows),
        score=min(total / context.stated_limit("crit"), SCORE_MAX),
    )
