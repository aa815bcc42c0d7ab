"""A port group has only one uplink left.

Finds:
    Port groups with fewer than two uplinks that have a link, active and standby ones counted together. Port groups
    without any uplink configured are internal on purpose and left out; so is a storage port group beside another one
    of the same host that uses another uplink, as port binding of iSCSI wants it.

Why:
    One cable, one transceiver or one restart of a switch then cuts off every VM behind it: clients of the database,
    or its storage.

Do:
    Bring the failed link back, or give the port group a second uplink on another card and another physical switch,
    and put it into the active or standby list of the teaming policy.

When it is wrong:
    Multi-NIC vMotion uses port groups with one active and one standby uplink: that is two. Two uplinks on one card or
    one switch look redundant here and are not.

Sources:
    Material on vSphere networking of vmgu.ru: keep channels redundant. vCheck for vSphere: uplinks without a link.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.networks import traffic, uplink_names
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="NET134",
    layer=Layer.NETWORK,
    severity=Severity.HIGH,
    needs=("port-group.active_uplinks",),
    thresholds={"warn": Threshold(2.0, "count", "vmgu.ru on vSphere networking: redundant channels")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per port group."""
    to_storage = _ways_to_storage(context)

    def judge(group: Entity, fact: Fact) -> tuple[str, Severity] | None:
        del fact
        up, down = uplink_names(context.inventory, group) or ([], [])
        if not up and not down:
            return None
        elsewhere = group in to_storage and to_storage[group] - set(up)
        if len(up) >= context.limit("warn") or (up and elsewhere):
            return None
        left = f"only {', '.join(up)}" if up else "no uplink with a link"
        lost = f"; {', '.join(down)} without a link" if down else ""
        return f"port group {group.label()} has {left}{lost}", META.severity

    yield from by_setting(context, EntityKind.PORT_GROUP, "active_uplinks", judge)


def _ways_to_storage(context: RuleContext) -> dict[Entity, set[str]]:
    """For port groups that carry nothing but storage: uplinks with a link of all such port groups of their host."""
    groups: dict[Entity | None, list[Entity]] = {}
    for group in context.inventory.of_kind(EntityKind.PORT_GROUP):
        if traffic(context.inventory, group) == {"storage"}:
            groups.setdefault(group.ancestor(EntityKind.HOST), []).append(group)
    ways = {
        host: {name for group in siblings for name in (uplink_names(context.inventory, group) or ([], []))[0]}
        for host, siblings in groups.items()
    }
    return {group: ways[host] for host, siblings in groups.items() for group in siblings}
