"""A device that holds a database's data answers too slowly.

Finds:
    Device latency (DAVG) of a LUN whose role is data above 10 ms (warning) or 20 ms (critical), on flash above 2 ms
    or 5 ms, for at least 15 s. Only samples with 50 or more commands per second count, or with a command under way at
    any time.

Why:
    DAVG is the time below the hypervisor: adapter, fabric, array, disk. Every page that is not in the database's
    cache costs a query this time, and no setting of the VM shortens it.

Do:
    Look at the array and the fabric: a rebuild, a full cache, a neighbour's load, a degraded path. Then spread the
    data over more LUNs, choose RAID 10, or move it to flash.

    Where only writes are slow: see the array's write cache (its battery, a full cache, write-through mode), synchronous
    replication to another site, parity (RAID 5 or 6) and snapshots of the array. Reads do not pay for these.

    Where only reads are slow: the array's write cache hides its disks from writes; reads wait for them. See the disks'
    load, a rebuild, a tier that is too slow, and reads of backups.

When it is wrong:
    Backups, bulk loads and checkpoints with large or many commands raise the average without hurting queries: compare
    the commands' size. A role guessed from a name may be wrong; the finding says when it was guessed. Whether a
    device is flash is only known when the inventory says so; until then the limits of rotating disks hold.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): DAVG of data below 10 ms.
    EsxtopDrill c_map.csv: 20 ms critical.
    InterSystems PerfTools RanRead guide: 2 ms average of random reads on flash.
    Broadcom KB 309140, storage device latency averages: why an average of few commands says nothing.
    Judgement: 5 ms critical on flash, ten times what a healthy device takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Role, Severity
from leadline.estate.derived.disks import Use
from leadline.estate.derived.latencies import forms
from leadline.rules._families.device_latency import LIMITS, SLIDES, USES, DeviceClass, slow_devices
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK, WAITS_FOR_SLOW_DEVICE

META = RuleMeta(
    code="STO102",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    needs=(forms("disk_device_latency_ms"),),
    uses=USES,
    thresholds={
        "warn": Threshold(10.0, "ms", SLIDES),
        "crit": Threshold(20.0, "ms", "EsxtopDrill c_map.csv"),
        "flash_warn": Threshold(2.0, "ms", "InterSystems PerfTools RanRead guide: average of random reads"),
        "flash_crit": Threshold(5.0, "ms", "Judgement: ten times what a healthy flash device takes"),
        **LIMITS,
    },
    explains=(*WAITS_FOR_SLOW_DEVICE, *GUEST_AND_DATABASE_WAIT_FOR_DISK),
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device whose role is data."""
    yield from slow_devices(
        context,
        DeviceClass("device latency of a LUN with data", lambda use: _is_data(use) and use.medium != "flash"),
        DeviceClass(
            "device latency of flash with data",
            lambda use: _is_data(use) and use.medium == "flash",
            warn="flash_warn",
            crit="flash_crit",
        ),
    )


def _is_data(use: Use) -> bool:
    return use.role is Role.DATA
