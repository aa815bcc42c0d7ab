"""The guest's kernel logged errors of a file system, or turned it read-only.

Finds:
    Errors of ext4, XFS and Btrfs in the kernel's log, aborted journals, and file systems that were shut down or
    remounted read-only.

Why:
    A file system that cannot write its journal stops all writing, so that nothing more is damaged. The database on it
    stops with it. Nearly always the disk below failed first; damage without an error of a disk is seldom.

Do:
    Read the lines before the first one: I/O errors, timeouts or resets of the disk name the cause. Once the disk
    answers again, unmount the file system and check it (fsck, xfs_repair), then mount it and check the database. Do not
    remount it read-write unchecked.

    Where no disk failed: take an image before the repair, and look for a snapshot that was reverted, a disk that two
    machines have mounted, or memory errors.

When it is wrong:
    A disk that was detached while it was mounted, and a loop device without its file, log the same.

Sources:
    Linux source: fs/ext4/super.c, fs/jbd2/journal.c, fs/xfs/xfs_fsops.c.
    Judgement: any counts, since no sound file system logs one.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.units import several
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.kernel_messages import Logged, logged
from leadline.rules._families.symptoms import DATABASE_WAITS_FOR_DISK

META = RuleMeta(
    code="GST166",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    causes=("disk-stalled",),
    needs=("guest_file_system_errors_per_s",),
    thresholds={"warn": Threshold(0.0, "per_s", "Judgement: any, since no sound file system logs one")},
    explains=DATABASE_WAITS_FOR_DISK,
    clears=False,
    examines="disks",
)
_READ_ONLY = ("read-only", "readonly", "hutting down", "shut down")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per block device, or per guest where no device is named."""

    def says(seen: Logged) -> tuple[str, Severity]:
        if any(words in text for text in seen.texts for words in _READ_ONLY):
            return f"The file system on {seen.entity.label()} failed and takes no more writes", META.severity
        errors = several(round(seen.count), "error")
        return f"The file system on {seen.entity.label()} has {errors} in the kernel's log", META.severity

    events = ("file-system-error", "file-system-read-only")
    yield from logged(context, "guest_file_system_errors_per_s", events, says, "file system error")
