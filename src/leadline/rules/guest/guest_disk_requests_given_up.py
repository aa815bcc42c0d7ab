"""The guest's kernel gave up on requests of a disk that took too long.

Finds:
    Timeouts, aborts and resets of a disk or its controller in the kernel's log ("task abort", "attempting task abort",
    "I/O ... timeout", "hostbyte=DID_TIME_OUT").

Why:
    The kernel waits 30 s for a SCSI or NVMe disk (180 s with VMware's tools) before it aborts a request. Each such line
    is a request that was not answered for that long. All that waited for it stood still: commits, checkpoints, logins.

Do:
    Look below the guest in the minutes before each line: latency, aborts and lost paths in the host's vmkernel log or
    dmesg, path failovers, snapshots and backups, an overloaded or full datastore, the state of a cloud volume. Record
    esxtop on the host, or the hypervisor's view of the disk, until it happens again.

    Do not lower the guest's timeout; with 180 s (/sys/block/sdX/device/timeout) it outlasts a failover.

When it is wrong:
    Some disks time out on requests for their health (smartctl, queue 0 of NVMe) only. One reset at the start of the
    guest is no trouble.

Sources:
    Linux source: drivers/scsi/scsi_error.c, drivers/nvme/host/pci.c, drivers/scsi/vmw_pvscsi.c; SCSI disks wait 30 s
    (SD_TIMEOUT), NVMe 30 s (nvme_core.io_timeout).
    Judgement: any counts, since no healthy disk leaves a request for so long.
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
    code="GST164",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    causes=("disk-stalled",),
    needs=("guest_disk_timeouts_per_s",),
    thresholds={"warn": Threshold(0.0, "per_s", "Judgement: any, since no healthy disk leaves a request for so long")},
    explains=(
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
        requests = several(round(seen.count), "request")
        return (
            f"Disk {seen.entity.label()} did not answer: the kernel gave up on {requests} (timeout, abort)",
            META.severity,
        )

    yield from logged(context, "guest_disk_timeouts_per_s", ("disk-timeout",), says, "unanswered request")
