"""A host has a single vSAN disk group.

Finds:
    Hosts with exactly one disk group.

Why:
    A failed cache device takes its whole group along. With one group of six disks that is all the host has; with two of
    three it is half, and the rebuild is half as long. Two groups also have twice the write buffer and two queues.

Do:
    Split the devices into two or more groups, each with a cache device of its own, at best on separate controllers.
    Evacuate the host first.

When it is wrong:
    A host of three devices has nothing to split. The Express Storage Architecture has no disk groups and is not
    looked at.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: two or more groups; 1 x 6 against 2 x 3. vSAN Design and
    Sizing guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.vsan import is_esa

META = RuleMeta(
    code="DST128",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    catalogue=("vsan-esa-no-disk-groups",),
    needs=("disk-group.cache_gib|disk-group.capacity_device_count|disk-group.capacity_medium",),
    thresholds={"warn": Threshold(2.0, "count", "vmgu.ru articles on vSphere, vSAN and StarWind performance")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        groups = context.inventory.children(host, EntityKind.DISK_GROUP)
        if not groups or len(groups) >= context.limit("warn") or is_esa(context.inventory, host):
            continue
        statement = f"the only disk group of {host.label()} is {groups[0].name}"
        evidence = Evidence(
            statement, entity=host, value=float(len(groups)), threshold=context.limit("warn"), unit="count"
        )
        yield context.finding(host, f"{host.label()} has a single vSAN disk group", [evidence])
