"""More work came in: more sessions ran statements at once.

Finds:
    At least 1.5 times as many sessions that run a statement as in the normal time, and at least two more, while as many
    transactions ended in a second as before, or more. Or twice as many while fewer ended: more work came in, and
    something else held it back too (medium severity).

Why:
    Work that comes in faster than it can be done queues. Nothing broke; what was enough for the usual load is not
    enough for this one.

Do:
    Find out who asks for more: count sessions by application and client address (pg_stat_activity, SHOW PROCESSLIST).
    Put a pool before the database that lets in as many sessions as it has CPUs and disks for. If the work is
    wanted, size for it: `leadline plan cpu` and `leadline plan iops`.

When it is wrong:
    Sessions also grow in number when each takes longer and clients do not wait for each other; then fewer transactions
    end, and another finding says why.

Sources:
    Little's law: sessions at work = throughput x response time.
    Judgement: 1.5 times is more than the noise of a busy second; with twice as many, users would call it a rush.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import LONGER_TRANSACTIONS, changed, ratio, shown, throughput

META = RuleMeta(
    code="DBS158",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_active_sessions_count", "db_tps|db_qps"),
    uses=("db_sessions_count",),
    thresholds={
        "sessions": Threshold(1.5, "ratio", "Judgement: more than the noise of a busy second"),
        "rush": Threshold(2.0, "ratio", "Judgement: twice as many sessions at once are a rush, whatever slows them"),
        "least": Threshold(2.0, "count", "Judgement: one session more is nobody's rush"),
        "kept": Threshold(0.9, "ratio", "Judgement: a tenth fewer transactions is noise"),
    },
    explains=(*LONGER_TRANSACTIONS, "db-transactions-held-open"),
    clears=False,
    causes=("more-work", "connections"),
    of_incident=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database with most sessions."""
    sessions, done = context.change("db_active_sessions_count"), throughput(context)
    if sessions is None or done is None or sessions.during - sessions.normal < context.limit("least"):
        return
    kept = ratio(done) >= context.limit("kept")
    if ratio(sessions) < context.limit("sessions" if kept else "rush"):
        return
    yield changed(
        context,
        sessions.entity,
        f"More work came in: {shown(sessions)} sessions at once",
        (sessions, done),
        severity=None if kept else Severity.MEDIUM,
    )
