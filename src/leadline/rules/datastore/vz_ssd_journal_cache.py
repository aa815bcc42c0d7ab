"""A Virtuozzo Storage node has no SSD for its journals, or too weak a one.

Finds:
    Nodes with rotating disks and no SSD, more than 12 disks per SSD, less than 75 MB/s of SSD throughput per disk, or
    SSDs that endure less than 1 drive write per day (medium); fewer than 10 drive writes per day are low.

Why:
    Journals on SSD turn the small synchronous writes of databases into sequential ones for the rotating disks. One SSD
    that is too slow or worn out slows all disks behind it.

Do:
    Add SSDs with power-loss protection, one per 4 to 12 disks, fast enough for 75 MB/s per disk and made for 10 drive
    writes per day where they cache.

When it is wrong:
    Nodes for cold data do without. Fewer than 4 disks per SSD is no fault, only expensive.

Sources:
    Virtuozzo Storage performance tests: 7 disks behind one NVMe SSD for journals and cache. Virtuozzo Hybrid
    Infrastructure general requirements: the ratio, throughput and endurance.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

_SOURCE = "Virtuozzo Hybrid Infrastructure general requirements"

META = RuleMeta(
    code="DST145",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("host.vstorage_hdd_count", "host.vstorage_ssd_count"),
    thresholds={
        "hdd_per_ssd_max": Threshold(12.0, "ratio", _SOURCE),
        "hdd_min": Threshold(75e6, "bytes_per_s", _SOURCE),
        "dwpd_min": Threshold(1.0, "count", _SOURCE),
        "dwpd_good": Threshold(10.0, "count", _SOURCE),
    },
    clears=False,
)
_BYTES_PER_MB = 1e6

Complaint = tuple[Severity, Evidence]


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per node with all that is wrong; the worst gives the severity."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        complaints = list(_complaints(context, host))
        if complaints:
            severity = max(complaint[0] for complaint in complaints)
            statements = "; ".join(complaint[1].statement for complaint in complaints)
            summary = f"Journals of {host.label()}: {statements}"
            yield context.finding(host, summary, [complaint[1] for complaint in complaints], severity=severity)


def _complaints(context: RuleContext, host: Entity) -> Iterator[Complaint]:
    inventory, severity = context.inventory, context.meta.severity
    disks, ssds = (inventory.get(host, f"vstorage_{kind}_count") for kind in ("hdd", "ssd"))
    if not disks or ssds is None:
        return
    if ssds == 0:
        yield severity, Evidence(f"{disks} rotating disks and no SSD", entity=host)
        return
    most = context.limit("hdd_per_ssd_max")
    if disks / ssds > most:
        statement = f"{disks / ssds:.3g} disks per SSD (at most {most:g})"
        yield severity, Evidence(statement, entity=host, value=disks / ssds, threshold=most, unit="ratio")
    speed, least = inventory.get(host, "vstorage_ssd_mb_per_s"), context.limit("hdd_min")
    per_disk = None if speed is None else float(speed) * _BYTES_PER_MB * ssds / disks
    if per_disk is not None and per_disk < least:
        statement = f"{per_disk / _BYTES_PER_MB:.3g} MB/s of SSD per disk (at least {least / _BYTES_PER_MB:g})"
        yield severity, Evidence(statement, entity=host, value=per_disk, threshold=least, unit="bytes_per_s")
    dwpd = inventory.get(host, "vstorage_ssd_dwpd")
    if dwpd is not None and dwpd < context.limit("dwpd_good"):
        worse = dwpd < context.limit("dwpd_min")
        limit = context.limit("dwpd_min" if worse else "dwpd_good")
        statement = f"SSDs endure {dwpd:g} drive writes per day (at least {limit:g})"
        mild = severity if worse else severity.lowered()
        yield mild, Evidence(statement, entity=host, value=float(dwpd), threshold=limit, unit="count")
