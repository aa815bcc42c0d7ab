"""Step five of a verdict, in part: disks that the database does not use are no cause, however slow.

Which disks it uses is known where an inventory says where both its data and its log lie. While the guest swaps, any
disk may be the one that it swaps to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.finding import Lowered, LoweredBecause
from leadline.core.model.vocabulary import EntityKind, Role
from leadline.estate.disks import whole_disk

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity

_SWAPPED_IN = "guest_swap_in_kib_per_s"
READS = frozenset({_SWAPPED_IN})
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
    disks = {e for group in capture.groups for e in group.entities if e.kind is EntityKind.BLOCK_DEVICE}
    return frozenset(disk for disk in disks if disk.parent in places and _is_beside(disk, places[disk.parent], capture))


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
    return not _swaps(capture, disk.parent)


BYSTANDER = Lowered(LoweredBecause.BYSTANDER)


def _swaps(capture: Capture, guest: Entity) -> bool:
    groups = capture.of(_SWAPPED_IN, EntityKind.GUEST)
    rows = (group.values[row] for group in groups for row, e in enumerate(group.entities) if e == guest)
    return any(bool(np.any(np.nan_to_num(row) > 0.0)) for row in rows)
