"""Pages are flushed while hardly anything changes: a flush command or a checkpoint holds everybody up.

Finds:
    At least half fewer rows changed than in the normal time, and as many pages written or more, so that each changed
    row costs at least three times as many page writes; fewer than half of the transactions end. Not where three times
    as many sessions wait for locks: then these hold everybody up, and pages are written meanwhile.

Why:
    FLUSH TABLES, a flush of the logs or a checkpoint that must end now writes all dirty pages at once, and some of
    these commands hold a lock until the last statement has ended and the last page is on disk.

Do:
    Look for the command: SHOW PROCESSLIST ("Waiting for table flush"), the server's log, scheduled jobs and backup
    tools. Let pages be written all the time (innodb_io_capacity, checkpoint_completion_target = 0.9) so that
    few are left when somebody asks.

When it is wrong:
    After a bulk load the pages of its rows are written for a while; then the load is the cause.

Sources:
    MySQL reference, "FLUSH Statement"; PostgreSQL documentation, "WAL Configuration".
    Judgement: half of the transactions lost is an incident; three times the writes per row are not chance.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import LONGER_TRANSACTIONS, changed, ratio, shown, throughput

META = RuleMeta(
    code="DBS162",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_page_writes_per_s|db_checkpoint_pages_per_s", "db_rows_changed_per_s", "db_tps|db_qps"),
    uses=("db_blocked_sessions_count",),
    thresholds={
        "blocked": Threshold(3.0, "ratio", "Judgement: locks alone explain that"),
        "least": Threshold(10.0, "per_s", "Judgement: fewer pages are nobody's trouble"),
        "kept": Threshold(0.8, "ratio", "Judgement: a fifth less is the noise of page writes, which come in bursts"),
        "per_row": Threshold(3.0, "ratio", "Judgement: beyond what the same statements vary"),
        "done": Threshold(0.5, "ratio", "Judgement: half of the transactions lost is an incident"),
    },
    explains=LONGER_TRANSACTIONS,
    clears=False,
    causes=("flush", "checkpoints"),
    of_incident=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database that writes most pages."""
    rows, done = context.change("db_rows_changed_per_s"), throughput(context)
    pages = context.change("db_page_writes_per_s") or context.change("db_checkpoint_pages_per_s")
    if rows is None or done is None or pages is None or ratio(done) >= context.limit("done"):
        return
    enough = max(context.limit("kept"), context.limit("per_row") * ratio(rows))
    if pages.during < context.limit("least") or ratio(pages) < enough:
        return
    if ratio(context.change("db_blocked_sessions_count")) >= context.limit("blocked"):
        return
    summary = f"Pages are flushed ({shown(pages)}) while hardly a row changes ({shown(rows)})"
    yield changed(context, pages.entity, summary, (rows, pages, done))
