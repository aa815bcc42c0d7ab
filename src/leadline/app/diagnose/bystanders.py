"""Step five of a verdict, in part: disks that the database does not use are no cause, however slow.

Which disks it uses is known where an inventory or a mount says where its data lies. While the guest swaps, the disk
that it swaps to counts too, and which one that is is not recorded.
"""

from __future__ import annotations

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


def uninvolved_disks(capture: Capture) -> frozenset[Entity]:
    """The block devices of a recording that no database uses; none where it is not known what its data lies on."""
    used: dict[Entity, set[str]] = {}
    for disk in capture.inventory.of_kind(EntityKind.BLOCK_DEVICE):
        role = capture.inventory.fact(disk, "role")
        if role is not None and not role.guessed and Role(role.value) in _HELD and disk.parent is not None:
            used.setdefault(disk.parent, set()).add(whole_disk(disk.name))
    for database in capture.inventory.of_kind(EntityKind.DATABASE):
        names = (capture.inventory.get(database, name) for name in ("data_device", "wal_device"))
        known = {whole_disk(str(name)) for name in names if name is not None}
        if known and database.parent is not None:
            used.setdefault(database.parent, set()).update(known)
    # What a volume or an array lies on is seldom recorded: any disk may be below it.
    stacked = {guest for guest, names in used.items() if any(name.startswith(("dm-", "md")) for name in names)}
    guests = {guest for guest in used if guest not in stacked and not _swaps(capture, guest)}
    disks = {e for group in capture.groups for e in group.entities if e.kind is EntityKind.BLOCK_DEVICE}
    return frozenset(d for d in disks if d.parent in guests and whole_disk(d.name) not in used[d.parent])


BYSTANDER = Lowered(LoweredBecause.BYSTANDER)


def _swaps(capture: Capture, guest: Entity) -> bool:
    groups = capture.of(_SWAPPED_IN, EntityKind.GUEST)
    rows = (group.values[row] for group in groups for row, e in enumerate(group.entities) if e == guest)
    return any(bool(np.any(np.nan_to_num(row) > 0.0)) for row in rows)
