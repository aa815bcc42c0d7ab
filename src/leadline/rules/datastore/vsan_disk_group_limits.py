"""A vSAN host has more disk groups or capacity devices than the product supports.

Finds:
    Hosts with more than 5 disk groups or 35 capacity devices, and disk groups with more than 7 capacity devices or
    none.

Why:
    Beyond the limits a device is not claimed or the configuration is not supported, and a group without capacity
    devices contributes nothing.

Do:
    Take devices out, spread them over more groups or hosts, or give the empty group capacity devices.

When it is wrong:
    The inventory may count devices that are fitted but not claimed. The Express Storage Architecture has other limits.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: 1 to 5 groups of 1 to 7 capacity devices, 35 per host.
    vCheck-vSphere checks the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

_SOURCE = "vmgu.ru articles on vSphere, vSAN and StarWind performance"

META = RuleMeta(
    code="DST129",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("disk-group.capacity_device_count",),
    thresholds={
        "groups_max": Threshold(5.0, "count", _SOURCE),
        "devices_max": Threshold(7.0, "count", _SOURCE),
        "devices_min": Threshold(1.0, "count", _SOURCE),
        "host_devices_max": Threshold(35.0, "count", _SOURCE),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host, then per disk group."""
    inventory = context.inventory
    for host in inventory.of_kind(EntityKind.HOST):
        groups = inventory.children(host, EntityKind.DISK_GROUP)
        devices = sum(inventory.get(group, "capacity_device_count") or 0 for group in groups)
        if len(groups) > context.limit("groups_max"):
            yield _finding(context, host, len(groups), "vSAN disk groups", "groups_max")
        elif devices > context.limit("host_devices_max"):
            yield _finding(context, host, devices, "vSAN capacity devices", "host_devices_max")
    for group in inventory.of_kind(EntityKind.DISK_GROUP):
        count = inventory.get(group, "capacity_device_count")
        if count is None:
            continue
        if count > context.limit("devices_max"):
            yield _finding(context, group, count, "capacity devices", "devices_max")
        elif count < context.limit("devices_min"):
            yield _finding(context, group, count, "capacity devices", "devices_min")


def _finding(context: RuleContext, entity: Entity, count: int, noun: str, limit: str) -> Finding:
    allowed = context.limit(limit)
    bound = "at most" if limit.endswith("_max") else "at least"
    evidence = Evidence(
        f"{entity.label()} has {count} {noun}, {bound} {allowed:.0f} are supported",
        entity=entity,
        value=float(count),
        threshold=allowed,
        unit="count",
    )
    return context.finding(entity, f"{entity.label()} has {count} {noun} ({bound} {allowed:.0f})", [evidence])
