"""Windows saves power where a database should run.

Finds:
    Windows guests whose power plan is not high performance (or ultimate performance).

Why:
    The balanced plan parks cores and lowers the clock after moments of idleness; on a virtual machine it also halts
    vCPUs more often. Short requests then wait for a core to wake up.

Do:
    `powercfg /setactive SCHEME_MIN` (high performance), and set the host's BIOS and ESXi policy accordingly: the
    guest's plan alone cannot hold the clock.

When it is wrong:
    A host with power policy high performance and a guest that never idles show no difference.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere: high performance plan.
    Judgement: the size of the effect is not given.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST147",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("guest.power_plan",),
    clears=False,
    judgement=True,
)
_GOOD = ("high performance", "ultimate performance")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""

    def judge(guest: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if any(good in str(fact.value).casefold() for good in _GOOD):
            return None
        return f"{guest.label()} runs with the power plan {fact.value}", META.severity

    yield from by_setting(context, EntityKind.GUEST, "power_plan", judge)
