"""Large pages are switched off on a host.

Finds:
    Hosts whose advanced option Mem.AllocGuestLargePage or LPage.LPageAlwaysTryForNPT is 0.

Why:
    With nested page tables a memory access that misses the TLB walks two tables; large pages make the walk shorter
    and misses rarer. Switching them off, mostly done to let equal pages be shared sooner, costs a database with a
    large buffer pool several per cent of its CPU.

Do:
    Set both to 1 on hosts of databases: `esxcli system settings advanced set -o /Mem/AllocGuestLargePage -i 1` and
    `-o /LPage/LPageAlwaysTryForNPT -i 1`. VMs take it over as they are moved or started.

When it is wrong:
    Hosts of virtual desktops gain more from shared pages than from large ones.

Sources:
    Performance Best Practices for VMware vSphere: large pages are on by default and good for performance.
    Judgement: known of the field, not re-read at its source; what it costs depends on the load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import entry_findings

META = RuleMeta(
    code="MEM139",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.LOW,
    needs=("host.advanced_options",),
    thresholds={"on": Threshold(1.0, "count", "Performance Best Practices for VMware vSphere")},
    clears=False,
    judgement=True,
)

_OPTIONS = ("Mem.AllocGuestLargePage", "LPage.LPageAlwaysTryForNPT")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host and option."""
    for option in _OPTIONS:
        yield from entry_findings(context, (EntityKind.HOST, "advanced_options"), option, _judge(context, option))


def _judge(context: RuleContext, option: str) -> Callable[[Entity, float], tuple[str, Severity] | None]:
    def judge(host: Entity, value: float) -> tuple[str, Severity] | None:
        return (f"{option} is {value:g} on {host.label()}", META.severity) if value < context.limit("on") else None

    return judge
