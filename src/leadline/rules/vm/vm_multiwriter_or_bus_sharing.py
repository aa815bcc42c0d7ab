"""Disks shared between VMs are set up in a way that does not hold.

Finds:
    Disks with the multi-writer flag that are not thick eager zeroed, other than on vSAN; multi-writer disks of a VM
    whose databases are known and none of which is Oracle (low); controllers that share their bus in a VM with
    snapshots.

Why:
    Multi-writer takes away the lock that keeps a second VM from writing to the disk. Blocks allocated while two hosts
    write are not protected by anything else, and a file system that is not made for it is destroyed. Shared buses and
    snapshots exclude each other: clusters fail over or lose writes when a snapshot freezes one node.

Do:
    Compare with the cluster's design (Oracle RAC, Windows failover cluster): shared disks thick eager zeroed or on
    vSAN, on a controller of their own, with no snapshots and no image backup. Remove the flag from disks that only one
    VM uses.

When it is wrong:
    Other cluster file systems (OCFS2, GFS2, Veritas) use the flag rightly. A snapshot may leave out the shared disks
    because they are independent.

Sources:
    Oracle Databases on VMware Best Practices Guide, RAC disks. vCheck-vSphere, plug-ins on multi-writer and bus
    sharing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.datastores import Datastores
from leadline.estate.language.templates import by_setting, setting_evidence

META = RuleMeta(
    code="VMC143",
    layer=Layer.VM,
    severity=Severity.MEDIUM,
    needs=("virtual-disk.sharing|adapter.bus_sharing",),
    clears=False,  # sharing as designed says nothing about latency
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk and per controller."""
    stores = Datastores(context.inventory)
    engines = _engines(context)

    def judge_disk(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if "multi" not in str(fact.value).casefold():
            return None
        how = context.inventory.get(disk, "provisioning")
        if how not in (None, "thick-eager") and stores.get(disk, "type") != "vsan":
            return f"{disk.label()} is multi-writer and {how}", META.severity
        vm_engines = engines.get(disk.parent) if disk.parent is not None else None
        if vm_engines and "oracle" not in vm_engines:
            return f"{disk.label()} is multi-writer; the VM runs {', '.join(sorted(vm_engines))}", Severity.LOW
        return None

    def judge_adapter(adapter: Entity, fact: Fact) -> tuple[str, Severity] | None:
        vm = adapter.ancestor(EntityKind.VM)
        count = None if vm is None else context.inventory.get(vm, "snapshot_count")
        if not count or str(fact.value).casefold() in {"none", "nosharing"}:
            return None
        return f"{adapter.label()} shares its bus ({fact.value}) and the VM has snapshots", META.severity

    yield from by_setting(context, EntityKind.VIRTUAL_DISK, "sharing", judge_disk, ("provisioning", "datastore"))
    for finding in by_setting(context, EntityKind.ADAPTER, "bus_sharing", judge_adapter):
        vm = finding.entity.ancestor(EntityKind.VM)
        more = [] if vm is None else setting_evidence(context, vm, "snapshot_count")
        yield replace(finding, evidence=(*finding.evidence, *more))


def _engines(context: RuleContext) -> dict[Entity, set[str]]:
    """Database engines of each VM, as far as its guest's databases are known."""
    engines: dict[Entity, set[str]] = {}
    for database in context.inventory.of_kind(EntityKind.DATABASE):
        guest, engine = database.ancestor(EntityKind.GUEST), context.inventory.get(database, "engine")
        vm = None if guest is None else context.inventory.vm_of(guest)
        if vm is not None and engine is not None:
            engines.setdefault(vm, set()).add(str(engine).casefold())
    return engines
