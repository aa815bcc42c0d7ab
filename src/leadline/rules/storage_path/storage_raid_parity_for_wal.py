"""A log or another write-heavy load lies on parity RAID of rotating disks.

Finds:
    Devices on RAID 5 or 6 that hold a log, or to which more than 40 % of the commands are writes at 50 or more
    commands per second on average. Devices on flash are left out: there the measured latency decides.

Why:
    A small write to parity RAID makes the array read and write data and parity: four disk operations on RAID 5, six on
    RAID 6, against two on RAID 10. A log is nothing but small writes that someone waits for, and a failed disk makes
    it worse until the rebuild ends.

Do:
    Move logs, and data that is written much, to RAID 10. Where that cannot be, see to a write cache with power
    protection that is big enough for a checkpoint, and measure write latency under load.

When it is wrong:
    A large protected write cache hides the penalty while it does not fill, and arrays that write whole stripes have
    none. The array may combine pools, so that the RAID level given is not where the data is.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): RAID 10 beats RAID 5 and
    6 on writes and loses less with a failed disk. Architecting Microsoft SQL Server on VMware vSphere; Oracle
    Databases on VMware Best Practices Guide. vSAN Design and Sizing guide: operations per write (2, 4, 6).
    Judgement: 40 % writes; from there on parity RAID needs more than one and a half times the disks of RAID 10.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.derived.disks import Use, uses
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="STO140",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    catalogue=("cap-raid-write-penalty",),
    needs=("device.raid_level",),
    uses=("disk_reads_per_s", "disk_writes_per_s"),
    thresholds={
        "write_share": Threshold(40.0, "pct", "Judgement: parity then needs over one and a half times the disks"),
        "load_min": Threshold(50.0, "per_s", "Judgement: below it any RAID will do"),
    },
    judgement=True,
)
# Disk operations per small write; RAID 10 needs two.
_PENALTY = {"raid5": 4, "raid50": 4, "raid6": 6, "raid60": 6}
_PENALTY_RAID10 = 2


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    known = uses(context)
    means = {metric: _means(context, metric) for metric in META.uses}
    for device in context.inventory.of_kind(EntityKind.DEVICE):
        level = str(context.inventory.get(device, "raid_level") or "").casefold().replace("-", "").replace(" ", "")
        use = known.get(device, Use())
        if level not in _PENALTY or use.medium == "flash":
            continue
        reads, writes = (means[metric].get(device, float("nan")) for metric in META.uses)
        total = reads + writes
        heavy = total >= context.limit("load_min") and 100.0 * writes > context.limit("write_share") * total
        if use.role is Role.WAL or heavy:
            yield _finding(context, device, use, reads, writes, _PENALTY[level])


def _finding(context: RuleContext, device: Entity, use: Use, reads: float, writes: float, penalty: int) -> Finding:
    evidence = setting_evidence(context, device, "raid_level")
    total = reads + writes
    share = 100.0 * writes / total if total > 0 else float("nan")
    if np.isfinite(share):
        backend, mirrored = reads + penalty * writes, reads + _PENALTY_RAID10 * writes
        evidence += [
            Evidence(
                f"{show(share, 'pct')} of {show(total, 'per_s')} are writes",
                metric="disk_writes_per_s",
                entity=device,
                statistic="mean",
                value=share,
                threshold=context.limit("write_share"),
                unit="pct",
            ),
            Evidence(
                f"its disks do {show(backend, 'per_s')} for it, on RAID 10 it would be {show(mirrored, 'per_s')}",
                value=backend,
                threshold=mirrored,
                unit="per_s",
            ),
        ]
    of_log = use.role is Role.WAL
    load = "holds a log" if of_log else f"gets {show(share, 'pct')} writes"
    return context.finding(
        device,
        f"{device.label()} {load} and is parity RAID",
        evidence,
        guessed=(f"{device.label()} holds wal",) if of_log and use.guessed else (),
    )


def _means(context: RuleContext, metric: str) -> dict[Entity, float]:
    """Mean rate of each device over the whole recording; those never measured are left out."""
    means = {}
    for group in context.of(metric, EntityKind.DEVICE):
        for entity, values in zip(group.entities, group.values, strict=True):
            known = values[np.isfinite(values)]
            if len(known):
                means[entity] = float(np.mean(known))
    return means
