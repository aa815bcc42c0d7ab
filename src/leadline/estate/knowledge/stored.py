"""How much the machines of an inventory store: used space of their datastores, else the sizes of their disks."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind


def machines_kept(inventory: Inventory) -> list[Entity]:
    """VMs whose data is kept: no templates."""
    return [vm for vm in inventory.of_kind(EntityKind.VM) if inventory.get(vm, "template") is not True]


def stored_gib(inventory: Inventory) -> tuple[float, str] | None:
    """What is stored, GiB, and how it is known; None where neither datastores nor disks have sizes.

    A datastore that several hosts name counts once: one of the same name, size and free space.
    """
    disks = [disk for vm in machines_kept(inventory) for disk in inventory.children(vm, EntityKind.VIRTUAL_DISK)]
    named = {str(name) for disk in disks if (name := inventory.get(disk, "datastore")) is not None}
    stores: dict[tuple[str, float, float], Entity] = {}
    for store in inventory.of_kind(EntityKind.DATASTORE):
        size, free = (inventory.get(store, key) for key in ("capacity_gib", "free_gib"))
        if size is not None and free is not None and (not named or store.name in named):
            stores.setdefault((store.name, float(size), float(free)), store)
    if stores and named <= {name for name, _, _ in stores}:
        used = sum(size - free for _, size, free in stores)
        return used, f"capacity less free space of {len(stores)} datastores, {_sources(inventory, stores.values())}"
    sizes = [size_gib(inventory, disk) for disk in disks]
    if not sizes or any(isnan(size) for size in sizes):
        return None
    basis = f"sizes of {len(disks)} virtual disks, thin ones hold less, {_sources(inventory, disks)}"
    return sum(sizes), basis


def size_gib(inventory: Inventory, disk: Entity) -> float:
    """The size of a disk, GiB; NaN when it is not known."""
    size = inventory.get(disk, "size_gib")
    return float("nan") if size is None else float(size)


def _sources(inventory: Inventory, entities: Iterable[Entity]) -> str:
    names = {
        fact.source
        for entity in entities
        for key in ("size_gib", "capacity_gib")
        if (fact := inventory.fact(entity, key)) is not None
    }
    return ", ".join(sorted(names))
