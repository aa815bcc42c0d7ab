"""A device of unknown role answers slowly.

Finds:
    Device latency (DAVG) of a LUN that is neither known nor guessed to hold data or log above 10 ms (warning) or 25 ms
    (critical) for at least 15 s. Only samples with 50 or more commands per second count, or with a command under way
    at any time.

Why:
    DAVG is the time below the hypervisor: adapter, fabric, array, disk. What is on the device is not known, so neither
    is how much that hurts.

Do:
    Look at the array and the fabric behind this device: load of neighbours, rebuilds, path errors. Then give the
    device its role in the inventory file (or its virtual disk's), so that it is judged by what a database needs.

    Where only writes are slow: see the array's write cache (its battery, a full cache, write-through mode), synchronous
    replication to another site, parity (RAID 5 or 6) and snapshots of the array. Reads do not pay for these.

    Where only reads are slow: the array's write cache hides its disks from writes; reads wait for them. See the disks'
    load, a rebuild, a tier that is too slow, and reads of backups.

When it is wrong:
    Boot LUNs, backup targets and ISO stores may be slow without anyone waiting. Large sequential commands take longer
    by their size alone.

Sources:
    Yellow-Bricks esxtop thresholds: 25 ms. EsxtopDrill c_map.csv: 10 ms warning.
    datacenterdan.com, esxtop disk adapter best practice: what DAVG, KAVG and GAVG cover.
    Broadcom KB 309140, storage device latency averages: why an average of few commands says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Role, Severity
from leadline.estate.derived.latencies import forms
from leadline.rules._families.device_latency import LIMITS, USES, DeviceClass, slow_devices
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK, WAITS_FOR_SLOW_DEVICE

META = RuleMeta(
    code="STO103",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    needs=(forms("disk_device_latency_ms"),),
    uses=USES,
    thresholds={
        "warn": Threshold(10.0, "ms", "EsxtopDrill c_map.csv"),
        "crit": Threshold(25.0, "ms", "Yellow-Bricks esxtop thresholds"),
        **LIMITS,
    },
    explains=(*WAITS_FOR_SLOW_DEVICE, *GUEST_AND_DATABASE_WAIT_FOR_DISK),
    examines="disks",
)
_JUDGED_BY_ROLE = (Role.WAL, Role.DATA)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device that no rule for a role judges."""
    yield from slow_devices(context, DeviceClass("device latency", lambda use: use.role not in _JUDGED_BY_ROLE))
