"""A device's queue in the hypervisor is shorter than what guests send, and it fills.

Finds:
    Devices whose queue takes fewer than 128 commands (critical: fewer than 64) while more than one command waits for a
    slot for at least 15 s. One severity lower where no guest on the device is known to have a deeper queue. Devices
    that answer in more than 10 ms meanwhile are left out.

Why:
    A guest with a deep PVSCSI queue (254 for a disk) hands over more commands than the adapter's driver passes on to
    one LUN. What is left over waits in the kernel although the array could take it. By Little's law commands under way
    are rate times latency: a queue of 32 at 2 ms ends at 16,000 commands per second.

Do:
    Raise the LUN queue depth of the adapter's driver on every host of the cluster, usually to 128, and reboot: for
    instance `esxcli system module parameters set -m lpfc -p lpfc_lun_queue_depth=128`, or `ql2xmaxqdepth` of
    qlnativefc. Raise the number of outstanding requests with competing worlds with it, and ask the array's maker how
    many commands its ports take from all hosts together.

When it is wrong:
    On a slow device a longer queue only moves the waiting. A small array with many hosts is better off with short
    queues. NVMe and vSAN devices have depths of their own.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): an LPe16000 with a LUN
    queue depth of 128. VMware KB 2053145: PVSCSI queue depths.
    Linux kernel documentation, block layer, and Little's law: the queue that a rate and a latency need.
    Judgement: one waiting command over 15 s is a queue that fills; 10 ms is a slow device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isnan

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.core.statistics.rows import row_quantile
from leadline.estate.derived.disks import MS_PER_S, behind
from leadline.estate.derived.series import mean_of
from leadline.estate.language.templates import Over, over_threshold, setting_evidence
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="STO137",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    catalogue=("storage-littles-law",),
    needs=("disk_queue_depth_count|device.queue_depth_count", "disk_queued_count"),
    uses=("disk_iops", "disk_guest_latency_ms", "disk_device_latency_ms"),
    thresholds={
        "depth": Threshold(128.0, "count", "Tuning and profiling VMware (slides): LUN queue depth for heavy I/O"),
        "depth_crit": Threshold(64.0, "count", "VMware KB 2053145: PVSCSI sends 64 to a disk by default"),
        "queued": Threshold(1.0, "count", "Judgement: more than one, sample after sample, is not chance"),
        "slow": Threshold(10.0, "ms", "Judgement: a device as slow as this is not helped by a longer queue"),
        "duration": THREE_SAMPLES,
    },
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    depths = _depths(context)
    guests = _guest_depths(context)
    spec = Over(
        "disk_queued_count",
        "commands queued",
        (EntityKind.DEVICE,),
        keep=lambda _, entity: depths.get(entity, np.inf) < context.limit("depth"),
        warn="queued",
    )
    for finding in over_threshold(context, spec):
        device = finding.entity
        slow = mean_of(context, "disk_device_latency_ms", device, finding.windows)
        if slow is None or slow <= context.limit("slow"):
            yield _judged(context, finding, depths[device], guests.get(device))


def _judged(context: RuleContext, finding: Finding, depth: float, guest_depth: float | None) -> Finding:
    device = finding.entity
    severity = META.severity if depth < context.limit("depth_crit") else META.severity.lowered()
    deeper = guest_depth is not None and guest_depth > depth
    evidence = [
        Evidence(
            f"the queue of {device.label()} takes {depth:g} commands",
            metric="disk_queue_depth_count",
            entity=device,
            value=depth,
            threshold=context.limit("depth"),
            unit="count",
        )
    ]
    if deeper:
        evidence.append(Evidence(f"a guest on it sends up to {guest_depth:g} at once", value=guest_depth, unit="count"))
    rate, latency = (mean_of(context, metric, device, finding.windows) for metric in META.uses[:2])
    if rate is not None and latency is not None:
        needed = rate * latency / MS_PER_S
        statement = f"{show(rate, 'per_s')} at {show(latency, 'ms')} need {needed:.0f} slots"
        evidence.append(Evidence(statement, statistic="mean", value=needed, threshold=depth, unit="count"))
    for adapter in [] if device.parent is None else context.inventory.children(device.parent, EntityKind.ADAPTER):
        evidence.extend(setting_evidence(context, adapter, "lun_queue_depth_count"))
    return replace(
        finding,
        summary=f"The queue of {device.label()} takes only {depth:g} commands and is full",
        severity=severity if deeper else severity.lowered(),
        evidence=(*evidence, *finding.evidence),
    )


def _depths(context: RuleContext) -> dict[Entity, float]:
    """Queue depth of every device: as set, else the median of what was recorded."""
    depths: dict[Entity, float] = {}
    for group in context.of("disk_queue_depth_count", EntityKind.DEVICE):
        medians = row_quantile(np.where(np.isfinite(group.values), group.values, np.nan), 0.5)
        depths |= {e: depth for e, depth in zip(group.entities, medians.tolist(), strict=True) if not isnan(depth)}
    for device in context.inventory.of_kind(EntityKind.DEVICE):
        depth = context.inventory.get(device, "queue_depth_count")
        if depth is not None:
            depths[device] = float(depth)
    return depths


def _guest_depths(context: RuleContext) -> dict[Entity, float]:
    """The deepest queue of guests' disks on each device, where the inventory says what lies where."""
    depths: dict[Entity, float] = {}
    for disk in context.inventory.of_kind(EntityKind.BLOCK_DEVICE):
        depth = context.inventory.get(disk, "queue_depth_count")
        for below in [] if depth is None else behind(context.inventory, disk):
            depths[below] = max(float(depth), depths.get(below, 0.0))
    return depths
