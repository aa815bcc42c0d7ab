"""The database's log and its data are on the same disk.

Finds:
    Data and log of a database, or of the virtual disks of one VM, on one block device or virtual disk (high), or on two
    virtual disks of the same LUN or datastore (medium). Two virtual disks on one vSAN datastore are left out: vSAN
    places each on devices of its own. Roles are those given in the inventory or guessed from names; a finding that
    rests on a guess says so and is one step milder.

Why:
    The log is written in small synchronous pieces and a commit waits for each; data is read and written at random and
    in bursts. On one disk, queue or LUN a checkpoint or a scan stands in front of every commit.

Do:
    Give the log a virtual disk of its own on its own paravirtual controller, and a LUN or disk group of its own behind
    it. If there is only one storage, separate virtual disks on it still separate the queues.

When it is wrong:
    On an all-flash array, or a distributed storage that spreads every disk over all media, one datastore is no
    bottleneck by itself; separate virtual disks and controllers still help. A small database may not care. Where the
    type of a datastore is not known, one that is called vsanDatastore is taken for vSAN.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): data and WAL on different
    physical disks or LUNs, else on separate virtual disks.
    InterSystems File System and Storage Configuration Recommendations; Architecting Microsoft SQL Server on VMware
    vSphere; Oracle Databases on VMware Best Practices Guide: the same.
    VMware, "Administering vSAN", objects and components: each virtual disk is an object, placed and striped on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.derived.disks import Use, behind, uses, virtual_disk_of, whole_disk
from leadline.estate.knowledge.datastores import Datastores

META = RuleMeta(
    code="DBS102",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("disk-busy-with-others",),
    needs=("database.wal_device|block-device.role|virtual-disk.role",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per database that names its devices, then per VM whose disks have roles."""
    reported: set[Entity] = set()
    stores = Datastores(context.inventory)
    for database in context.inventory.of_kind(EntityKind.DATABASE):
        finding = _of_database(context, database, stores)
        if finding is not None:
            guest = database.ancestor(EntityKind.GUEST)
            vm = None if guest is None else context.inventory.vm_of(guest)
            reported |= {entity for entity in (guest, vm) if entity is not None}
            yield finding
    for owner, disks in _disks_by_owner(uses(context)).items():
        vm = context.inventory.vm_of(owner) if owner.kind is EntityKind.GUEST else None
        finding = None if owner in reported or vm in reported else _of_disks(context, owner, disks, stores)
        if finding is not None:
            reported |= {entity for entity in (owner, vm) if entity is not None}
            yield finding


def _of_database(context: RuleContext, database: Entity, stores: Datastores) -> Finding | None:
    inventory = context.inventory
    names = [inventory.get(database, setting) for setting in ("data_device", "wal_device")]
    if names[0] is None or names[1] is None:
        return None
    data, wal = (str(name) for name in names)
    fact = inventory.fact(database, "wal_device")
    source = None if fact is None else fact.source
    if whole_disk(data) == whole_disk(wal):
        evidence = Evidence(f"data on {data}, log on {wal}: one disk", entity=database, source=source)
        return context.finding(
            database, f"Log and data of {database.label()} share the disk {whole_disk(wal)}", [evidence]
        )
    pair = [_entity_of(inventory_name, database) for inventory_name in (data, wal)]
    shared = _shared(context, stores, pair[0], pair[1])
    if shared is None:
        return None
    below, severity = shared
    evidence = Evidence(f"data on {data}, log on {wal}, both on {below.label()}", entity=below, source=source)
    summary = f"Log and data of {database.label()} share {below.kind.value.replace('-', ' ')} {below.name}"
    return context.finding(database, summary, [evidence], severity=severity)


def _entity_of(name: str, database: Entity) -> Entity:
    return Entity(EntityKind.BLOCK_DEVICE, name, database.parent)


def _disks_by_owner(known: Mapping[Entity, Use]) -> dict[Entity, dict[Entity, Use]]:
    owners: dict[Entity, dict[Entity, Use]] = {}
    for disk, use in known.items():
        if disk.kind in (EntityKind.VIRTUAL_DISK, EntityKind.BLOCK_DEVICE) and disk.parent is not None:
            owners.setdefault(disk.parent, {})[disk] = use
    return owners


def _of_disks(context: RuleContext, owner: Entity, disks: Mapping[Entity, Use], stores: Datastores) -> Finding | None:
    for data in (disk for disk, use in disks.items() if use.role is Role.DATA):
        for wal in (disk for disk, use in disks.items() if use.role is Role.WAL):
            shared = _shared(context, stores, data, wal)
            if shared is None:
                continue
            below, severity = shared
            guessed = tuple(
                f"{disk.label()} holds {role.value}"
                for disk, role in ((data, Role.DATA), (wal, Role.WAL))
                if disks[disk].guessed
            )
            evidence = Evidence(f"data on {data.label()}, log on {wal.label()}, both on {below.label()}", entity=below)
            summary = f"Log and data of {owner.label()} share {below.kind.value.replace('-', ' ')} {below.name}"
            mild = severity.lowered() if guessed else severity
            return context.finding(owner, summary, [evidence], severity=mild, guessed=guessed)
    return None


def _shared(context: RuleContext, stores: Datastores, data: Entity, wal: Entity) -> tuple[Entity, Severity] | None:
    """What both lie on, and how bad that is: one disk is worse than one LUN or datastore."""
    if data.kind is EntityKind.BLOCK_DEVICE and whole_disk(data.name) == whole_disk(wal.name):
        return Entity(EntityKind.BLOCK_DEVICE, whole_disk(wal.name), wal.parent), context.meta.severity
    virtual = [virtual_disk_of(context.inventory, disk) for disk in (data, wal)]
    if virtual[0] is not None and virtual[0] == virtual[1]:
        return virtual[0], context.meta.severity
    lower = set(behind(context.inventory, data))
    is_spread = stores.is_vsan(wal if virtual[1] is None else virtual[1])
    both = [
        entity
        for entity in behind(context.inventory, wal)
        if entity in lower and not (is_spread and entity.kind is EntityKind.DATASTORE)
    ]
    return (both[0], context.meta.severity.lowered()) if both else None
