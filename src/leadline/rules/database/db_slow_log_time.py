"""The slow query log shows where the time of statements goes: into locks, or into rows that are read for nothing.

Finds:
    Logged statements that waited for locks for more than 40 % (warning) or 70 % (critical) of their time; else a
    statement that took more than 30 % (warning) or 60 % (critical) of all logged time, reads more than 10,000 rows each
    time it runs, and at least a hundred for each row that it returns or changes.

Why:
    Query_time contains Lock_time: what is lock wait no disk and no CPU can shorten. Rows that are read and thrown away
    cost CPU and push others out of the buffer pool. More than 100,000 rows a second are read from memory by a busy CPU;
    far fewer mean that the statement waits as well, for pages from disk or for a CPU.

Do:
    Start with the statement that is named: it is where most of the time goes.

    Where locks take the time: find who keeps them (SHOW ENGINE INNODB STATUS, performance_schema.data_lock_waits) and
    make those transactions shorter.

    Where rows are read for nothing: look at EXPLAIN of the statement that is named, and give it an index for its WHERE
    and its ORDER BY. Look at iostat -x only where it reads few rows a second.

When it is wrong:
    The log holds only what is slower than long_query_time. Reports are meant to read much.

Sources:
    MySQL 8.4 reference manual, "The Slow Query Log" (Query_time, Lock_time, Rows_examined, Rows_sent).
    Judgement: 40 % of the time is felt; a hundred rows for one is no index; one CPU reads 100,000 rows a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.latest import by_entity

if TYPE_CHECKING:
    from leadline.core.model.entities import Entity

_TIME, _LOCK, _CALLS = "db_logged_time_s", "db_logged_lock_time_s", "db_logged_calls_count"
_EXAMINED, _RETURNED = "db_logged_rows_examined_count", "db_logged_rows_returned_count"

META = RuleMeta(
    code="DBS185",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("statement", "lock-waits"),
    needs=(_TIME,),
    uses=(_LOCK, _CALLS, _EXAMINED, _RETURNED),
    thresholds={
        "lock_warn": Threshold(40.0, "pct", "Judgement: it is felt"),
        "lock_crit": Threshold(70.0, "pct", "Judgement: most of the time"),
        "share_warn": Threshold(30.0, "pct", "Judgement: a third of all"),
        "share_crit": Threshold(60.0, "pct", "Judgement: most of all"),
        "rows": Threshold(10_000.0, "count", "Judgement: fewer are read in 0.1 s"),
        "rows_of_one": Threshold(100.0, "ratio", "Judgement: no index leads to them"),
        "rows_per_s": Threshold(100_000.0, "per_s", "Judgement: what one CPU reads from memory"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per server."""
    numbers = {metric: by_entity(context, metric) for metric in (_TIME, _LOCK, _CALLS, _EXAMINED, _RETURNED)}
    for server in dict.fromkeys(one.parent for one in numbers[_TIME]):
        sums = {metric: {s: v for s, v in known.items() if s.parent == server} for metric, known in numbers.items()}
        whole_s, lock_s = sum(sums[_TIME].values()), sum(sums[_LOCK].values())
        if server is None or whole_s <= 0:
            continue
        if 100.0 * lock_s / whole_s > context.limit("lock_warn"):
            yield _of_locks(context, server, sums, (whole_s, lock_s))
        else:
            yield from _of_rows(context, sums, whole_s)


def _of_locks(
    context: RuleContext, server: Entity, sums: dict[str, dict[Entity, float]], seconds: tuple[float, float]
) -> Finding:
    """The finding of statements that waited for locks."""
    whole_s, lock_s = seconds
    lock_pct = 100.0 * lock_s / whole_s
    most = max(sums[_LOCK], key=lambda one: sums[_LOCK][one])
    evidence = Evidence(
        f"{most.name} waited for locks for {sums[_LOCK][most]:.3g} s of its {sums[_TIME].get(most, 0.0):.3g} s",
        metric=_LOCK,
        entity=most,
        statistic="sum",
        value=lock_pct,
        threshold=context.stated_limit("lock_warn"),
        unit="pct",
    )
    summary = (
        f"Statements in the slow log of {server.label()} waited for locks for {lock_pct:.0f} % of their time "
        f"({lock_s:.3g} of {whole_s:.3g} s)"
    )
    severity = Severity.HIGH if lock_pct > context.limit("lock_crit") else Severity.MEDIUM
    score = lock_pct / context.stated_limit("lock_warn")
    finding = context.finding(server, summary, [evidence], severity=severity, score=score)
    return replace(finding, remedy=context.advice("Where locks"))


def _of_rows(context: RuleContext, sums: dict[str, dict[Entity, float]], whole_s: float) -> Iterator[Finding]:
    """The finding of the statement that took most time, where it reads far more rows than it needs."""
    most = max(sums[_TIME], key=lambda one: sums[_TIME][one])
    took_s, calls = sums[_TIME][most], sums[_CALLS].get(most, 1.0)
    examined, returned = sums[_EXAMINED].get(most, 0.0), sums[_RETURNED].get(most, 0.0)
    share_pct = 100.0 * took_s / whole_s
    is_wasteful = examined > context.limit("rows") and examined / max(returned, 1.0) >= context.limit("rows_of_one")
    if share_pct <= context.limit("share_warn") or not is_wasteful:
        return
    per_s = examined * calls / took_s
    from_memory = per_s >= context.limit("rows_per_s")
    rest = "a CPU that reads from memory" if from_memory else "it waits as well, for pages from disk or for a CPU"
    evidence = [
        Evidence(
            f"{most.name}: {calls:.0f} times, {took_s:.3g} s in all, {share_pct:.0f} % of the logged time",
            metric=_TIME,
            entity=most,
            statistic="sum",
            value=share_pct,
            threshold=context.stated_limit("share_warn"),
            unit="pct",
        ),
        Evidence(f"it reads {per_s:,.0f} rows/s: {rest}", metric=_EXAMINED, entity=most),
    ]
    summary = (
        f"{most.name} reads {examined:,.0f} rows to return {returned:,.0f}: {share_pct:.0f} % of the slow log's time"
    )
    severity = Severity.HIGH if share_pct > context.limit("share_crit") else Severity.MEDIUM
    score = share_pct / context.stated_limit("share_warn")
    finding = context.finding(most, summary, evidence, severity=severity, score=score)
    yield replace(finding, remedy=context.advice("Where rows"))
