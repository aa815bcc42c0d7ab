"""A backup or an export reads the database and sends it out.

Finds:
    At least three times as much sent over the network as in the normal time, at least five times as many rows read by
    scans, and pages read from disk that did not become much fewer (0.6), while fewer transactions end.

Why:
    A dump reads every table once. It fills the buffer pool with pages nobody else needs, takes the disk's reads, and
    may hold a lock that makes writers wait until it ends.

Do:
    Move it to a quiet hour or a replica; limit its rate (pg_basebackup --max-rate, pv); take it without a global lock
    (mysqldump --single-transaction). Back up the storage's snapshot instead of the tables.

When it is wrong:
    A report that fetches millions of rows looks the same; it is treated the same.

Sources:
    PostgreSQL documentation, pg_dump; MySQL reference, mysqldump --lock-all-tables.
    Judgement: three times the traffic and five times the scans are beyond what the same statements vary.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import LONGER_TRANSACTIONS, changed, ratio, shown, throughput

META = RuleMeta(
    code="DBS160",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_rows_scanned_per_s", "net_tx_mbit_per_s"),
    uses=("db_tps", "db_qps", "db_page_reads_per_s"),
    thresholds={
        "sent": Threshold(3.0, "ratio", "Judgement: beyond what the same statements vary"),
        "rows": Threshold(5.0, "ratio", "Judgement: beyond what the same statements vary"),
        "reads": Threshold(0.6, "ratio", "Judgement: a dump reads what is not in memory"),
        "done": Threshold(0.9, "ratio", "Judgement: a tenth fewer transactions is noise"),
    },
    explains=(*LONGER_TRANSACTIONS, "db-pages-flushed", "db-transactions-held-open", "guest-disk-await-high"),
    clears=False,
    causes=("export",),
    of_incident=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database that scans most."""
    rows, sent, done = context.change("db_rows_scanned_per_s"), context.change("net_tx_mbit_per_s"), throughput(context)
    reads = context.change("db_page_reads_per_s")
    if rows is None or sent is None or done is None or ratio(done) >= context.limit("done"):
        return
    if ratio(rows) < context.limit("rows") or ratio(sent) < context.limit("sent"):
        return
    if reads is not None and ratio(reads) < context.limit("reads"):
        return
    summary = f"A backup or export reads and sends the database: {shown(sent)} sent"
    yield changed(context, rows.entity, summary, (sent, rows, reads, done))
