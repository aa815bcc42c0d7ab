"""More work came in: more sessions ran statements at once.

Finds:
    At least 1.5 times as many sessions that run a statement as in the normal time, and at least two more, with a sign
    that more was asked for: 1.1 times as many transactions that ended, or twice as many connected sessions. Where those
    were not recorded, twice as many sessions at work are a sign too, but only beyond a number that did not move in
    the normal time (at least ten, within a quarter): there every client always waits for its answer, so more sessions
    are more clients. Of medium severity where fewer transactions ended (0.9): then something else is slow too. More
    sessions at work alone are no sign of more work: they add up whenever each takes longer.

Why:
    Work that comes in faster than it can be done queues. Nothing broke; what was enough for the usual load is not
    enough for this one.

Do:
    Find out who asks for more: count sessions by application and client address (pg_stat_activity, SHOW PROCESSLIST).
    Put a pool before the database that lets in as many sessions as it has CPUs and disks for. If the work is
    wanted, size for it: `leadline plan cpu` and `leadline plan layout`.

When it is wrong:
    A pool that opens connections because the database became slow looks like more work; the other findings say why.

Sources:
    Little's law: sessions at work = throughput x response time.
    Judgement: 1.5 times is more than the noise of a busy second; with twice as many, users would call it a rush.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.incident import Change
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import (
    LATENCY,
    LONGER_TRANSACTIONS,
    THROUGHPUT,
    asked_for,
    changed,
    ratio,
    shown,
)

META = RuleMeta(
    code="DBS158",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_active_sessions_count", "db_tps|db_qps"),
    uses=(
        *LATENCY,
        "db_sessions_count",
        "db_logical_reads_per_s",
    ),
    thresholds={
        "sessions": Threshold(1.5, "ratio", "Judgement: more than the noise of a busy second"),
        "least": Threshold(2.0, "count", "Judgement: one session more is nobody's rush"),
        "connected": Threshold(2.0, "ratio", "Judgement: parallel workers count as sessions, and may be half of them"),
        "rush": Threshold(2.0, "ratio", "Judgement: twice as many as every client that there was"),
        "many": Threshold(10.0, "count", "Judgement: fewer may all be at work by chance"),
        "steady": Threshold(0.25, "ratio", "Judgement: of clients that always wait, as many are always at work"),
        "done": Threshold(1.1, "ratio", "Judgement: a tenth more transactions is more than noise"),
        "kept": Threshold(0.9, "ratio", "Judgement: a tenth fewer transactions is noise"),
        "heavier": Threshold(2.0, "ratio", "Judgement: more of the same work reads as many pages for each transaction"),
    },
    explains=LONGER_TRANSACTIONS,
    clears=False,
    causes=("more-work", "connections"),
    of_incident=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database with most sessions."""
    sessions, done = context.change("db_active_sessions_count"), asked_for(context)
    connected = context.change("db_sessions_count")
    if sessions is None or done is None or sessions.during - sessions.normal < context.limit("least"):
        return
    if ratio(sessions) < context.limit("sessions"):
        return
    crowded = _is_crowded(context, sessions) if connected is None else ratio(connected) >= context.limit("connected")
    if crowded or (ratio(done) >= context.limit("done") and not _is_heavier(context)):
        yield changed(
            context,
            sessions.entity,
            f"More work came in: {shown(sessions)} sessions at once",
            (sessions, connected, done),
            severity=None if ratio(done) >= context.limit("kept") else Severity.MEDIUM,
        )


def _is_heavier(context: RuleContext) -> bool:
    """Whether the transactions of the server read more pages each than before."""
    done = {change.entity: change for name in THROUGHPUT for change in context.changes(name)}
    read = [change for change in context.changes("db_logical_reads_per_s") if change.entity in done]
    busiest = max(read, key=lambda change: change.during, default=None)
    return busiest is not None and ratio(busiest) >= context.limit("heavier") * ratio(done[busiest.entity])


def _is_crowded(context: RuleContext, sessions: Change) -> bool:
    """Whether more sessions are at work than there were clients, all of which were always at work before."""
    is_steady = sessions.noise <= context.limit("steady") * sessions.normal
    many = sessions.normal >= context.limit("many")
    return many and is_steady and ratio(sessions) >= context.limit("rush")
