"""A database's filesystem is mounted with options, or is of a type, that does not suit it.

Finds:
    Filesystems of disks that hold data, WAL or temp files: without write barriers (medium), with access times written
    on every read (low), or of a type other than ext4, xfs, zfs, btrfs, ntfs, refs (low). Of Linux and Windows: the
    file systems of macOS, AIX and Solaris are left out.

Why:
    Without barriers the disk's cache may reorder a commit and its data: after a power loss the database is corrupt. An
    access time is a write for each read of a file. Older filesystems have coarse locks and slow recovery; network and
    FAT filesystems lack the guarantees a log needs.

Do:
    Mount with noatime (relatime is nearly as good) and keep barriers on. Put databases on xfs or ext4; for IRIS
    journals keep to the list of supported filesystems.

When it is wrong:
    A controller with a battery-backed cache makes barriers superfluous; then most arrays answer them at once anyway.

Sources:
    InterSystems File System and Storage Configuration Recommendations. PostgreSQL documentation, 29.1 Reliability.
    mount(8): noatime, relatime, strictatime.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES

META = RuleMeta(
    code="GST143",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("block-device.mount_options|block-device.filesystem",),
    clears=False,
)
_SUITED = frozenset({"ext4", "xfs", "zfs", "btrfs", "ntfs", "refs"})
_OF_OTHERS = frozenset({"apfs", "hfs", "jfs", "jfs2", "ufs", "procfs"})  # macOS, AIX, Solaris, BSD
_NO_BARRIER = frozenset({"nobarrier", "barrier=0"})
_NO_ATIME = frozenset({"noatime", "relatime", "lazytime", "ro"})


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per filesystem of a database; the worst of its faults gives the severity."""
    for disk in context.inventory.of_kind(EntityKind.BLOCK_DEVICE):
        role = context.role(disk)
        faults = [] if role is None or role[0] not in DATABASE_ROLES else list(_faults(context, disk))
        if not faults or role is None:
            continue
        evidence = [
            Evidence(f"{disk.label()}: {statement}", entity=disk, source=source) for statement, source, _ in faults
        ]
        yield context.finding(
            disk,
            f"{disk.label()} ({role[0].value}) " + ", ".join(statement for statement, _, _ in faults),
            evidence,
            severity=max(severity for _, _, severity in faults),
            guessed=[f"role of {disk.label()}"] if role[1] else [],
        )


def _faults(context: RuleContext, disk: Entity) -> Iterator[tuple[str, str, Severity]]:
    """What is wrong, where it was read, how bad it is."""
    kind = context.inventory.fact(disk, "filesystem")
    options = context.inventory.fact(disk, "mount_options")
    if kind is not None and str(kind.value).casefold() in _OF_OTHERS:
        return
    if options is not None:
        given = {str(option) for option in options.value}
        if given & _NO_BARRIER:
            yield "is mounted without write barriers", options.source, Severity.MEDIUM
        # The kernel prints relatime or noatime where one holds; nothing means every read is recorded.
        if _records_reads(context, disk) and not given & _NO_ATIME:
            yield "records the time of every read", options.source, META.severity
    if kind is not None and str(kind.value).casefold() not in _SUITED:
        yield f"is a {kind.value} filesystem", kind.source, META.severity


def _records_reads(context: RuleContext, disk: Entity) -> bool:
    return str(context.inventory.get(disk, "filesystem")).casefold() not in {"ntfs", "refs", "zfs"}
