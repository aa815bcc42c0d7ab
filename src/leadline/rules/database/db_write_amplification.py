"""Each changed row writes more than before: too many indexes, or a table made for reading.

Finds:
    At least 1.5 times as many log records for each changed row as in the normal time, and no fewer page writes,
    while rows go on to change (at least three tenths as many).

Why:
    Every index of a table is written with each row. One that nobody needs costs log, pages and cache of every insert.

Do:
    List indexes that no statement uses (pg_stat_user_indexes with idx_scan = 0, sys.schema_unused_indexes) and drop
    them; look at what was created last. Lower fillfactor where updates move rows.

When it is wrong:
    After a checkpoint PostgreSQL writes whole pages into its log for a while (full_page_writes).

Sources:
    PostgreSQL documentation, "Indexes"; MySQL reference, Innodb_log_write_requests.
    Judgement: 1.5 times is beyond what the same statements vary over half a minute.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import LONGER_TRANSACTIONS, changed, ratio, throughput

META = RuleMeta(
    code="DBS163",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_rows_changed_per_s", "db_log_records_per_s", "db_page_writes_per_s"),
    uses=("db_tps", "db_qps"),
    thresholds={
        "records": Threshold(1.5, "ratio", "Judgement: beyond what the same statements vary"),
        "pages": Threshold(1.0, "ratio", "Judgement: rows with more indexes do not write fewer pages"),
        "kept": Threshold(0.3, "ratio", "Judgement: with fewer rows the background's own records count"),
        "load": Threshold(3.0, "ratio", "Judgement: with this many more rows it is a bulk load"),
    },
    explains=LONGER_TRANSACTIONS,
    clears=False,
    causes=("write-amplification",),
    of_incident=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database whose rows change."""
    rows, records = context.change("db_rows_changed_per_s"), context.change("db_log_records_per_s")
    pages, done = context.change("db_page_writes_per_s"), throughput(context)
    if rows is None or records is None or pages is None or not rows.normal or not rows.during:
        return
    if not context.limit("kept") <= ratio(rows) < context.limit("load") or ratio(done) < context.limit("kept"):
        return
    per_row = ratio(records) / ratio(rows), ratio(pages) / ratio(rows)
    if per_row[0] < context.limit("records") or per_row[1] < context.limit("pages"):
        return
    summary = (
        f"Each changed row writes {per_row[0]:.2g} times as much log and {per_row[1]:.2g} times as many pages as before"
    )
    yield changed(context, rows.entity, summary, (records, pages, rows, done))
