"""What VMs, their disks and their adapters are given: limits, reservations and shares of an inventory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from leadline.core.model.entities import Entity, Inventory


@dataclass(frozen=True, slots=True)
class Allocation:
    """What one resource of an entity is given.

    Attributes:
        entity: a VM, a virtual disk or an adapter.
        resource: ``CPU``, ``memory``, ``disk`` or ``network``.
        limit: at most, in ``unit``; None where there is none or it is not known.
        reservation: at least, in ``unit``; None where there is none or it is not known.
        shares: where several want more than there is; None where they are not known.
        unit: of limit and reservation.
    """

    entity: Entity
    resource: str
    limit: float | None
    reservation: float | None
    shares: float | None
    unit: str


_SETTINGS: dict[EntityKind, tuple[tuple[str, str | None, str | None, str | None, str], ...]] = {
    EntityKind.VM: (
        ("CPU", "cpu_limit_mhz", "cpu_reservation_mhz", "cpu_shares", "MHz"),
        ("memory", "memory_limit_mib", "memory_reservation_mib", "memory_shares", "MiB"),
    ),
    EntityKind.VIRTUAL_DISK: (("disk", "iops_limit", None, "shares", "IOPS"),),
    EntityKind.NIC: (("network", "limit_mbit_per_s", None, None, "Mbit/s"),),
}


def allocations(inventory: Inventory) -> list[Allocation]:
    """Every limit, reservation and share that is known, by entity; absent and negative limits are none."""
    listed = []
    for kind, rows in _SETTINGS.items():
        for entity in inventory.of_kind(kind):
            for resource, *names, unit in rows:
                limit, reservation, shares = (_positive(inventory, entity, name) for name in names)
                if not (limit is None and reservation is None and shares is None):
                    listed.append(Allocation(entity, resource, limit, reservation, shares, unit))
    return sorted(listed, key=lambda one: (str(one.entity.ancestor(EntityKind.VM) or one.entity), str(one.entity)))


def _positive(inventory: Inventory, entity: Entity, name: str | None) -> float | None:
    value = None if name is None else inventory.get(entity, name)
    return float(value) if isinstance(value, int | float) and value > 0 else None
