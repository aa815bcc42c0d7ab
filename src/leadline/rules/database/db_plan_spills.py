"""A sort or a hash of a plan did not fit in memory and went to disk.

Finds:
    A plan that wrote more than 1,000 blocks (8 MB, warning) or 12,800 blocks (100 MB, critical) to temporary files.

Why:
    What does not fit in work_mem is written and read again, often more than once, on the disk of temporary files. It
    takes longer than in memory, and pushes what others need out of the page cache.

Do:
    Raise work_mem for that session alone (SET work_mem), to some times the size on disk that the plan names; each sort
    and each hash of each process may take as much. An index in the order of the sort needs no memory at all.

When it is wrong:
    Where I/O of temporary files is a small part of the plan's time (I/O Timings: temp), more memory gains little.

Sources:
    PostgreSQL documentation, work_mem, hash_mem_multiplier and EXPLAIN. Judgement: 8 MB is twice work_mem as it is
    set by default; 100 MB takes half a second on a disk of 200 MB/s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.latest import by_entity

_WRITTEN, _TOOK, _TEMP = "db_plan_temp_blocks_count", "db_plan_ms", "db_plan_temp_ms"
_BYTES_OF_BLOCK = 8192.0

META = RuleMeta(
    code="DBS187",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    causes=("temp-files",),
    needs=(_WRITTEN,),
    uses=(_TOOK, _TEMP),
    thresholds={
        "warn": Threshold(1_000.0, "count", "Judgement: twice work_mem as it is set by default"),
        "crit": Threshold(12_800.0, "count", "Judgement: half a second on a disk of 200 MB/s"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per plan."""
    took, temp = by_entity(context, _TOOK), by_entity(context, _TEMP)
    for plan, blocks in by_entity(context, _WRITTEN).items():
        if blocks <= context.limit("warn"):
            continue
        size = show(blocks * _BYTES_OF_BLOCK, "bytes")
        limit = context.stated_limit("warn")
        evidence = [
            Evidence(
                f"{plan.name} wrote {blocks:,.0f} blocks to temporary files",
                metric=_WRITTEN,
                entity=plan,
                statistic="sum",
                value=blocks,
                threshold=limit,
                unit="count",
            )
        ]
        nodes = context.inventory.get(plan, "spills")
        if nodes:
            evidence.append(Evidence(f"not in memory: {nodes}", entity=plan))
        if plan in temp and took.get(plan, 0.0) > 0:
            share = f"{show(temp[plan], 'ms')} of {show(took[plan], 'ms')} went to these files"
            evidence.append(Evidence(share, metric=_TEMP, entity=plan))
        summary = f"{plan.name} did not fit in work_mem: it wrote {size} to temporary files"
        severity = Severity.MEDIUM if blocks > context.limit("crit") else Severity.LOW
        yield context.finding(plan, summary, evidence, severity=severity, score=blocks / limit)
