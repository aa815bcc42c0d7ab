"""Each VM may have few commands under way on a device that several VMs share.

Finds:
    Devices whose number of outstanding requests with competing worlds is below 64 (critical: below 32) and below their
    queue depth; one severity lower where it is not known what the device holds. Devices known to serve a single VM, or
    to hold neither data nor log nor temporary files of a database, are left out.

Why:
    As soon as a second VM uses a device, the hypervisor lets each VM have only so many commands under way, whatever
    the queue could take. The rest waits in the kernel. A database next to an idle neighbour is held back by it too.

Do:
    Raise it to the device's queue depth on every host: `esxcli storage core device set -d DEVICE -O 128`, together with
    the LUN queue depth of the driver. Better, give the database's disks devices of their own.

When it is wrong:
    It is what keeps neighbours apart: on a small array a higher number lets one VM crowd out the others. With one VM
    on the device it has no effect. Datastores on vVols and vSAN do not use it.

Sources:
    VMware KB 2053145, PVSCSI queue depth for intensive I/O: to be raised with the queue depths; the default is 32.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.disks import Use, behind, uses
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO138",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    needs=("device.competing_worlds_count",),
    thresholds={
        "warn": Threshold(64.0, "count", "VMware KB 2053145: what PVSCSI sends for a disk by default"),
        "crit": Threshold(32.0, "count", "VMware KB 2053145: the hypervisor's default"),
    },
    clears=False,  # a number that fits says nothing about waiting
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    known = uses(context)
    sharers = _vms_on(context)

    def judge(device: Entity, fact: Fact) -> tuple[str, Severity] | None:
        role = known.get(device, Use()).role
        depth = context.inventory.get(device, "queue_depth_count")
        if fact.value >= context.limit("warn") or (depth is not None and fact.value >= depth):
            return None
        if (role is not None and role not in DATABASE_ROLES) or len(sharers.get(device, ("?", "?"))) == 1:
            return None
        severity = META.severity if fact.value < context.limit("crit") else META.severity.lowered()
        severity = severity if role is not None else severity.lowered()
        return f"Each VM may have {fact.value} commands under way on {device.label()} when it is shared", severity

    yield from by_setting(context, EntityKind.DEVICE, "competing_worlds_count", judge, ("queue_depth_count",))


def _vms_on(context: RuleContext) -> dict[Entity, set[str]]:
    """Which VMs have disks on each device, where the inventory says what lies where."""
    vms_by_device: dict[Entity, set[str]] = {}
    for disk in context.inventory.of_kind(EntityKind.VIRTUAL_DISK):
        vm = disk.ancestor(EntityKind.VM)
        for below in behind(context.inventory, disk):
            vms_by_device.setdefault(below, set()).add("" if vm is None else str(vm))
    return vms_by_device
