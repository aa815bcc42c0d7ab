"""A plan reads far more rows than it keeps: an index is missing, or is not used.

Finds:
    A plan of 100 ms or longer with a node that read and threw away more than 10,000 rows, more than a hundred (warning)
    or a thousand (critical) for each row that it kept.

Why:
    A filter that is applied after the read costs CPU and blocks for each row. An index leads to the rows that are
    wanted, and no disk or memory is needed for the others.

Do:
    Create an index on the columns of the Filter of the node that is named (CREATE INDEX CONCURRENTLY), partial or with
    all columns that are needed. Run ANALYZE on the table where the estimated rows are far from the real ones.

When it is wrong:
    A report that looks for a few rows once a day may scan. A filter with a function needs an index on that expression.

Sources:
    PostgreSQL documentation, "Using EXPLAIN": Rows Removed by Filter. Judgement: a hundred rows for one is no index;
    10,000 rows are read in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.latest import by_entity

_REMOVED, _KEPT, _TOOK = "db_plan_rows_removed_count", "db_plan_rows_kept_count", "db_plan_ms"

META = RuleMeta(
    code="DBS188",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("statement",),
    needs=(_REMOVED, _KEPT),
    uses=(_TOOK,),
    thresholds={
        "warn": Threshold(100.0, "ratio", "Judgement: no index leads to these rows"),
        "crit": Threshold(1_000.0, "ratio", "Judgement: ten times the warning"),
        "rows": Threshold(10_000.0, "count", "Judgement: fewer are read in milliseconds"),
        "took_ms": Threshold(100.0, "ms", "Judgement: nobody asks about a quicker statement"),
    },
    explains=("db-plan-reads",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per plan."""
    kept, took = by_entity(context, _KEPT), by_entity(context, _TOOK)
    for plan, removed in by_entity(context, _REMOVED).items():
        of_one = removed / max(kept.get(plan, 0.0), 1.0)
        is_slow = took.get(plan, float("inf")) >= context.limit("took_ms")
        if removed <= context.limit("rows") or of_one <= context.limit("warn") or not is_slow:
            continue
        limit = context.stated_limit("warn")
        node = context.inventory.get(plan, "scans_for_nothing") or "a node"
        text = f"{node} read {removed:,.0f} rows and threw them away, and kept {kept.get(plan, 0.0):,.0f}"
        evidence = Evidence(
            text, metric=_REMOVED, entity=plan, statistic="sum", value=of_one, threshold=limit, unit="ratio"
        )
        duration = f" of {show(took[plan], 'ms')}" if plan in took else ""
        summary = f"In {plan.name}{duration} {text}"
        severity = Severity.HIGH if of_one > context.limit("crit") else Severity.MEDIUM
        yield context.finding(plan, summary, [evidence], severity=severity, score=of_one / limit)
