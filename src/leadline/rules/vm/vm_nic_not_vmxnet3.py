"""A VM's network adapter emulates a real card, where a paravirtual one could be.

Finds:
    Network adapters of a VM of a type other than vmxnet3 (virtio on KVM; a passed-through device counts as good),
    unless they are known to be disconnected.

Why:
    An emulated card costs the host CPU for every packet, has one queue and small rings, and so drops packets earlier
    and ties one vCPU to the network. A database with many clients or a replica feels it as latency.

Do:
    Install VMware Tools (the driver is part of Linux), add a vmxnet3 adapter, move the address to it and remove the
    old one; the MAC address and the name in the guest change.

When it is wrong:
    An adapter used for management only is not worth the change.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): VMXNET3 for the best
    performance and the least overhead; needs Tools. Architecting Microsoft SQL Server on VMware vSphere.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC102",
    layer=Layer.VM,
    severity=Severity.MEDIUM,
    needs=("nic.type",),
    examines="settings",
)

_GOOD = frozenset({"vmxnet3", "virtio", "virtio-net", "virtio-net-pci", "sriov", "pcipassthru"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per adapter of a VM; interfaces of guests and hosts are not virtual adapters."""

    def judge(nic: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if nic.parent is None or nic.parent.kind is not EntityKind.VM:
            return None
        if str(fact.value).casefold() in _GOOD or context.inventory.get(nic, "connected") is False:
            return None
        return f"{nic.label()} is {fact.value}, not vmxnet3", META.severity

    yield from by_setting(context, EntityKind.NIC, "type", judge)
