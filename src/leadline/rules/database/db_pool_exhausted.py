"""Clients wait for a connection of the pool: it is too small for what its connections are kept for.

Finds:
    More than one client on average (warning) or five (critical) that wait for a connection to the server, or one that
    has waited for longer than 1 s (warning) or 10 s (critical).

Why:
    The pool gives a connection to one client until its transaction ends. A slow statement, a lock, or a client that
    thinks inside its transaction keeps it, and all others queue. To them the database is slow, while it may be idle.

Do:
    Look at what the connections do meanwhile (pg_stat_activity): slow statements, waits for locks, idle in transaction.
    Shorten these first. Then raise default_pool_size of the pool, up to what the server's CPUs and disks can do at
    once (two to four for each CPU). Use pool_mode = transaction where the application allows it.

When it is wrong:
    A burst after a restart of the application, until connections are there.

Sources:
    PgBouncer documentation, SHOW POOLS (cl_waiting, maxwait) and SHOW STATS (avg_wait_time). Judgement: one client that
    always waits is felt; a wait of a second is seen by a user.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.latest import by_entity

_WAITING, _AGE = "db_pool_waiting_count", "db_pool_wait_age_s_max"
_WAIT, _IDLE = "db_pool_wait_ms", "db_pool_idle_in_transaction_pct"
_BUSY, _FREE = "db_pool_busy_count", "db_pool_free_count"

_BESIDE = (
    (_WAIT, "ms", "a transaction waits {} for a connection"),
    (_BUSY, "count", "{} connections to the server are in use"),
    (_FREE, "count", "{} connections to the server are free"),
    (_IDLE, "pct", "connections wait for their clients for {} of the time of transactions"),
)

META = RuleMeta(
    code="DBS189",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("connections",),
    needs=(f"{_WAITING}|{_AGE}",),
    uses=(_WAIT, _IDLE, _BUSY, _FREE),
    thresholds={
        "warn": Threshold(1.0, "count", "Judgement: a client that always waits"),
        "crit": Threshold(5.0, "count", "Judgement: a queue"),
        "age_warn": Threshold(1.0, "s", "Judgement: a user sees it"),
        "age_crit": Threshold(10.0, "s", "Judgement: applications give up"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per pool."""
    waiting: dict[Entity, float] = {}
    for group in context.of(_WAITING):
        for pool, values in zip(group.entities, group.values, strict=True):
            if np.isfinite(values).any():
                waiting[pool] = float(np.nanmean(values))
    ages, beside = by_entity(context, _AGE), [(by_entity(context, one[0]), *one) for one in _BESIDE]
    for pool in dict.fromkeys([*waiting, *ages]):
        count, age_s = waiting.get(pool, 0.0), ages.get(pool, 0.0)
        if count <= context.limit("warn") and age_s <= context.limit("age_warn"):
            continue
        text = f"{show(count, 'count')} clients wait for a connection of {pool.label()}"
        if age_s > context.limit("age_warn"):
            text += f", one of them for {show(age_s, 's')}"
        limit = context.stated_limit("warn")
        evidence = Evidence(
            text, metric=_WAITING, entity=pool, statistic="mean", value=count, threshold=limit, unit="count"
        )
        is_critical = count > context.limit("crit") or age_s > context.limit("age_crit")
        severity = Severity.HIGH if is_critical else Severity.MEDIUM
        score = max(count / limit, age_s / context.stated_limit("age_warn"))
        yield context.finding(pool, text, [evidence, *_beside(pool, beside)], severity=severity, score=score)


def _beside(pool: Entity, known: list[tuple[dict[Entity, float], str, str, str]]) -> Iterator[Evidence]:
    """What is known of the connections meanwhile."""
    for values, metric, unit, text in known:
        if pool in values:
            yield Evidence(text.format(show(values[pool], unit)), metric=metric, entity=pool)
