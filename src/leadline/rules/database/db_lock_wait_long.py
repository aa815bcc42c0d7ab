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

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity

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
    for group in context.of(_AGE):
        for server, values in zip(group.entities, group.values, strict=True):
            longest_s = float(np.nanmax(values)) if np.isfinite(values).any() else 0.0
            if longest_s <= context.limit("warn"):
                continue
            limit = context.stated_limit("warn")
            evidence = [
                Evidence(
                    f"the longest wait for a lock has lasted {show(longest_s, 's')}",
                    metric=_AGE,
                    entity=server,
                    statistic="max",
                    value=longest_s,
                    threshold=limit,
                    unit="s",
                    source=context.source_name(group),
                )
            ]
            for metric, text in (
                (_BLOCKED, "{:.0f} sessions wait for a lock"),
                (_BEHIND, "{:.0f} of them wait for {}"),
            ):
                for further in context.of(metric):
                    for entity, row in zip(further.entities, further.values, strict=True):
                        if server in entity.lineage() and np.isfinite(row).any():
                            most = float(np.nanmax(row))
                            evidence.append(Evidence(text.format(most, entity.name), metric=metric, entity=entity))
            summary = f"A session of {server.label()} has waited {show(longest_s, 's')} for a lock and still waits"
            severity = Severity.HIGH if longest_s > context.limit("crit") else Severity.MEDIUM
            yield context.finding(server, summary, evidence[:4], severity=severity, score=longest_s / limit)
