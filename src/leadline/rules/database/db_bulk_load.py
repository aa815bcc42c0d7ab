"""Rows are loaded in bulk: a restore, an import or a batch.

Finds:
    At least three times as many rows changed and three times as much log written as in the normal time, at least 50
    rows and 128 KiB of log a second more, while not more transactions end. Without an incident to compare: more than
    2 MiB/s of log with at least 50 rows inserted for each transaction.

Why:
    Every row goes into the log, into its table and into each index. The log's disk and the buffer pool belong to the
    load while it runs, and everybody else's commit waits behind its log.

Do:
    Load in smaller batches with pauses, or in a quiet hour; load before the indexes are made; COPY instead of INSERT;
    on a new table with wal_level = minimal. Give the log a disk of its own, and max_wal_size room for the load.

When it is wrong:
    A database whose purpose is loading does this all day.

Sources:
    PostgreSQL documentation, "Populating a Database".
    Judgement: three times is beyond what the usual mix of statements varies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import LONGER_TRANSACTIONS, changed, ratio, shown, throughput
from leadline.rules._families.levels import level, level_of
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from leadline.core.model.incident import Change

META = RuleMeta(
    code="DBS161",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_rows_changed_per_s", "db_log_bytes_per_s"),
    uses=("db_tps", "db_qps", "db_rows_inserted_per_s"),
    thresholds={
        "rows": Threshold(3.0, "ratio", "Judgement: beyond what the same statements vary"),
        "log": Threshold(3.0, "ratio", "Judgement: beyond what the same statements vary"),
        "batch": Threshold(50.0, "count", "Judgement: rows of a transaction that loads"),
        "rows_more": Threshold(50.0, "per_s", "Judgement: fewer are the statements of whoever samples the server"),
        "log_more": Threshold(131072.0, "bytes_per_s", "Judgement: the slowest disk writes as much"),
        "log_least": Threshold(2097152.0, "bytes_per_s", "Judgement: less fills no disk"),
        "done": Threshold(1.5, "ratio", "Judgement: with more transactions it is more work"),
    },
    explains=(
        *LONGER_TRANSACTIONS,
        *GUEST_AND_DATABASE_WAIT_FOR_DISK,
        "vm-iops-limit-hit",
        "db-checkpoints-requested",
        "db-pages-flushed",
    ),
    clears=False,
    causes=("bulk-load", "wal-volume"),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database whose rows change."""
    rows, log = level(context, "db_rows_changed_per_s"), level(context, "db_log_bytes_per_s")
    done = throughput(context)
    if rows is None or log is None or ratio(done) >= context.limit("done"):
        return
    much = rows.during - rows.normal >= context.limit("rows_more") and log.during - log.normal >= context.limit(
        "log_more"
    )
    grown = much and ratio(rows) >= context.limit("rows") and ratio(log) >= context.limit("log")
    if grown or (context.incident is None and _in_batches(context, log)):
        yield changed(context, rows.entity, f"Rows are loaded in bulk: {shown(rows)} changed", (rows, log, done))


def _in_batches(context: RuleContext, log: Change) -> bool:
    """Whether transactions insert many rows each, and fill the log."""
    inserted = level(context, "db_rows_inserted_per_s")
    done = None if inserted is None else level_of(context, "db_tps", inserted.entity)
    if inserted is None or done is None or log.during < context.limit("log_least"):
        return False
    return inserted.during >= context.limit("batch") * done.during
