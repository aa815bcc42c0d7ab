"""IRIS has a small shared memory heap.

Finds:
    gmheap set below 200 MB. 0 leaves the size to the instance (3 % of the global buffers, 300 MB to 2 GB) and is fine.

Why:
    Locks, the tables of processes and databases, and the buffers of parallel dejournaling on a mirror member come from
    this heap. When it is short, a mirror falls behind and locks fail while there is memory in plenty.

Do:
    Set gmheap = 0, or to 300 MB and more (it is written in KB) by the number of processes and of dejournaling jobs, and
    restart the instance.

When it is wrong:
    A small instance without mirror and with few processes does not need it.

Sources:
    InterSystems IRIS documentation, gmheap. yaspe documentation (IRIS KPI reference, sp_check): 200 MB.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import by_parameter, number_of

META = RuleMeta(
    code="DBS141",
    layer=Layer.DATABASE,
    severity=Severity.LOW,
    needs=("database.parameters",),
    thresholds={"warn": Threshold(200.0, "mib", "yaspe documentation, sp_check")},
    clears=False,
)

_KIB_PER_MIB = 1024.0


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per IRIS instance."""

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        heap, least = number_of(value) / _KIB_PER_MIB, context.limit("warn")
        if not 0 < heap < least:
            return None
        limit = show(least, "mib")
        return f"Shared memory heap of {database.label()} is {show(heap, 'mib')} (limit {limit})", META.severity

    yield from by_parameter(context, "iris", "gmheap", judge)
