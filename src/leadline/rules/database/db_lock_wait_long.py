"""A session has waited for a lock for seconds and still waits.

Finds:
    The longest wait for a lock that a snapshot shows: more than 5 s (warning) or 30 s (critical). The session that most
    wait for is named where it is known.

Why:
    Whoever waits for a lock does no work, however fast the disk is. A snapshot shows how long the wait has lasted, so
    one is enough. Behind a session that waits for a table all others queue that need it.

Do:
    Find who holds the lock: pg_blocking_pids(PID), or sys.innodb_lock_waits in MySQL. Look at what that session does:
    often nothing, in a transaction that nobody ended. End it when it is stuck, commit sooner, and set lock_timeout or
    innodb_lock_wait_timeout.

When it is wrong:
    A migration may be meant to wait for its turn.

Sources:
    PostgreSQL documentation, pg_locks and pg_stat_activity; MySQL reference manual, "InnoDB Standard Monitor".
    Judgement: 5 s, as a user would; 30 s is when applications give up.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.latest import by_entity

_AGE, _BLOCKED, _BEHIND = "db_lock_wait_age_s_max", "db_blocked_sessions_count", "db_sessions_behind_blocker_count"

META = RuleMeta(
    code="DBS182",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("lock-waits",),
    needs=(_AGE,),
    uses=(_BLOCKED, _BEHIND),
    thresholds={
        "warn": Threshold(5.0, "s", "Judgement: what a user calls a standstill"),
        "crit": Threshold(30.0, "s", "Judgement: applications give up"),
    },
    explains=("db-component-response-time", "db-lock-waits"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per server."""
    blocked = by_entity(context, _BLOCKED)
    heads: dict[Entity, list[tuple[float, Entity]]] = {}
    for session, count in by_entity(context, _BEHIND).items():
        if session.parent is not None:
            heads.setdefault(session.parent, []).append((count, session))
    for server, longest_s in by_entity(context, _AGE).items():
        if longest_s <= context.limit("warn"):
            continue
        limit = context.stated_limit("warn")
        text = f"the longest wait for a lock has lasted {show(longest_s, 's')}"
        evidence = [
            Evidence(text, metric=_AGE, entity=server, statistic="max", value=longest_s, threshold=limit, unit="s")
        ]
        if server in blocked:
            evidence.append(Evidence(f"{blocked[server]:.0f} sessions wait for a lock", metric=_BLOCKED, entity=server))
        if server in heads:
            count, session = max(heads[server], key=lambda head: head[0])
            waiting = f"{count:.0f} of them wait for the session with {session.name}"
            evidence.append(Evidence(waiting, metric=_BEHIND, entity=session))
        summary = f"A session of {server.label()} has waited {show(longest_s, 's')} for a lock and still waits"
        severity = Severity.HIGH if longest_s > context.limit("crit") else Severity.MEDIUM
        yield context.finding(server, summary, evidence, severity=severity, score=longest_s / limit)
