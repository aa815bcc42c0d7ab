"""What lies on datastores, and which hosts mount them.

A datastore is an entity of its own, or of each host that mounts it; disks name it.
"""

from __future__ import annotations

from functools import cached_property

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.versions import vsphere_version
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.virtual_disks import DATABASE_ROLES

# Source: vSphere API 8.0U3, StorageIOAllocationInfo and StorageDrsIoLoadBalanceConfig: deprecated from there on.
IO_CONTROL_DEPRECATED = (8, 0, 3)


class DatastoreUse:
    """What lies where, found once: a large inventory has hundreds of datastores and ten thousands of disks."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory

    @cached_property
    def _by_name(self) -> dict[str, list[Entity]]:
        disks_by_name: dict[str, list[Entity]] = {}
        for disk in self._inventory.of_kind(EntityKind.VIRTUAL_DISK):
            name = self._inventory.get(disk, "datastore")
            if name is not None:
                disks_by_name.setdefault(str(name), []).append(disk)
        return disks_by_name

    @cached_property
    def _hosts(self) -> dict[str, Entity]:
        return {host.name: host for host in self._inventory.of_kind(EntityKind.HOST)}

    def disks(self, datastore: Entity) -> list[Entity]:
        """Virtual disks that lie on a datastore; of a host's datastore those of that host's VMs."""
        host = datastore.ancestor(EntityKind.HOST)
        return [
            disk
            for disk in self._by_name.get(datastore.name, ())
            if host is None or disk.ancestor(EntityKind.HOST) in (None, host)
        ]

    def database_disks(self, datastore: Entity) -> list[Entity]:
        """Those with data, log or temp files of a database."""
        return [disk for disk in self.disks(datastore) if self._inventory.get(disk, "role") in DATABASE_ROLES]

    def hosts(self, datastore: Entity) -> set[Entity]:
        """Hosts known to mount it: those it names, the one it is part of, those whose VMs have disks on it."""
        named = (self._hosts.get(str(name)) for name in self._inventory.get(datastore, "hosts") or ())
        using = (disk.ancestor(EntityKind.HOST) for disk in self.disks(datastore))
        parent = datastore.ancestor(EntityKind.HOST)
        return {host for host in (parent, *named, *using) if host is not None}

    def io_control_applies(self, datastore: Entity) -> bool | None:
        """Whether a host that mounts it is older than the release that deprecates Storage I/O Control.

        None where no such host's version is known.
        """
        texts = [self._inventory.get(host, "version") for host in self.hosts(datastore)]
        versions = [version for text in texts if text and (version := vsphere_version(str(text))) is not None]
        return any(version < IO_CONTROL_DEPRECATED for version in versions) if versions else None
