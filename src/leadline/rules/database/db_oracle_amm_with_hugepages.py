"""Oracle's automatic memory management keeps it from using huge pages.

Finds:
    memory_target above 0.

Why:
    With memory_target the SGA lives in files of /dev/shm, which cannot be huge pages: the page tables of many server
    processes take gigabytes, and the huge pages reserved for the instance lie idle.

Do:
    Set sga_target and pga_aggregate_target (automatic shared memory management), set memory_target and
    memory_max_target to 0, reserve huge pages for the SGA, and restart.

When it is wrong:
    An instance of a few GiB with few processes may keep it. On Windows and AIX it works in another way.

Sources:
    Oracle Database documentation, MEMORY_TARGET and restrictions for HugePages configurations.
    Judgement: medium, since the size of the instance is not weighed.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import by_parameter, shown

META = RuleMeta(
    code="DBS133",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.parameters",),
    clears=False,
    judgement=True,
)

_UNSET = frozenset({"", "0", "0k", "0m", "0g"})  # a size, with or without its unit


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per Oracle database."""

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        size = value.strip().casefold() if isinstance(value, str) else shown(value)
        if size in _UNSET:
            return None
        return f"{database.label()} manages its memory by memory_target {size}, without huge pages", META.severity

    yield from by_parameter(context, "oracle", "memory_target", judge)
