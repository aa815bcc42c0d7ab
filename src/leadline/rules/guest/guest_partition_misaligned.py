"""A partition of a guest's disk does not begin on a whole mebibyte.

Finds:
    Partitions whose first byte is not a multiple of 1 MiB, on disks that hold data, WAL or temp files or whose use is
    not known.

Why:
    Every page that crosses a boundary of the stripe, the flash page or the array's block below takes two operations
    instead of one, and a write of part of a block makes the storage read it first.

Do:
    Recreate the partition to start at sector 2048 or another multiple of 1 MiB (parted does so by default with
    `mkpart ... 1MiB 100%`) and restore the data; or put the filesystem on the whole disk. Align LVM and md stripes too.

When it is wrong:
    A small boot or BIOS partition is never busy; disks known to hold the system only are left out.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): misaligned disks and guest
    filesystems cost up to 30 % of I/O.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST142",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("block-device.partition_starts_bytes",),
    thresholds={
        "boundary": Threshold(1024.0**2, "bytes", "Tuning and profiling VMware virtual infrastructure (slides): 1 MiB"),
    },
    clears=False,
)
_UNIMPORTANT = frozenset({Role.SYSTEM, Role.BACKUP})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        role = context.role(disk)
        if role is not None and role[0] in _UNIMPORTANT:
            return None
        crooked = [name for name, start in fact.value.items() if _offset(start) % context.limit("boundary") > 0.0]
        if not crooked:
            return None
        return f"{', '.join(crooked)} of {disk.label()} does not begin on a multiple of 1 MiB", META.severity

    yield from by_setting(context, EntityKind.BLOCK_DEVICE, "partition_starts_bytes", judge)


def _offset(start: object) -> float:
    """Where a partition begins, bytes; 0 (aligned) where it is not a number."""
    try:
        return float(str(start))
    except ValueError:
        return 0.0
