"""A statement reads far more rows than before.

Finds:
    At least five times as many rows read by scans as in the normal time, no more transactions to show for them, and
    more CPU used or more pages read from disk (1.2 times). Rows that are sent out in bulk are another finding's
    (db-export-running).

Why:
    A missing index, a changed plan or a new report reads a thousand rows where one was read. It takes the CPUs and the
    buffer pool from everybody else, and disks have nothing to do with it.

Do:
    Name the statement: pg_stat_statements or performance_schema by rows and time, auto_explain, the slow query log.
    Look at its plan for a scan of a whole table, at statistics that are out of date, and for an index that was dropped.

When it is wrong:
    Reports at night may be meant to read much. Rows of small tables that fit in memory cost little.

Sources:
    PostgreSQL documentation, pg_stat_database.tup_returned; MySQL reference, Handler_read_rnd_next.
    Judgement: five times is beyond what a mix of the same statements varies; 1.2 times of CPU is seen by others.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import LATENCY, LONGER_TRANSACTIONS, asked_for, changed, cpu_used, ratio, shown

META = RuleMeta(
    code="DBS159",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_rows_scanned_per_s",),
    uses=(
        *LATENCY,
        "db_tps",
        "db_qps",
        "db_page_reads_per_s",
        "guest_cpu_busy_pct",
        "guest_cpu_user_pct",
        "guest_cpu_system_pct",
        "net_tx_mbit_per_s",
    ),
    thresholds={
        "rows": Threshold(5.0, "ratio", "Judgement: beyond what a mix of the same statements varies"),
        "cost": Threshold(1.2, "ratio", "Judgement: what others feel of its CPU or its reads"),
        "done": Threshold(1.5, "ratio", "Judgement: with more transactions it is more work"),
        "sent": Threshold(3.0, "ratio", "Judgement: rows that leave in bulk are an export"),
    },
    explains=(
        *LONGER_TRANSACTIONS,
        "db-more-work",
        "guest-cpu-taken",
        "guest-cpu-usage-high",
        "guest-run-queue-high",
        "guest-load-average-per-core",
    ),
    clears=False,
    causes=("statement",),
    of_incident=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database that scans most."""
    rows, done, cpu = context.change("db_rows_scanned_per_s"), asked_for(context), cpu_used(context)
    reads, sent = context.change("db_page_reads_per_s"), context.change("net_tx_mbit_per_s")
    if rows is None or ratio(rows) < context.limit("rows") or ratio(done) >= context.limit("done"):
        return
    if ratio(sent) >= context.limit("sent") or max(ratio(cpu), ratio(reads)) < context.limit("cost"):
        return
    yield changed(context, rows.entity, f"Statements scan {shown(rows)} rows", (rows, done, cpu, reads))
