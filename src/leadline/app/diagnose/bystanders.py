"""Step five of a verdict, in part: disks that the database does not use are no cause, however slow.

Which disks it uses is known where an inventory says where both its data and its log lie. While the guest swaps, a disk
whose traffic rises with that may be the one that it swaps to; any, where no disk's does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.finding import Lowered, LoweredBecause
from leadline.core.model.vocabulary import EntityKind, Role
from leadline.estate.derived.disks import whole_disk

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity

_SWAPPED = ("guest_swap_in_kib_per_s", "guest_swap_out_kib_per_s")
_MOVED = ("disk_read_mib_per_s", "disk_write_mib_per_s")
READS = frozenset({*_SWAPPED, *_MOVED})
FOLLOWS_MIN, SECONDS_MIN = 0.7, 8  # Judgement: a correlation that two of many disks do not have by chance
_SECOND_NS = 1_000_000_000
_HELD = frozenset({Role.DATA, Role.WAL, Role.TEMP})
_DEVICES = {Role.DATA: "data_device", Role.WAL: "wal_device"}
# Disks of one sort do not lie on each other: physical or virtual ones, and loop devices.
_FAMILIES = (re.compile(r"(?:s|h|v|xv)d[a-z]+|nvme\d+n\d+|nbd\d+|mmcblk\d+"), re.compile(r"loop\d+"))


def uninvolved_disks(capture: Capture) -> frozenset[Entity]:
    """The block devices of a recording that no database uses; none where it is not known what its data lies on."""
    places: dict[Entity, list[tuple[Role, str]]] = {}
    for disk in capture.inventory.of_kind(EntityKind.BLOCK_DEVICE):
        role = capture.inventory.fact(disk, "role")
        if role is not None and not role.guessed and Role(role.value) in _HELD and disk.parent is not None:
            places.setdefault(disk.parent, []).append((Role(role.value), whole_disk(disk.name)))
    for database in capture.inventory.of_kind(EntityKind.DATABASE):
        for kept, setting in _DEVICES.items():
            name = capture.inventory.get(database, setting)
            if name is not None and database.parent is not None:
                places.setdefault(database.parent, []).append((kept, whole_disk(str(name))))
    if not places:
        return frozenset()
    disks = {e for group in capture.groups for e in group.entities if e.kind is EntityKind.BLOCK_DEVICE}
    return frozenset(disk for disk in disks if disk.parent in places and _is_beside(disk, places[disk.parent], capture))


def are_apart(one: Entity, other: Entity) -> bool:
    """Whether two disks of a machine have nothing to do with each other: none may lie on the other."""
    if {one.kind, other.kind} != {EntityKind.BLOCK_DEVICE} or one.parent != other.parent:
        return False
    names = whole_disk(one.name), whole_disk(other.name)
    return names[0] != names[1] and any(all(map(family.fullmatch, names)) for family in _FAMILIES)


def _is_beside(disk: Entity, places: list[tuple[Role, str]], capture: Capture) -> bool:
    """Whether a disk is none of those that hold data and log, nor may lie below one of them, nor is swapped to."""
    if not {role for role, _ in places} >= {Role.DATA, Role.WAL} or disk.parent is None:
        return False
    names = [name for _, name in places]
    name = whole_disk(disk.name)
    # What a volume, an array or a loop device lies on is seldom recorded: a disk of another sort may be below it.
    family = next((pattern for pattern in _FAMILIES if all(pattern.fullmatch(one) for one in names)), None)
    if family is None or family.fullmatch(name) is None or name in names:
        return False
    return not _may_be_swapped_to(capture, disk)


BYSTANDER = Lowered(LoweredBecause.BYSTANDER)


def _may_be_swapped_to(capture: Capture, disk: Entity) -> bool:
    """Whether a guest swaps, and the traffic of a disk goes up and down with that, or that of no disk does."""
    swapped = _by_second(capture, _SWAPPED, disk.parent)
    if not any(rate > 0.0 for rate in swapped.values()):
        return False
    disks = {e for metric in _MOVED for group in capture.of(metric) for e in group.entities}
    following = {
        other
        for other in disks
        if other.kind is EntityKind.BLOCK_DEVICE
        and other.parent == disk.parent
        and _follows(_by_second(capture, _MOVED, other), swapped)
    }
    return disk in following or not following


def _by_second(capture: Capture, metrics: tuple[str, ...], entity: Entity | None) -> dict[int, float]:
    """The sum of some metrics of an entity in each second that was recorded; of the first recording that has it."""
    sums: dict[int, float] = {}
    for metric in metrics:
        group = next((g for g in capture.of(metric) if entity is not None and g.row(entity) is not None), None)
        row = None if group is None or entity is None else group.row(entity)
        if group is None or row is None:
            continue
        values = np.nan_to_num(row.astype(np.float64))
        for second, value in zip((group.times_ns // _SECOND_NS).tolist(), values.tolist(), strict=True):
            sums[second] = sums.get(second, 0.0) + value
    return sums


def _follows(moved: dict[int, float], swapped: dict[int, float]) -> bool:
    """Whether a disk's traffic by second goes up and down with what is swapped."""
    seconds = sorted(moved.keys() & swapped.keys())
    one, other = (np.array([rates[second] for second in seconds]) for rates in (moved, swapped))
    if len(seconds) < SECONDS_MIN or not one.std() or not other.std():
        return False
    return float(np.corrcoef(one, other)[0, 1]) >= FOLLOWS_MIN
