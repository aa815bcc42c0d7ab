"""How the network of hosts hangs together: physical NICs, VMkernel interfaces, virtual switches and port groups."""

from __future__ import annotations

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind

_STORAGE = frozenset({"storage", "nfs", "iscsi"})


def is_vmkernel(inventory: Inventory, nic: Entity) -> bool:
    """Whether a network card of a host is an interface of the hypervisor itself (vmk0)."""
    if nic.parent is None or nic.parent.kind is not EntityKind.HOST:
        return False
    return nic.name.startswith("vmk") or str(inventory.get(nic, "type")).casefold() == "vmkernel"


def is_uplink(inventory: Inventory, nic: Entity) -> bool:
    """Whether a network card is a physical one of a host (vmnic0)."""
    of_host = nic.parent is not None and nic.parent.kind is EntityKind.HOST
    return of_host and not is_vmkernel(inventory, nic)


def is_up(inventory: Inventory, nic: Entity) -> bool:
    """Whether a network card has a link, as far as is known."""
    return inventory.get(nic, "connected") is not False and inventory.get(nic, "speed_mbit_per_s") != 0


def traffic(inventory: Inventory, entity: Entity) -> frozenset[str]:
    """What a card, switch or port group carries, in lower case; the ways of reaching storage are "storage"."""
    words = {str(word).casefold() for word in inventory.get(entity, "traffic") or ()}
    return frozenset("storage" if word in _STORAGE else word for word in words)


def uplink_names(inventory: Inventory, port_group: Entity) -> tuple[list[str], list[str]] | None:
    """Names of the uplinks of a port group, those that have a link and those that have none; None when not known.

    Active and standby ones count. An uplink of which nothing else is known (a distributed switch names them by
    number) is taken to have a link.
    """
    active = inventory.get(port_group, "active_uplinks")
    if active is None:
        return None
    names = [str(name) for name in (*active, *(inventory.get(port_group, "standby_uplinks") or ()))]
    host = port_group.ancestor(EntityKind.HOST)
    down = [name for name in names if not is_up(inventory, Entity(EntityKind.NIC, name, host))]
    return [name for name in names if name not in down], down


def port_groups(inventory: Inventory) -> dict[tuple[Entity | None, str], Entity]:
    """Port groups by host and name; those of distributed switches have no host."""
    return {(g.ancestor(EntityKind.HOST), g.name): g for g in inventory.of_kind(EntityKind.PORT_GROUP)}


def port_group_of(inventory: Inventory, groups: dict[tuple[Entity | None, str], Entity], nic: Entity) -> Entity | None:
    """The port group a card of a VM or of the hypervisor hangs on; None when it is not known."""
    name = inventory.get(nic, "network")
    if name is None:
        return None
    return groups.get((nic.ancestor(EntityKind.HOST), str(name))) or groups.get((None, str(name)))
