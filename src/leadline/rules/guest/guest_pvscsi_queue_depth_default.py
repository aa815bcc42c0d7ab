"""PVSCSI queues are left short while requests queue in the guest.

Finds:
    Guests whose PVSCSI driver takes fewer than 254 requests per disk while a disk has more than 50 under way, or whose
    adapter has fewer than 32 ring pages while its disks have more than 200 under way together; in most samples, for at
    least 15 s.

Why:
    What does not fit into the driver's queue waits in the guest's block layer, where neither the hypervisor nor the
    storage can work on it. Await in the guest grows while the host sees a short queue.

Do:
    Linux: vmw_pvscsi.cmd_per_lun=254 vmw_pvscsi.ring_pages=32 on the kernel's command line. Windows: DriverParameter
    "RequestRingPages=32,MaxQueueDepth=254" in the registry under the pvscsi service. Raise the host adapter's
    LUN queue depth (128) as well, or the queue only moves down; spread disks over several adapters first.

When it is wrong:
    A storage that is saturated already gains nothing from a longer queue; compare device latency (DAVG). Recent drivers
    take 254 requests per disk by themselves. Which disks share an adapter is not known in the guest: where the VM's
    adapters are not known either, all are taken to hang on one.

Sources:
    VMware KB 2053145: 64 requests per disk and 254 per adapter by default, 254 and 1024 at most. Tuning and profiling
    VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): cmd_per_lun=254, ring_pages=32.
    Judgement: a disk's queue counts as long near four fifths of the default, an adapter's likewise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.timeline import whole_of_parts
from leadline.estate.derived.disks import is_whole
from leadline.estate.knowledge.guest_settings import number_entry
from leadline.estate.language.templates import Over, over_groups, over_threshold

META = RuleMeta(
    code="GST153",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("guest.module_parameters", "guest_disk_queue_count"),
    thresholds={
        "depth": Threshold(254.0, "count", "VMware KB 2053145: the most a disk can have"),
        "pages": Threshold(32.0, "count", "VMware KB 2053145: the most an adapter can have"),
        "disk_queue": Threshold(50.0, "count", "VMware KB 2053145: 64 per disk by default"),
        "adapter_queue": Threshold(200.0, "count", "VMware KB 2053145: 254 per adapter by default"),
        "duration": Threshold(15.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=("guest-disk-await-high",),
    clears=False,
)
_DEPTH = ("vmw_pvscsi.cmd_per_lun", "pvscsi.MaxQueueDepth")
_PAGES = ("vmw_pvscsi.ring_pages", "pvscsi.RequestRingPages")
_PAGES_BY_ITSELF = 8.0  # what the driver takes when the parameter is 0, for up to 16 disks


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk (its depth), and per guest (its adapter's ring)."""
    deep = Over(
        metric="guest_disk_queue_count",
        noun="queue",
        kinds=(EntityKind.BLOCK_DEVICE,),
        keep=_shallow,
        mostly=True,
        warn="disk_queue",
    )
    for finding in over_threshold(context, deep):
        yield _explained(context, finding, _DEPTH, "depth")
    wide = Over(metric="guest_disk_queue_count", noun="queue of the PVSCSI adapter", mostly=True, warn="adapter_queue")
    for group in context.of("guest_disk_queue_count", EntityKind.BLOCK_DEVICE):
        rows = [row for row, disk in enumerate(group.entities) if _narrow(context, disk)]
        if rows:
            sums = whole_of_parts(group.take(rows), EntityKind.GUEST, "sum")
            adapters = np.array([_adapter_count(context, guest) for guest in sums.entities], dtype=np.float64)
            shared = replace(sums, values=sums.values / adapters[:, np.newaxis])
            for finding in over_groups(context, [shared], wide):
                yield _explained(context, finding, _PAGES, "pages")


def _shallow(context: RuleContext, disk: Entity) -> bool:
    return _is_pvscsi(context, disk) and _parameter(context, disk, _DEPTH) < context.limit("depth")


def _narrow(context: RuleContext, disk: Entity) -> bool:
    pages = _parameter(context, disk, _PAGES)
    return _is_pvscsi(context, disk) and (pages or _PAGES_BY_ITSELF) < context.limit("pages")


def _is_pvscsi(context: RuleContext, disk: Entity) -> bool:
    """By its driver where that is known; else any SCSI disk of a guest that has the driver's parameters."""
    driver = context.inventory.get(disk, "driver")
    if driver is not None:
        return "pvscsi" in str(driver)
    return not disk.name.startswith(("nvme", "dm-", "md", "loop", "vd")) and is_whole(context, disk)


def _parameter(context: RuleContext, entity: Entity, names: tuple[str, ...]) -> float:
    """The first of the parameters that is known of the guest; NaN, which is below no limit, where none is."""
    guest = entity.ancestor(EntityKind.GUEST)
    if guest is None:
        return float("nan")
    values = [number_entry(context.inventory, guest, "module_parameters", name) for name in names]
    return next((value for value in values if not np.isnan(value)), float("nan"))


def _adapter_count(context: RuleContext, guest: Entity) -> int:
    vm = context.inventory.vm_of(guest)
    adapters = [] if vm is None else context.inventory.children(vm, EntityKind.ADAPTER)
    return max(len([one for one in adapters if context.inventory.get(one, "type") == "pvscsi"]), 1)


def _explained(context: RuleContext, finding: Finding, names: tuple[str, ...], limit: str) -> Finding:
    value = _parameter(context, finding.entity, names)
    setting = Evidence(
        f"{names[0]} is {value:g}; {context.limit(limit):g} would do",
        entity=finding.entity.ancestor(EntityKind.GUEST),
        value=value,
        threshold=context.limit(limit),
        unit="count",
    )
    return replace(finding, evidence=(*finding.evidence, setting))
