"""Datastores: what is known about the one a disk lies on, what lies on one, and which hosts mount it.

A datastore is an entity of its own, or of each host that mounts it; disks name it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.versions import vsphere_version
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES

# Source: vSphere API 8.0U3, StorageIOAllocationInfo and StorageDrsIoLoadBalanceConfig: deprecated from there on.
IO_CONTROL_DEPRECATED = (8, 0, 3)


class Datastores:
    """The datastores of an inventory by name: hosts may each have a local one of the same name."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._by_name: dict[str, list[Entity]] = {}
        for entity in inventory.of_kind(EntityKind.DATASTORE):
            self._by_name.setdefault(entity.name, []).append(entity)
        self._agreed: dict[tuple[str, str], Any] = {}

    def get(self, disk: Entity, setting: str) -> Any:  # noqa: ANN401 - whatever the setting's type is
        """A setting of the datastore a disk lies on; None when it is not known.

        That of the disk's own host counts first; of others only one that all of them agree on.
        """
        name = self._inventory.get(disk, "datastore")
        if name is None:
            return None
        host = disk.ancestor(EntityKind.HOST)
        value = None if host is None else self._inventory.get(Entity(EntityKind.DATASTORE, str(name), host), setting)
        return self._common(str(name), setting) if value is None else value

    def is_vsan(self, disk: Entity) -> bool:
        """Whether a disk lies on vSAN: by the type of its datastore, where that is not known by vSAN's default name.

        Source: VMware, "Administering vSAN": the datastore of a cluster is called vsanDatastore until it is renamed.
        """
        known = self.get(disk, "type")
        if known is not None:
            return str(known).casefold().startswith("vsan")
        return str(self._inventory.get(disk, "datastore") or "").casefold().startswith("vsandatastore")

    def _common(self, name: str, setting: str) -> Any:  # noqa: ANN401 - whatever the setting's type is
        if (name, setting) not in self._agreed:
            known = [self._inventory.get(store, setting) for store in self._by_name.get(name, [])]
            values = [value for value in known if value is not None]
            same = bool(values) and all(value == values[0] for value in values)
            self._agreed[name, setting] = values[0] if same else None
        return self._agreed[name, setting]


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
