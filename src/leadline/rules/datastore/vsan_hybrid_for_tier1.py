"""A database lies on hybrid vSAN: flash cache in front of rotating disks.

Finds:
    Clusters with a disk group whose capacity tier is rotating and VMs with data or log disks on vSAN (medium; low where
    those roles are guesses).

Why:
    What misses the cache is read from a rotating disk, and what leaves the write buffer goes to one: some 100 random
    operations per second each. A scan, a backup or a restart pushes an OLTP database onto that tier.

Do:
    Put OLTP databases on an all-flash cluster, NVMe at best; prefer SAS over SATA where it is not, for its deeper
    queue. Until then size the cache for twice the working set.

When it is wrong:
    A database whose working set fits into the cache, or that is idle most of the day, is well served.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: all-flash for tier 1, SAS before SATA, NVMe.
    vSAN Design and Sizing guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.knowledge.vsan import capacity_medium, database_disks, disk_groups_of, roles_guessed

META = RuleMeta(
    code="DST125",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("disk-group.capacity_medium", "virtual-disk.role"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    inventory = context.inventory
    for cluster in inventory.of_kind(EntityKind.CLUSTER):
        if capacity_medium(inventory, cluster) != "hdd":
            continue
        disks = database_disks(inventory, cluster, Role.DATA, Role.WAL)
        if not disks:
            continue
        guessed = roles_guessed(inventory, disks)
        group = next(g for g in disk_groups_of(inventory, cluster) if capacity_medium(inventory, g) == "hdd")
        yield context.finding(
            cluster,
            f"{len(disks)} disk{'s' if len(disks) > 1 else ''} of databases on hybrid vSAN {cluster.label()}",
            [
                Evidence(f"capacity tier of {group.label()} is rotating", entity=group),
                Evidence(f"one of them is {disks[0].label()}", entity=disks[0]),
            ],
            severity=META.severity.lowered() if guessed else META.severity,
            guessed=guessed,
        )
