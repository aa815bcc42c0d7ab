"""A storage controller is not certified for vSAN, or its queue is short.

Finds:
    Host adapters that serve vSAN (or whose certification the inventory states) and are not on the compatibility list
    with their driver and firmware, or take fewer than 256 commands at once.

Why:
    All devices behind a controller share its queue. During a resync VMs and rebuild compete for it, and a short queue
    stalls both. Controllers off the list have lost data and hung hosts.

Do:
    Update driver and firmware to the listed pair, or replace the controller. NVMe devices have no controller in
    between.

When it is wrong:
    The list may be newer than the vSAN health check's copy; update that first.

Sources:
    vSAN Design and Sizing guide: certified controllers, queue depth of at least 256.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="DST134",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("adapter.vsan_certified|adapter.serves_vsan",),
    thresholds={"warn": Threshold(256.0, "count", "vSAN Design and Sizing guide")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per adapter."""
    inventory = context.inventory
    for adapter in inventory.of_kind(EntityKind.ADAPTER):
        certified, serves = inventory.get(adapter, "vsan_certified"), inventory.get(adapter, "serves_vsan")
        if serves is False or (certified is None and not serves):
            continue
        depth = inventory.get(adapter, "queue_depth_count")
        evidence: list[Evidence] = []
        phrases = []
        if certified is False:
            evidence += setting_evidence(context, adapter, "vsan_certified")
            phrases.append("is not certified for vSAN")
        if depth is not None and depth < context.limit("warn"):
            evidence += setting_evidence(context, adapter, "queue_depth_count")
            phrases.append(f"takes {depth} commands at once (limit {context.limit('warn'):.0f})")
        if evidence:
            yield context.finding(adapter, f"Controller {adapter.label()} {' and '.join(phrases)}", evidence)
