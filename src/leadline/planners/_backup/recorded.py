"""What recordings and inventories know of backups: machines, what they store, what the busiest writes, clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.recorded_loads import (
    DISK_KINDS,
    WRITTEN,
    RecordedInput,
    by_owner,
    machine_of,
    of_each,
    series_of,
)
from leadline.estate.knowledge.stored import machines_kept, stored_gib

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity, Inventory

SHARED = (
    (EntityKind.DATABASE, "shared_disk_cluster", (True,)),
    (EntityKind.VIRTUAL_DISK, "sharing", ("multi-writer",)),
    (EntityKind.ADAPTER, "bus_sharing", ("virtual", "physical")),
)


def recorded_inputs(capture: Capture) -> Iterator[RecordedInput]:
    """Inputs of the planner that recordings or inventories know."""
    inventory = capture.inventory
    machines = [vm for vm in machines_kept(inventory) if inventory.get(vm, "image_backup") is not False]
    if machines:
        yield RecordedInput(
            "vms", len(machines), "VMs of the inventory; templates and those without image backup left out"
        )
    stored = stored_gib(inventory)
    if stored is not None and stored[0] > 0:
        yield RecordedInput("data_tib", stored[0] / 1024.0, stored[1])
    written = by_owner(series_of(capture, WRITTEN, *DISK_KINDS), lambda disk: machine_of(inventory, disk))
    loads = of_each(capture, written)
    if loads:
        first = max(loads, key=lambda machine: (loads[machine].peak, str(machine)))
        origin = f"95th percentile of {first.name}, which writes most of {len(loads)}, {loads[first].origin}"
        yield RecordedInput("vm_write_mib_per_s", loads[first].peak, origin)
    shared = next(_shared(inventory), None)
    if shared is not None:
        yield RecordedInput("is_cluster", True, f"{shared.label()} is shared between machines")


def _shared(inventory: Inventory) -> Iterator[Entity]:
    for kind, setting, values in SHARED:
        yield from (entity for entity in inventory.of_kind(kind) if inventory.get(entity, setting) in values)
