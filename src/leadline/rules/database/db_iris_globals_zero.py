"""IRIS chooses the size of its global buffers itself.

Finds:
    globals of the CPF all 0 (automatic): a quarter of the machine's memory at start. Low where SystemMode says that the
    instance is not live.

Why:
    Automatic is made for first steps. The cache changes with the machine, on a dedicated server it is too small, beside
    other programs too large, and huge pages cannot be reserved for a size nobody chose.

Do:
    Set globals for the block sizes in use (8 KB in most cases), usually to more than half of a dedicated server's
    memory; reserve huge pages for globals, routines and gmheap together; reserve the VM's memory.

When it is wrong:
    Development and test instances, containers with a size of their own.

Sources:
    InterSystems documentation, Memory and Startup Settings: automatic is not appropriate for production.
    yaspe documentation (IRIS KPI reference, sp_check).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import by_parameter, number_of, parameter, shown

META = RuleMeta(
    code="DBS143",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("database.parameters",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per IRIS instance."""

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        # One size in MB per block size: 2, 4, 8, 16, 32, 64 KB.
        sizes = [number_of(part) for part in (value if isinstance(value, str) else shown(value)).split(",")]
        if any(size != 0 for size in sizes):  # NaN, what is not a size, is not 0 either
            return None
        mode = parameter(context.inventory, database, "SystemMode")
        live = mode is None or str(mode).strip().casefold() in {"", "live"}
        return f"{database.label()} sizes its global buffers itself", META.severity if live else Severity.LOW

    yield from by_parameter(context, "iris", "globals", judge)
