"""A port group has few free ports left.

Finds:
    Port groups with fewer than 10 free ports that do not grow by themselves.

Why:
    When the ports are used up the next VM is started without a network: mostly the one that comes back after a failed
    host, at night.

Do:
    Set port allocation to Elastic, or raise the number of ports.

When it is wrong:
    A port group for a handful of fixed interfaces needs no spare ports.

Sources:
    vCheck for vSphere: distributed port groups with fewer than 10 free ports.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="NET140",
    layer=Layer.NETWORK,
    severity=Severity.LOW,
    needs=("port-group.ports_free_count",),
    thresholds={"warn": Threshold(10.0, "count", "vCheck for vSphere")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per port group."""

    def judge(group: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value >= context.limit("warn") or context.inventory.get(group, "ports_elastic") is True:
            return None
        return f"port group {group.label()} has {fact.value} free ports", META.severity

    yield from by_setting(context, EntityKind.PORT_GROUP, "ports_free_count", judge)
