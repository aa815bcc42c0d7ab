"""What recordings and inventories know of a database's disks: reads, writes and sizes by what lies on them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import TYPE_CHECKING

from leadline.core.model.vocabulary import EntityKind, Role
from leadline.estate.derived.disks import virtual_disk_of
from leadline.estate.derived.recorded_loads import DISK_KINDS, READS, WRITES, RecordedInput, of_sum, only, series_of
from leadline.estate.knowledge.stored import size_gib

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity, Inventory
    from leadline.estate.derived.recorded_loads import Ways

ENGINES = {"postgresql": "postgresql", "sqlserver": "sqlserver", "oracle": "oracle", "iris": "intersystems"}
ROLES = {"data_gib": Role.DATA, "log_gib": Role.WAL, "temp_gib": Role.TEMP, "backup_gib": Role.BACKUP}
RATES: tuple[tuple[str, Ways], ...] = (("reads_per_s", READS), ("writes_per_s", WRITES))


def recorded_inputs(capture: Capture) -> Iterator[RecordedInput]:
    """Inputs of the planner that recordings or inventories know."""
    inventory = capture.inventory
    yield from _engine(inventory)
    for key, ways in RATES:
        groups = series_of(capture, ways, *DISK_KINDS)
        data = only(groups, lambda disk: role_of(inventory, disk) is Role.DATA)
        load = of_sum(capture, data or groups)
        if load is not None:
            which = "disks of data" if data else "all disks, as none is known to hold data"
            yield RecordedInput(key, load.peak, f"{which}, 95th percentile of {load.origin}")
    yield from _sizes(inventory)


def role_of(inventory: Inventory, disk: Entity) -> Role | None:
    """What a disk is for: its own fact, else that of the virtual disk it is; None when it is not known."""
    virtual = virtual_disk_of(inventory, disk) if disk.kind is EntityKind.BLOCK_DEVICE else None
    role = inventory.get(disk, "role") or (None if virtual is None else inventory.get(virtual, "role"))
    return None if role is None else Role(role)


def _engine(inventory: Inventory) -> Iterator[RecordedInput]:
    engines = {
        (ENGINES[name], database.label())
        for database in inventory.of_kind(EntityKind.DATABASE)
        if (name := str(inventory.get(database, "engine")).casefold()) in ENGINES
    }
    if len({engine for engine, _ in engines}) == 1:
        engine, label = min(engines)
        yield RecordedInput("engine", engine, f"database {label}")


def _sizes(inventory: Inventory) -> Iterator[RecordedInput]:
    """Sizes of disks by role, of the first kind that names the role's disks with their sizes."""
    for key, role in ROLES.items():
        for kind in (EntityKind.VIRTUAL_DISK, EntityKind.BLOCK_DEVICE):
            disks = [disk for disk in inventory.of_kind(kind) if inventory.get(disk, "role") == role.value]
            sizes = [size_gib(inventory, disk) for disk in disks]
            if disks and not any(isnan(size) for size in sizes) and sum(sizes) > 0:
                names = ", ".join(disk.label() for disk in disks)
                guess = any((fact := inventory.fact(disk, "role")) is not None and fact.guessed for disk in disks)
                yield RecordedInput(key, sum(sizes), f"{names}{', whose role is guessed' if guess else ''}")
                break
