"""The memory of a host is spread unevenly over its channels.

Finds:
    Hosts whose memory channels hold different amounts, empty ones included.

Why:
    A processor reads from all its channels in turn. Where they are filled unevenly, part of the memory is reached by
    fewer channels at a fraction of the bandwidth, and which pages lie there is chance: scans of a large buffer pool
    take now longer, now shorter.

Do:
    Fill all channels of all processors with equal modules, by the table in the server's manual. Rather fewer, larger
    modules on all channels than a mix.

When it is wrong:
    Loads that wait for disks do not feel memory bandwidth.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere: balanced memory.
    Judgement: known of the field, not re-read at its source.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_settings import number_of
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="HST111",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host.channel_memory_mib",),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""

    def judge(host: Entity, fact: Fact) -> tuple[str, Severity] | None:
        sizes = [number_of(size) for size in fact.value.values()]
        if not sizes or any(isnan(size) for size in sizes) or min(sizes) == max(sizes):
            return None
        summary = f"memory channels of {host.label()} hold {show(min(sizes), 'mib')} to {show(max(sizes), 'mib')}"
        return summary, META.severity

    yield from by_setting(context, EntityKind.HOST, "channel_memory_mib", judge)
