"""Whether a datastore deduplicates, compresses and encrypts: read from vCenter or an inventory, else not known.

A rate of data that is deduplicated or compressed away is no rate of the disks. What nobody said is never "off".

Source: vSAN Management API reference, VsanConfigInfoEx; guides/benchmark.py: why it matters.
"""

from __future__ import annotations

from dataclasses import dataclass

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind

SERVICES = {"deduplication": "vsan_dedup", "compression": "vsan_compression", "encryption": "vsan_encryption"}
NO_ANSWER = "vCenter did not answer for vSAN's configuration"
NOT_VSAN = "vCenter tells it of vSAN alone, and this datastore is none"


@dataclass(frozen=True, slots=True)
class ServiceState:
    """One service of a datastore: whether it is on, None when not known, and who says so or why nobody does."""

    name: str
    is_on: bool | None
    why: str

    @property
    def word(self) -> str:
        """``on``, ``off`` or ``not known``."""
        return "not known" if self.is_on is None else "on" if self.is_on else "off"

    @property
    def sentence(self) -> str:
        """The state with its source."""
        return f"{self.name}: {self.word}{': ' if self.is_on is None else ', as '}{self.why}"


def service_states(
    inventory: Inventory, cluster: str, datastore: str, fallback: Inventory | None = None
) -> tuple[ServiceState, ...]:
    """Return the state of each service of a cluster's datastore.

    Args:
        inventory: what vCenter said.
        cluster: name of the cluster.
        datastore: name of the datastore.
        fallback: an inventory of the user, asked where vCenter says nothing; None: there is none.
    """
    return tuple(_state(name, key, inventory, cluster, datastore, fallback) for name, key in SERVICES.items())


def _state(
    name: str, key: str, inventory: Inventory, cluster: str, datastore: str, fallback: Inventory | None
) -> ServiceState:
    store = Entity(EntityKind.DATASTORE, datastore)
    is_vsan = str(inventory.get(store, "type") or "").startswith("vsan")
    is_on = _flag(inventory, key, cluster) if is_vsan else None
    if is_on is not None:
        return ServiceState(name, is_on, "vCenter says")
    if fallback is not None:
        is_on = _flag(fallback, key, cluster)
        if is_on is not None:
            return ServiceState(name, is_on, "the inventory says")
    return ServiceState(name, None, NO_ANSWER if is_vsan else NOT_VSAN)


def _flag(inventory: Inventory, key: str, cluster: str) -> bool | None:
    values = [inventory.get(entity, key) for entity in inventory.named(EntityKind.CLUSTER, cluster)]
    known = [bool(value) for value in values if value is not None]
    return known[0] if known and len(set(known)) == 1 else None
