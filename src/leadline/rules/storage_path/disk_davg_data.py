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

from collections.abc import Callable, Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.disks import Busy, role_said, uses
from leadline.estate.templates import Over, over_threshold

META = RuleMeta(
    code="STO102",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    needs=("disk_device_latency_ms",),
    uses=("disk_iops",),
    thresholds={
        "warn": Threshold(
            10.0, "ms", "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)"
        ),
        "crit": Threshold(20.0, "ms", "EsxtopDrill c_map.csv"),
        "flash_warn": Threshold(2.0, "ms", "InterSystems PerfTools RanRead guide: average of random reads"),
        "flash_crit": Threshold(5.0, "ms", "Judgement: ten times what a healthy flash device takes"),
        "load_min": Threshold(50.0, "per_s", "Broadcom KB 309140: averages of few commands mislead"),
        "duration": Threshold(15.0, "s", "Judgement: three samples of esxtop's default interval"),
    },
    explains=(
        "disk-gavg-high",
        "disk-kavg-high",
        "disk-qavg-high",
        "disk-queue-full",
        "guest-disk-await-high",
        "guest-iowait-high",
        "guest-blocked-processes",
        "guest-load-average-per-core",
        "db-log-write-latency",
        "db-data-read-latency",
        "db-storage-latency-iris-read",
        "db-storage-latency-iris-journal",
        "db-iris-write-daemon-cycle",
    ),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device whose role is data."""
    known = uses(context)
    for flash, warn, crit in ((False, "warn", "crit"), (True, "flash_warn", "flash_crit")):
        devices = {e for e, use in known.items() if use.role is Role.DATA and (use.medium == "flash") is flash}
        spec = Over(
            metric="disk_device_latency_ms",
            noun=f"device latency of {'flash' if flash else 'a LUN'} with data",
            kinds=(EntityKind.DEVICE,),
            value=Busy(),
            keep=_among(devices),
            mostly=True,
            warn=warn,
            crit=crit,
        )
        yield from role_said(over_threshold(context, spec), known)


def _among(devices: set[Entity]) -> Callable[[RuleContext, Entity], bool]:
    return lambda _, entity: entity in devices
