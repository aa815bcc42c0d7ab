"""The IOMMU is off on a host whose devices are to be passed through.

Finds:
    Hosts with VT-d or AMD-Vi off where passthrough is planned or a VM of theirs has a physical device or a vGPU.

Why:
    Without an IOMMU a device given to a VM could write anywhere in the host's memory, so the hypervisor does not give
    it: passthrough, SR-IOV and some GPUs do not work, and VMs that want them do not start.

Do:
    Turn on VT-d (Intel) or IOMMU (AMD), and SR-IOV where network cards are to be shared, in the BIOS.

When it is wrong:
    A device planned for another host. Without passthrough the IOMMU does nothing, so other hosts are not looked at.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): passthrough needs
    VT-d or an IOMMU. Performance Best Practices for VMware vSphere.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import flag_is

META = RuleMeta(
    code="HST102",
    layer=Layer.HOST,
    severity=Severity.LOW,
    needs=("host.iommu",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    inventory = context.inventory

    def wanted(host: Entity) -> bool:
        vms = inventory.children(host, EntityKind.VM)
        given = any(inventory.get(vm, "passthrough_devices") or inventory.get(vm, "vgpu_profile") for vm in vms)
        return given or inventory.get(host, "passthrough_planned") is True

    says = "the IOMMU of {name} is off, and devices are to be passed through"
    yield from flag_is(context, (EntityKind.HOST, "iommu"), bad=False, says=says, keep=wanted)
