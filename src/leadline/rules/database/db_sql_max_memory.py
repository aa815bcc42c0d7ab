"""SQL Server may take more memory than the machine can spare.

Finds:
    max server memory (MB) at its default of 2147483647, or above the memory of the machine (medium); or above what is
    left when the operating system keeps 4 GiB and 1 GiB of every 8 (low).

Why:
    The buffer pool grows to what it is allowed. Then Windows trims working sets or pages, and on a host short of memory
    the balloon driver takes pages from the engine: both read from disk what was in memory a moment ago.

Do:
    Set max server memory to the VM's memory less 4 GiB, less 1 GiB for every 8 GiB, less what backup agents, Analysis
    or Reporting Services and other instances use. Reserve the VM's memory on the host.

When it is wrong:
    On a machine of one small instance the engine gives memory back when Windows asks, and nothing happens. Managed
    instances set it themselves. The reserve is a rule of thumb: watch "Available MBytes".

Sources:
    Architecting Microsoft SQL Server on VMware vSphere.
    Judgement: the reserve of 4 GiB and an eighth.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import MIB, by_parameter, memory_bytes, number_of

META = RuleMeta(
    code="DBS123",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.parameters",),
    thresholds={
        "reserve": Threshold(4.0, "gib", "Judgement: Windows and the engine's own needs outside the pool"),
        "reserve_share": Threshold(12.5, "pct", "Judgement: 1 GiB of every 8"),
    },
    clears=False,
    judgement=True,
)

_UNLIMITED = 2_147_483_647.0


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per SQL Server instance."""

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        asked, memory = number_of(value), memory_bytes(context.inventory, database) / MIB
        if asked == _UNLIMITED:
            return f"{database.label()} has no limit on its memory", META.severity
        if asked > memory:
            return f"{database.label()} may take {asked:.0f} MiB of a machine with {memory:.0f}", META.severity
        left = memory * (1.0 - context.limit("reserve_share") / 100.0) - context.limit("reserve") * 1024.0
        if asked > max(left, 0.0):
            spare = memory - asked
            summary = f"{database.label()} may take {asked:.0f} of {memory:.0f} MiB and leaves the system {spare:.0f}"
            return summary, Severity.LOW
        return None

    yield from by_parameter(context, "sqlserver", "max server memory (MB)", judge)
