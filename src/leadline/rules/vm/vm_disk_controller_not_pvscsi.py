"""Disks of a VM hang on an emulated storage controller, not on PVSCSI or NVMe.

Finds:
    Controllers of a type other than pvscsi, nvme or virtio that carry a disk with data, WAL or temp files (high), or a
    disk whose role is not known (medium). The first disk of a VM that has several counts as its boot disk.

Why:
    An emulated controller makes the guest's driver go through registers built for real hardware: more exits to the
    hypervisor and more CPU per request. Its queue is short, often 32 requests for the disk and 128 for the
    controller, so a busy database waits in the guest before the storage has seen anything.

Do:
    Install the driver in the guest, add a PVSCSI (or NVMe) controller, and move the data, WAL and temp disks to it
    while the VM is off; the boot disk last. In a .vmx the type is `scsi1.virtualDev = "pvscsi"`.

When it is wrong:
    A guest without a PVSCSI driver cannot use it. Disks that are hardly used gain nothing. Where roles are not known
    the finding may be about a disk the database does not touch: name them in an inventory file.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): PVSCSI and VMXNET3 take
    up to 30 % off the CPU overhead; PVSCSI ranks above LSI Logic Parallel. Architecting Microsoft SQL Server on VMware
    vSphere; Oracle Databases on VMware Best Practices Guide.
    Judgement: one severity lower where the role of the disk is not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES, boot_disk, disks_by_adapter

META = RuleMeta(
    code="VMC101",
    layer=Layer.VM,
    severity=Severity.HIGH,
    needs=("adapter.type", "virtual-disk.adapter"),
    examines="settings",
)

# virtio is what PVSCSI is on KVM.
_PARAVIRTUAL = frozenset({"pvscsi", "nvme", "virtio-scsi", "virtio-blk", "virtio"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per controller."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        boot = boot_disk(context.inventory, vm)
        for adapter, disks in disks_by_adapter(context.inventory, vm).items():
            kind = context.inventory.fact(adapter, "type")
            if kind is not None and str(kind.value).casefold() not in _PARAVIRTUAL:
                yield from _finding(context, adapter, [disk for disk in disks if disk != boot or _used(context, disk)])


def _used(context: RuleContext, disk: Entity) -> bool:
    role = context.role(disk)
    return role is not None and role[0] in DATABASE_ROLES


def _finding(context: RuleContext, adapter: Entity, disks: list[Entity]) -> Iterator[Finding]:
    roles = {disk: context.role(disk) for disk in disks}
    of_database = [disk for disk in disks if _used(context, disk)]
    unknown = [disk for disk in disks if roles[disk] is None]
    accused = of_database or unknown
    if not accused:
        return
    fact = context.inventory.settings(adapter)["type"]
    words = ", ".join(f"{d.name} ({_word(roles[d])})" for d in accused)
    evidence = [
        Evidence(f"type of {adapter.label()} is {fact.value}", entity=adapter, source=fact.source),
        Evidence(f"on it: {words}", entity=adapter),
    ]
    guessed = [f"role of {d.label()}" for d in of_database if (role := roles[d]) is not None and role[1]]
    yield context.finding(
        adapter,
        f"{adapter.label()} is {fact.value}, not pvscsi or nvme, and carries {words}",
        evidence,
        severity=META.severity if of_database else META.severity.lowered(),
        guessed=guessed,
    )


def _word(role: tuple[Role, bool] | None) -> str:
    return "role not known" if role is None else role[0].value
