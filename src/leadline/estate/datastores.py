"""What is known about the datastore a disk lies on, whether it is listed with the VM's host or by itself."""

from __future__ import annotations

from typing import Any

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind


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
