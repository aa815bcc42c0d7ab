"""The database cannot store what it is asked to: the disk below it is full.

Finds:
    Messages of the server that no space is left on a device, in its log. One is enough.

Why:
    A table that cannot be extended fails the statement, and the application tries again or waits; a sort without room
    for its temporary file fails; a log that cannot be written stops the server. Throughput falls while disk, CPU and
    network are idle, so no counter of load shows why.

Do:
    Free space on the file system that the message names: files beside the database first (exports, dumps, old logs),
    then log kept by a dead replication slot or a failing archiver, then temporary files of long queries. Extend the
    disk while the server runs. Never delete files of the database or of its log by hand.

When it is wrong:
    A quota or a temporary tablespace of fixed size gives the same message; then the disk has room, the quota has not.

Sources:
    PostgreSQL documentation, appendix "PostgreSQL Error Codes": 53100 disk_full; chapter "Disk Full Failure".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.episodes import joined_windows, sample_bounds

_GAP_S = 30.0  # Judgement: an application that tries again every half minute is still stopped

META = RuleMeta(
    code="DBS170",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_out_of_space_errors_per_s",),
    thresholds={"least": Threshold(1.0, "count", "PostgreSQL documentation, 53100 disk_full: the statement failed")},
    explains=("guest-filesystem-full", "db-lock-waits", "db-transactions-held-open", "db-component-response-time"),
    clears=False,
    causes=("disk-full",),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """A finding per database server whose log has such a message."""
    for group in context.of("db_out_of_space_errors_per_s", EntityKind.DATABASE):
        starts, ends = sample_bounds(group)
        seconds = (ends - starts) / 1e9
        for entity, rates in zip(group.entities, group.values, strict=True):
            full = np.flatnonzero(rates > 0)
            count = float(np.nansum(rates * seconds))
            if round(count) < context.limit("least"):
                continue
            name = entity.label()
            evidence = Evidence(
                f"its log says {count:.0f} time{'s' if round(count) != 1 else ''} that no space is left on a device",
                metric=group.metric,
                entity=entity,
                statistic="sum",
                value=count,
                threshold=context.limit("least"),
                unit="count",
                source=context.source_name(group),
            )
            windows = [Window(int(starts[place]), int(ends[place])) for place in full]
            summary = f"{name} cannot store rows: its disk is full"
            yield context.finding(entity, summary, [evidence], windows=joined_windows(windows, _GAP_S))
