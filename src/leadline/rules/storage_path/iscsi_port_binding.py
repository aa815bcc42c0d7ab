"""A software iSCSI adapter has fewer than two bound interfaces, or one with a standby uplink.

Finds:
    iSCSI adapters of hosts with fewer than two VMkernel interfaces bound to them, or with a bound interface that has
    more than one uplink, active or standby.

Why:
    Each bound interface with an uplink of its own is one path. With one there is neither a second path when a card or
    switch fails nor its bandwidth. An interface that may move to another uplink is not a path the multipathing can
    rely on, and the hypervisor calls the binding not compliant.

Do:
    Make two VMkernel interfaces in the storage network, give each exactly one active uplink and set the others to
    unused, bind both to the adapter, then rescan and check that each device has the paths expected.

When it is wrong:
    Where the array's ports are in different subnets, binding must not be used: then one interface per subnet is right.
    Hardware iSCSI adapters have ports of their own.

Sources:
    Performance Best Practices for VMware vSphere 7 and 8, storage considerations: port binding for multipathing.
    Judgement: the number two; not re-read in the source.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="STO142",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    needs=("adapter.bound_vmk_count|adapter.bound_vmk_uplinks",),
    thresholds={
        "warn": Threshold(2.0, "count", "Judgement: so that one path may fail"),
        "uplinks": Threshold(1.0, "count", "Performance Best Practices for VMware vSphere: one uplink per interface"),
    },
    clears=False,  # a good binding says nothing about latency
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per adapter."""
    for adapter in context.inventory.of_kind(EntityKind.ADAPTER):
        uplinks = context.inventory.get(adapter, "bound_vmk_uplinks")
        count = context.inventory.get(adapter, "bound_vmk_count")
        count = len(uplinks) if count is None and uplinks is not None else count
        wrong = _wrong(context, count, uplinks or {})
        if wrong:
            yield _finding(context, adapter, wrong)


def _wrong(context: RuleContext, count: int | None, uplinks: dict[str, str | float]) -> list[str]:
    faults = []
    if count is not None and count < context.limit("warn"):
        faults.append(f"{count} bound VMkernel interface{'' if count == 1 else 's'}")
    movable = [
        vmk
        for vmk, uplink_count in uplinks.items()
        if isinstance(uplink_count, int | float) and uplink_count > context.limit("uplinks")
    ]
    if movable:
        faults.append(f"more than one uplink for {', '.join(movable)}")
    return faults


def _finding(context: RuleContext, adapter: Entity, wrong: list[str]) -> Finding:
    return context.finding(
        adapter,
        f"iSCSI adapter {adapter.label()} has {' and '.join(wrong)}",
        setting_evidence(context, adapter, "bound_vmk_count", "bound_vmk_uplinks"),
    )
