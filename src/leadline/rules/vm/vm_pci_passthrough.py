"""A VM has a physical device of its own.

Finds:
    VMs with PCI devices passed through, or a network adapter by SR-IOV. Informative only.

Why:
    A device of its own gives the lowest latency, at a price: no vMotion, no Storage vMotion, no Fault Tolerance, no
    snapshots and no suspend, all memory reserved, and the VM is bound to its host. Neither load balancing nor an image
    backup can be the remedy for such a VM.

Do:
    Keep it only where a measurement shows the gain. Plan maintenance windows of the host as outages of this VM, back it
    up from inside, and try vmxnet3, PVSCSI or vNVMe first.

When it is wrong:
    It is a choice, not a fault. vGPUs and dynamic DirectPath allow some of it on newer releases.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): passthrough disables
    vMotion, Storage vMotion, FT, snapshots and suspend. Performance Best Practices for VMware vSphere 7 and 8.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="VMC139",
    layer=Layer.VM,
    severity=Severity.INFO,
    needs=("vm.passthrough_devices|nic.type",),
    clears=False,
)
_NIC_TYPES = frozenset({"sriov", "pcipassthru"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    inventory = context.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        devices = [str(name) for name in inventory.get(vm, "passthrough_devices") or ()]
        evidence: list[Evidence] = setting_evidence(context, vm, "passthrough_devices") if devices else []
        for nic in inventory.children(vm, EntityKind.NIC):
            if str(inventory.get(nic, "type")).casefold() in _NIC_TYPES:
                devices.append(nic.name)
                evidence += setting_evidence(context, nic, "type")
        if devices:
            yield context.finding(vm, f"{vm.label()} uses physical devices: {', '.join(devices)}", evidence)
