"""A database's disk is not fully allocated and zeroed.

Finds:
    Thin disks and thick disks zeroed lazily that hold data, WAL or temp files, on VMFS or NFS. One severity lower for
    each of: flash below, a role that is not known, a datastore whose type is not known. Boot disks without a role,
    and disks on vSAN and vVols are left out.

Why:
    The first write to a block that was never used has to allocate it (thin) and overwrite it with zeros (thin and
    lazy) before the write itself: several I/Os and a lock on the volume's metadata for one. Logs and growing tables
    write to new blocks all the time, at the moments that count.

Do:
    Convert the disk at a time of little load: inflate a thin disk from the datastore browser or with
    `vmkfstools -j DISK.vmdk`, zero a lazy one with `vmkfstools --eagerzero DISK.vmdk`, or choose eager zeroed when the
    disk is moved by Storage vMotion. On vSAN use the policy's object space reservation instead.

When it is wrong:
    Once all blocks were written there is no difference any more. Arrays that zero by themselves (VAAI), compress or
    deduplicate gain little, flash arrays least. On NFS a thick disk needs the array's plug-in.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): thick eager zeroed
    performs best. Architecting Microsoft SQL Server on VMware vSphere; Oracle Databases on VMware Best Practices Guide.
    Judgement: one severity lower for what is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.datastores import Datastores
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES, boot_disk
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC130",
    layer=Layer.VM,
    severity=Severity.MEDIUM,
    needs=("virtual-disk.provisioning",),
    clears=False,  # a zeroed disk may still be slow
)
_NOT_ZEROED = frozenset({"thin", "thick-lazy"})
_BLOCKS_ALLOCATED_BY_HOST = frozenset({"vmfs", "nfs", "nfs41"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""
    stores = Datastores(context.inventory)

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        how = str(fact.value).casefold()
        store = stores.get(disk, "type")
        role = context.role(disk)
        if context.inventory.get(disk, "raw_device") is True:  # a raw device's blocks are the array's affair
            return None
        if how not in _NOT_ZEROED or (store is not None and str(store).casefold() not in _BLOCKS_ALLOCATED_BY_HOST):
            return None
        if (role is not None and role[0] not in DATABASE_ROLES) or (role is None and _is_boot_disk(context, disk)):
            return None
        severity = META.severity
        for milder in (role is None, store is None, _medium(context, disk, stores) == "flash"):
            severity = severity.lowered() if milder else severity
        use = "role not known" if role is None else role[0].value
        return f"{disk.label()} ({use}) is {how}, not thick eager zeroed", severity

    for finding in by_setting(context, EntityKind.VIRTUAL_DISK, "provisioning", judge, ("datastore",)):
        unknown = stores.get(finding.entity, "type") is None
        guess = (f"that {finding.entity.label()} lies on VMFS or NFS",) if unknown else ()
        yield replace(finding, guessed=(*finding.guessed, *guess))


def _is_boot_disk(context: RuleContext, disk: Entity) -> bool:
    return disk.parent is not None and boot_disk(context.inventory, disk.parent) == disk


def _medium(context: RuleContext, disk: Entity, stores: Datastores) -> object:
    """Medium below a disk: of its device, else of its datastore."""
    device, host = context.inventory.get(disk, "device"), disk.ancestor(EntityKind.HOST)
    medium = None if device is None else context.inventory.get(Entity(EntityKind.DEVICE, str(device), host), "medium")
    return medium if medium is not None else stores.get(disk, "medium")
