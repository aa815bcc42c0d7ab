"""Paths from a host to a device: which there are, and how the hypervisor chooses among them."""

from __future__ import annotations

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind

ROUND_ROBIN = "round-robin"
FIXED = "fixed"
MOST_RECENTLY_USED = "most-recently-used"
_POLICIES = {
    "round-robin": ROUND_ROBIN,
    "roundrobin": ROUND_ROBIN,
    "round robin": ROUND_ROBIN,
    "vmw_psp_rr": ROUND_ROBIN,
    "fixed": FIXED,
    "vmw_psp_fixed": FIXED,
    "most-recently-used": MOST_RECENTLY_USED,
    "most recently used": MOST_RECENTLY_USED,
    "mostrecentlyused": MOST_RECENTLY_USED,
    "mru": MOST_RECENTLY_USED,
    "vmw_psp_mru": MOST_RECENTLY_USED,
}
_LOCAL_PLUGINS = frozenset({"vmw_satp_local"})
_LOCAL_TRANSPORTS = frozenset({"sata", "nvme-pcie"})
# What the hypervisor calls disks that have no name of their own, and SATA disks: neither is shared.
_LOCAL_NAMES = ("mpx.", "t10.ata")


def path_policy(inventory: Inventory, device: Entity) -> str | None:
    """The policy in one spelling, a plug-in's own name in lower case, or None when it is not known."""
    value = inventory.get(device, "path_policy")
    return None if value is None else _POLICIES.get(str(value).casefold(), str(value).casefold())


def is_local(inventory: Inventory, device: Entity) -> bool:
    """Whether a device is known to be inside the host, where one path is all there can be.

    As the inventory says, else by its array plug-in, its transport, or a name only local disks have.
    """
    local = inventory.get(device, "local")
    if local is not None:
        return bool(local)
    plugin = str(inventory.get(device, "array_plugin") or "").casefold()
    transport = str(inventory.get(device, "transport") or "").casefold()
    return plugin in _LOCAL_PLUGINS or transport in _LOCAL_TRANSPORTS or device.name.casefold().startswith(_LOCAL_NAMES)


def paths_by_device(inventory: Inventory) -> dict[Entity, list[Entity]]:
    """The paths of every device whose paths are known, as entities of the device's host."""
    return {
        device: [Entity(EntityKind.PATH, str(name), device.parent) for name in names]
        for device in inventory.of_kind(EntityKind.DEVICE)
        if (names := inventory.get(device, "paths"))
    }
