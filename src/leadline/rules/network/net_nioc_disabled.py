"""Network I/O control is off on a switch that several kinds of traffic share.

Finds:
    Virtual switches with network I/O control off, unless they are known to carry fewer than two of VM, storage, vSAN
    and vMotion traffic.

Why:
    Without it whoever sends most wins. A vMotion takes a whole 10 Gbit/s link for as long as it runs, and storage or
    replication of the database waits behind it.

Do:
    Turn it on and use shares, not limits: shares only decide while the link is full. Storage and VM traffic high,
    vMotion normal or low.

When it is wrong:
    Standard switches have none; where each kind of traffic has links of its own it has nothing to do.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): use Network I/O Control.
    vSAN Design and Sizing Guide: on shared links.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.networks import traffic
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="NET136",
    layer=Layer.NETWORK,
    severity=Severity.LOW,
    needs=("virtual-switch.io_control",),
    clears=False,
)
_COMPETING = frozenset({"vm", "storage", "vsan", "vmotion"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per switch."""

    def judge(switch: Entity, fact: Fact) -> tuple[str, Severity] | None:
        known = traffic(context.inventory, switch)
        if fact.value or (known and len(known & _COMPETING) < 2):
            return None
        shared = f", shared by {', '.join(sorted(known))}" if known else ""
        return f"network I/O control is off on {switch.label()}{shared}", META.severity

    yield from by_setting(context, EntityKind.VIRTUAL_SWITCH, "io_control", judge)
