"""The guest's kernel logged that requests of a disk failed.

Finds:
    I/O errors of a disk in the kernel's log ("I/O error, dev sdb, sector ..."), and disks that it took offline. Errors
    of floppy and CD drives, and of discards that a disk does not know, do not count.

Why:
    The kernel logs such an error after its own repeats: the read or write is lost, and the program was told. A database
    stops, restarts or reports damaged pages; a file system turns read-only. It is no slowness, the disk failed.

Do:
    Save what can be saved before any restart: take a backup or a copy of the disk. Find what failed below the guest in
    the same seconds: the host's vmkernel log or dmesg, the array's log, lost paths, a datastore without space. In the
    cloud, look at the state of the volume. Check file systems and the database's checksums before it serves again.

    Where timeouts were logged before the errors: the storage answered too late. Raise the guest's timeout
    (/sys/block/sdX/device/timeout) to 180 s.

When it is wrong:
    A disk that was detached on purpose, a USB drive or a loop device that was removed in use logs the same. Read errors
    of a few sectors of a physical disk concern these sectors only.

Sources:
    Linux source, block/blk-core.c: blk_status_to_errno and print_req_error.
    Judgement: any error counts, since no healthy disk has one.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.units import several
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.kernel_messages import Logged, logged
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="GST163",
    layer=Layer.GUEST,
    severity=Severity.CRITICAL,
    causes=("disk-stalled",),
    needs=("guest_disk_errors_per_s",),
    thresholds={"warn": Threshold(0.0, "per_s", "Judgement: any, since no healthy disk has one")},
    explains=(
        "guest-disk-requests-given-up",
        "guest-tasks-stuck",
        "guest-file-system-errors-logged",
        "guest-disk-stalled",
        *GUEST_AND_DATABASE_WAIT_FOR_DISK,
    ),
    clears=False,
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per block device."""

    def says(seen: Logged) -> tuple[str, Severity]:
        errors = several(round(seen.count), "I/O error")
        return f"Disk {seen.entity.label()} failed: {errors} in the kernel's log", META.severity

    yield from logged(
        context, "guest_disk_errors_per_s", ("disk-error", "disk-error-echo", "disk-timeout"), says, "I/O error"
    )
