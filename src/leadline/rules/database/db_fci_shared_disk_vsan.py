"""A failover cluster shares its disks on a vSAN that cannot reserve them.

Finds:
    A database that fails over with shared disks, in a VM on a vSAN cluster older than 6.7 U3 whose iSCSI target service
    is off.

Why:
    The nodes of a Windows failover cluster fence each other by SCSI-3 persistent reservations. vSAN answers them itself
    from 6.7 U3 on; before that only through its iSCSI target. Without either, validation fails, or two nodes can write
    to one disk.

Do:
    On 6.7 give the cluster its disks through the vSAN iSCSI target service. From 6.7 U3 on use native shared disks:
    multi-writer off, physical bus sharing on the controller.

When it is wrong:
    Availability groups need no shared disks. Disks that come from another array, or from the guest's own iSCSI
    initiator, are not vSAN's business.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: vSAN 6.7 supports SCSI-3 reservations through the iSCSI
    target. Architecting Microsoft SQL Server on VMware vSphere: native from 6.7 U3 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_settings import vm_of

META = RuleMeta(
    code="DBS126",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.shared_disk_cluster", "cluster.vsan_version"),
    clears=False,
)

_NATIVE_FROM = (6, 7, 3)
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.\d{1,3})*\s*(?:(?:U|Update)\s*(\d{1,3}))?", re.IGNORECASE)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per clustered database."""
    inventory = context.inventory
    for database in inventory.of_kind(EntityKind.DATABASE):
        cluster = _cluster_of(inventory, database)
        if inventory.get(database, "shared_disk_cluster") is not True or cluster is None:
            continue
        fact = inventory.fact(cluster, "vsan_version")
        version = None if fact is None else _parsed(str(fact.value))
        target = inventory.fact(cluster, "vsan_iscsi_target_enabled")
        if fact is None or version is None or version >= _NATIVE_FROM or target is None or target.value is not False:
            continue
        evidence = [
            Evidence(
                f"vSAN of {cluster.name} is {fact.value}, native from 6.7U3 on", entity=cluster, source=fact.source
            ),
            Evidence(f"the iSCSI target service of {cluster.name} is off", entity=cluster, source=target.source),
        ]
        summary = f"{database.label()} shares disks on vSAN {fact.value}, which does not take reservations of them"
        yield context.finding(database, summary, evidence)


def _cluster_of(inventory: Inventory, database: Entity) -> Entity | None:
    vm = vm_of(inventory, database)
    host = None if vm is None else vm.ancestor(EntityKind.HOST)
    name = None if host is None else inventory.get(host, "cluster")
    return None if name is None else Entity(EntityKind.CLUSTER, str(name))


def _parsed(version: str) -> tuple[int, int, int] | None:
    match = _VERSION.match(version.strip())
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))
