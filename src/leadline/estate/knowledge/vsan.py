"""vSAN clusters as rules on them look at them: architecture, medium, and which databases lie on them.

A host names its cluster in the setting ``cluster``; disk groups are parts of hosts. What is not known is None, and a
rule that depends on it stays quiet or says so.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.versions import vsphere_version
from leadline.core.model.vocabulary import EntityKind, Role
from leadline.estate.knowledge import placement
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES


def cluster_of(inventory: Inventory, entity: Entity) -> Entity | None:
    """The cluster an entity is, is part of, or whose host it is part of; a VM's host must be known for it."""
    host = entity.ancestor(EntityKind.HOST)
    return entity.ancestor(EntityKind.CLUSTER) if host is None else placement.cluster_of(inventory, host)


def vsan_version(inventory: Inventory, entity: Entity) -> tuple[int, int, int] | None:
    """Version of the vSAN an entity is part of: as its cluster says, else its host; None when neither does."""
    cluster, host = cluster_of(inventory, entity), entity.ancestor(EntityKind.HOST)
    texts = (
        None if cluster is None else inventory.get(cluster, "vsan_version"),
        None if host is None else inventory.get(host, "version"),
    )
    return next((version for text in texts if text and (version := vsphere_version(str(text))) is not None), None)


def disk_groups_of(inventory: Inventory, entity: Entity) -> list[Entity]:
    """Disk groups of a cluster, of a host, or the disk group itself."""
    if entity.kind is EntityKind.DISK_GROUP:
        return [entity]
    hosts = placement.hosts_of(inventory, entity) if entity.kind is EntityKind.CLUSTER else [entity]
    return [group for host in hosts for group in inventory.children(host, EntityKind.DISK_GROUP)]


def is_esa(inventory: Inventory, entity: Entity) -> bool | None:
    """Whether the vSAN an entity is part of, or lies on, is an Express Storage Architecture; None when not known.

    Disk groups prove the original architecture. Source: vSAN Management API reference: ESA has no disk groups.
    """
    cluster = cluster_of(inventory, entity)
    esa = None if cluster is None else inventory.get(cluster, "vsan_esa")
    if esa is not None:
        return bool(esa)
    near = entity.ancestor(EntityKind.DISK_GROUP) or entity.ancestor(EntityKind.HOST) or cluster
    return False if near is not None and disk_groups_of(inventory, near) else None


def capacity_medium(inventory: Inventory, entity: Entity) -> str | None:
    """``flash`` or ``hdd``: what the capacity tier of a disk group, host or cluster is made of; None when not known.

    One group on rotating disks makes a host or cluster "hdd": objects spread over all of them. ESA is flash throughout.
    """
    near = entity.ancestor(EntityKind.DISK_GROUP) or entity.ancestor(EntityKind.HOST) or entity
    media = {str(m).casefold() for g in disk_groups_of(inventory, near) if (m := inventory.get(g, "capacity_medium"))}
    if media:
        return "hdd" if "hdd" in media else "flash"
    if near.kind is EntityKind.DISK_GROUP and near.parent is not None:
        return capacity_medium(inventory, near.parent)
    return "flash" if is_esa(inventory, entity) else None


def cache_gib(inventory: Inventory, cluster: Entity) -> float | None:
    """Sum of the cache devices of a cluster; None when that of any disk group is not known, or there is none."""
    sizes = [inventory.get(group, "cache_gib") for group in disk_groups_of(inventory, cluster)]
    return float(sum(sizes)) if sizes and all(size is not None for size in sizes) else None


def database_disks(inventory: Inventory, entity: Entity, *roles: Role) -> list[Entity]:
    """Virtual disks with such a role (by default any a database has) on vSAN in a cluster or a host's cluster."""
    cluster = cluster_of(inventory, entity) or entity.ancestor(EntityKind.HOST)
    if cluster is None:
        return []
    hosts = [cluster] if cluster.kind is EntityKind.HOST else placement.hosts_of(inventory, cluster)
    wanted = {role.value for role in (roles or DATABASE_ROLES)}
    return [
        disk
        for host in hosts
        for vm in inventory.children(host, EntityKind.VM)
        for disk in inventory.children(vm, EntityKind.VIRTUAL_DISK)
        if inventory.get(disk, "role") in wanted and _may_lie_on_vsan(inventory, disk)
    ]


def _may_lie_on_vsan(inventory: Inventory, disk: Entity) -> bool:
    """False for a virtual disk that is known to lie on a LUN, or on datastores of another type."""
    name = inventory.get(disk, "datastore")
    if name is None:
        return inventory.get(disk, "device") is None
    types = {inventory.get(datastore, "type") for datastore in inventory.named(EntityKind.DATASTORE, str(name))}
    return not types or bool(types & {None, "vsan"})


def roles_guessed(inventory: Inventory, disks: list[Entity]) -> tuple[str, ...]:
    """What must be said to be a guess of a finding that rests on these disks' roles: nothing if any is given."""
    facts = [(disk, inventory.fact(disk, "role")) for disk in disks]
    if any(fact is not None and not fact.guessed for _, fact in facts):
        return ()
    return tuple(f"{disk.label()} holds {fact.value}" for disk, fact in facts if fact is not None)
