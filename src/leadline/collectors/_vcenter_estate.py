"""What the parts of the vCenter collector share: the inventory being filled, and objects that may lack parts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leadline.estate.knowledge.vcenter_session import of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leadline.core.model.entities import Entity, Inventory

KIB_PER_GIB = 1024.0**2
BYTES_PER_MIB = 1024.0**2
BYTES_PER_GIB = 1024.0**3
S_PER_DAY = 86_400.0


@dataclass(slots=True)
class VcenterInventory:
    """The inventory being filled and who is behind which of vCenter's own ids."""

    inventory: Inventory
    source: str
    cluster_of: dict[str, str] = field(default_factory=dict)  # host id: name of its cluster
    hosts: dict[str, Entity] = field(default_factory=dict)  # by id
    vms: dict[str, Entity] = field(default_factory=dict)  # by id, without templates
    port_groups: dict[str, str] = field(default_factory=dict)  # names of distributed port groups by their key
    # Distributed port groups of a switch (by its id) that do not grow, with their count of ports, by their key.
    fixed_ports: dict[str, dict[str, tuple[Entity, int]]] = field(default_factory=dict)
    datastores: dict[str, Entity] = field(default_factory=dict)  # by id
    luns: dict[str, str] = field(default_factory=dict)  # the only LUN of a datastore, by the datastore's name
    disks: dict[Entity, dict[int, Entity]] = field(default_factory=dict)  # virtual disks of a VM by their device key
    # Objects that hold a virtual disk where its datastore keeps objects: its own first, then those of its snapshots.
    objects: dict[Entity, list[str]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # what could not be asked for, in words for the user
    refused: Counter[str] = field(default_factory=Counter)  # objects with properties that may not be read, by type

    def add(self, entity: Entity, *, guessed: bool = False, **settings: Any) -> Entity:  # noqa: ANN401
        """Record an entity with settings from vCenter; None is "not known"."""
        return self.inventory.add(entity, self.source, guessed=guessed, **settings)


def limit_of(allocation: Any) -> float | None:  # noqa: ANN401
    """A limit, or None: -1 is vSphere's "unlimited"."""
    limit = of(allocation, "limit")
    return None if limit is None or limit < 0 else float(limit)


def word(value: Any, words: Mapping[str, str]) -> str | None:  # noqa: ANN401
    """The catalogue's word for one of vSphere's; vSphere's own where there is none, None where nothing is said."""
    return None if value is None or value == "" else words.get(str(value), str(value))
