"""IRIS bounds its lock table by an old default, or gives locks more than half of the heap.

Finds:
    locksiz at 16777216 or 33554432 bytes, the defaults of former versions; or above half of gmheap. 0 means no bound of
    its own and is fine.

Why:
    A lock table that is full makes LOCK commands wait for room, and everyone who wanted the lock with them; no disk is
    busy meanwhile. Locks take their memory from the shared memory heap: a bound near its size leaves nothing to the
    heap's other users.

Do:
    Set locksiz = 0, the present default, which lets the table grow into the heap, and enlarge gmheap if it is needed.
    The change takes effect at once.

When it is wrong:
    An application that relies on a fixed bound. A table that is never more than partly used.

Sources:
    InterSystems IRIS documentation, locksiz. yaspe documentation (IRIS KPI reference, sp_check).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import (
    KIB,
    finding_of_parameters,
    number_of,
    of_engine,
    parameter,
    shown,
)

META = RuleMeta(
    code="DBS142",
    layer=Layer.DATABASE,
    severity=Severity.LOW,
    needs=("database.parameters",),
    thresholds={"share_max": Threshold(50.0, "pct", "yaspe documentation, sp_check: half of gmheap")},
    clears=False,
)

_FORMER_DEFAULTS = (16_777_216.0, 33_554_432.0)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per IRIS instance."""
    for database in of_engine(context.inventory, "iris"):
        locks = parameter(context.inventory, database, "locksiz")
        heap = parameter(context.inventory, database, "gmheap")
        bound, heap_bytes = number_of(locks), number_of(heap) * KIB
        if locks is None or not bound > 0:
            continue
        values = {"locksiz": locks}
        if bound in _FORMER_DEFAULTS:
            summary = f"{database.label()} bounds its lock table at {shown(bound)} bytes, a former default"
        elif heap is not None and heap_bytes > 0 and 100.0 * bound / heap_bytes > context.limit("share_max"):
            values["gmheap"] = heap
            summary = f"{database.label()} gives locks {100.0 * bound / heap_bytes:.0f} % of its shared memory heap"
        else:
            continue
        yield finding_of_parameters(context, database, (summary, META.severity), values)
