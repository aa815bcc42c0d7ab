"""An IOPS limit is set on a virtual disk.

Finds:
    Virtual disks with an IOPS limit: high on disks for data, WAL or temp files, medium where the role is not known, low
    where a recording shows that the disk never came near (80 % of) the limit. Disks for backup and the system are
    left out.

Why:
    Above the limit the hypervisor makes commands wait, and the guest sees a slow disk although the storage is idle. A
    checkpoint, a backup or a big query reaches a limit that suits the average hour.

Do:
    Remove the limit, or raise it above what the disk does in its busiest minute, in the VM's settings or its storage
    policy. Against greedy neighbours use shares. If it must stay, write down why, and take latency measured at
    the limit for the limit's.

When it is wrong:
    Test systems and backup jobs are rightly limited, and at a provider the limit is what was bought. Limits count units
    of 32 KiB: a limit looks far away in operations when these are large; this is taken into account where throughput
    was recorded.

Sources:
    Cloud4Y, disk subsystem diagnosis with iostat, fio and ioping: above a profile of 1000 IOPS commands queue and
    latency grows. vmgu.ru articles on vSphere, vSAN and StarWind performance: no limits for demanding loads.
    cormachogan.com, vSAN 6.2 IOPS limit: units of 32 KiB.
    Judgement: 80 % is near, since samples average over bursts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.disks import io_rate
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES
from leadline.estate.language.iops_limits import LIMIT_UNIT_MIB
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC132",
    layer=Layer.VM,
    severity=Severity.HIGH,
    causes=("disk-capped",),
    needs=("virtual-disk.iops_limit",),
    uses=("disk_iops", "disk_reads_per_s", "disk_writes_per_s", "disk_read_mib_per_s", "disk_write_mib_per_s"),
    thresholds={"near": Threshold(80.0, "pct", "Judgement: samples average over bursts")},
    explains=("vm-iops-limit-hit",),
    clears=False,  # a disk without a limit may still be slow
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""
    peaks = _peaks(context)
    near = context.limit("near") / 100.0

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        role = context.role(disk)
        if fact.value <= 0 or (role is not None and role[0] not in DATABASE_ROLES):  # -1 is how vCenter says none
            return None
        severity = META.severity.lowered() if role is None else META.severity
        severity = Severity.LOW if peaks.get(disk, np.inf) < near * fact.value else severity
        use = "role not known" if role is None else role[0].value
        return f"{disk.label()} ({use}) is limited to {show(fact.value, 'per_s')}", severity

    for finding in by_setting(context, EntityKind.VIRTUAL_DISK, "iops_limit", judge):
        disk = finding.entity
        if disk not in peaks:
            yield finding
            continue
        peak_evidence = Evidence(
            f"the most it did in the recording is {show(peaks[disk], 'per_s')} (larger I/O in units of 32 KiB)",
            metric="disk_iops",
            entity=disk,
            statistic="max",
            value=peaks[disk],
            threshold=near * context.inventory.get(disk, "iops_limit"),
            unit="per_s",
        )
        yield replace(finding, evidence=(*finding.evidence, peak_evidence))


def _peaks(context: RuleContext) -> dict[Entity, float]:
    """The highest rate of each recorded virtual disk as a limiter may count it: the larger of commands and 32 KiB."""
    peaks: dict[Entity, float] = {}
    groups = context.of("disk_iops", EntityKind.VIRTUAL_DISK) or context.of("disk_reads_per_s", EntityKind.VIRTUAL_DISK)
    for group in groups:
        rate = io_rate(context, group)
        if rate is None:
            continue
        units = np.nan_to_num(rate)
        sizes = [context.aligned(group, metric) for metric in ("disk_read_mib_per_s", "disk_write_mib_per_s")]
        units = np.maximum(units, sum(np.nan_to_num(size) for size in sizes if size is not None) / LIMIT_UNIT_MIB)
        for entity, known, row in zip(group.entities, np.isfinite(rate).any(axis=1), units, strict=True):
            if known:
                peaks[entity] = max(float(row.max()), peaks.get(entity, 0.0))
    return peaks
