"""Disks of a VM and the controllers they hang on, as rules on the VM's configuration look at them."""

from __future__ import annotations

import re

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind, Role

DATABASE_ROLES = frozenset({Role.DATA, Role.WAL, Role.TEMP})

# VMware names the file a disk writes to after the first snapshot NAME-000001.vmdk, and so on.
DELTA_FILE = re.compile(r"-[0-9]{6}\.vmdk$", re.IGNORECASE)


def disks_by_adapter(inventory: Inventory, vm: Entity) -> dict[Entity, list[Entity]]:
    """The VM's disks whose controller is known, by controller.

    A controller that is only named by a disk, and not described itself, is made from its name.
    """
    by_adapter: dict[Entity, list[Entity]] = {}
    for disk in inventory.children(vm, EntityKind.VIRTUAL_DISK):
        name = inventory.get(disk, "adapter")
        if name is not None:
            by_adapter.setdefault(Entity(EntityKind.ADAPTER, str(name), vm), []).append(disk)
    return by_adapter


def boot_disk(inventory: Inventory, vm: Entity) -> Entity | None:
    """The disk the VM presumably boots from.

    The one with the role "system"; else the first disk without a role, where the VM has several disks. A VM's only
    disk holds everything and is not taken for a boot disk.
    """
    disks = sorted(inventory.children(vm, EntityKind.VIRTUAL_DISK), key=_natural)
    system = next((disk for disk in disks if inventory.get(disk, "role") == Role.SYSTEM.value), None)
    if system is not None or len(disks) < 2:
        return system
    return disks[0] if inventory.get(disks[0], "role") is None else None


def _natural(disk: Entity) -> list[tuple[int, str]]:
    """Sort key by which scsi0:10 follows scsi0:2."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", disk.name)]
