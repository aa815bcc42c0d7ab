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

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import several
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows
from leadline.rules._families.logged_events import occurrences

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
    for events in occurrences(context, "db_out_of_space_errors_per_s", EntityKind.DATABASE):
        if events.total < context.limit("least"):
            continue
        name = events.entity.label()
        evidence = Evidence(
            f"its log says {several(events.total, 'time')} that no space is left on a device",
            metric=events.group.metric,
            entity=events.entity,
            statistic="sum",
            value=float(events.total),
            threshold=context.limit("least"),
            unit="count",
            source=context.source_name(events.group),
        )
        windows = joined_windows(events.windows, _GAP_S)
        yield context.finding(events.entity, f"{name} cannot store rows: its disk is full", [evidence], windows=windows)
