"""What may have to do with an incident: of a large estate only that is kept in the incident's own recording.

All parts of the hosts and stores that it touches, and every VM that shares them: it may be the neighbour that takes
what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leadline.app.watch.suspicions import entity_at
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from leadline.core.model.entities import Inventory

_Store = tuple[EntityKind, str]
_STORES = {EntityKind.DATASTORE: "datastore", EntityKind.DEVICE: "device"}  # with the settings that name them


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What may have to do with an incident.

    Attributes:
        roots: whatever is part of one of them belongs to it.
        stores: datastores and devices by kind and name, whatever they are part of.
    """

    roots: frozenset[Entity]
    stores: frozenset[_Store]

    @classmethod
    def of(cls, places: Iterable[str], inventory: Inventory) -> Surroundings:
        """What is around the places of an incident, as `suspicions.places_of` writes them."""
        touched = {above for place in places for above in entity_at(place).lineage()}
        disks = list(_stores_of(inventory, EntityKind.VIRTUAL_DISK))
        stores = {(one.kind, one.name) for one in touched if one.kind in _STORES}
        stores |= {store for disk, store in disks if disk.parent in touched}
        # A LUN is known by the datastore that lies on it.
        stores |= {(one.kind, one.name) for one, on in _stores_of(inventory, EntityKind.DEVICE) if on in stores}
        roots = touched | {disk.parent for disk, store in disks if store in stores and disk.parent is not None}
        hosts = {one for one in touched if one.kind is EntityKind.HOST}
        clusters = {inventory.get(host, "cluster") for host in hosts} - {None}
        roots |= {Entity(EntityKind.CLUSTER, str(name)) for name in clusters}
        roots |= {guest for guest, vm in inventory.links.items() if not roots.isdisjoint(vm.lineage())}
        return cls(frozenset(roots), frozenset(stores))

    def holds(self, entity: Entity) -> bool:
        """Whether an entity belongs to it."""
        return any(one in self.roots or (one.kind, one.name) in self.stores for one in entity.lineage())

    def of_inventory(self, inventory: Inventory) -> Inventory:
        """What an inventory knows of what belongs to it."""
        facts = {entity: known for entity, known in inventory.facts.items() if self.holds(entity)}
        links = {guest: vm for guest, vm in inventory.links.items() if self.holds(guest)}
        return replace(inventory, facts=facts, links=links)


def _stores_of(inventory: Inventory, kind: EntityKind) -> Iterator[tuple[Entity, _Store]]:
    """Entities of a kind with each store that they lie on or carry."""
    for entity, facts in inventory.facts.items():
        if entity.kind is kind:
            for store, setting in _STORES.items():
                if setting in facts:
                    yield entity, (store, str(facts[setting].value))
