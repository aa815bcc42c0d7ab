"""A device that holds a database's log answers too slowly.

Finds:
    Device latency (DAVG) of a LUN whose role is WAL, redo or journal above 2 ms (warning) or 5 ms (critical) for at
    least 15 s, of writes where they are told apart. Only samples with 50 or more commands per second count, or with a
    command under way at any time.

Why:
    A transaction is committed when its log record is on stable storage, one small synchronous write after another.
    What the device takes for it is added to every commit, and no cache of the database hides it.

Do:
    Give the log a LUN of its own on RAID 10 or flash, with the array's write cache on and battery-backed; look for a
    rebuild, replication lag or a slow path on the array. A deeper queue does not help a commit that waits for one
    write.

    Where only writes are slow: see the array's write cache (its battery, a full cache, write-through mode), synchronous
    replication to another site, parity (RAID 5 or 6) and snapshots of the array. Reads do not pay for these.

    Where only reads are slow: the array's write cache hides its disks from writes; reads wait for them. See the disks'
    load, a rebuild, a tier that is too slow, and reads of backups.

When it is wrong:
    A role guessed from a name may be wrong; the finding says when it was guessed. A large command among few (XCOPY,
    unmap) raises the average of all: the least load filters that. Where the log shares the LUN with data, the data's
    reads are in the average of commands.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): DAVG of a WAL LUN below
    2 to 5 ms.
    Broadcom KB 309140, storage device latency averages: why an average of few commands says nothing.
    Yellow-Bricks esxtop thresholds: what DAVG covers.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.derived.disks import Busy
from leadline.estate.derived.latencies import forms
from leadline.rules._families.device_latency import LIMITS, SLIDES, USES, DeviceClass, slow_devices
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK, WAITS_FOR_SLOW_DEVICE

META = RuleMeta(
    code="STO101",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    needs=(forms("disk_device_latency_ms"),),
    uses=USES,
    thresholds={
        "warn": Threshold(2.0, "ms", SLIDES),
        "crit": Threshold(5.0, "ms", SLIDES),
        **LIMITS,
    },
    explains=(
        *WAITS_FOR_SLOW_DEVICE,
        *GUEST_WAITS_FOR_DISK,
        "db-storage-latency-iris-journal",
        "db-iris-write-daemon-cycle",
    ),
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device whose role is WAL."""
    writes = bool(context.of("disk_device_latency_ms_write", EntityKind.DEVICE))
    rates = (("disk_writes_per_s",), ("disk_iops",)) if writes else (("disk_iops",), ("disk_writes_per_s",))
    log = DeviceClass(
        "device latency of the log's LUN",
        lambda use: use.role is Role.WAL,
        value=Busy("disk_device_latency_ms_write", rates),
    )
    yield from slow_devices(context, log)
