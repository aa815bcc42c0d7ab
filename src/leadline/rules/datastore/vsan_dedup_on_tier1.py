"""Deduplication or compression of vSAN is on where databases write.

Finds:
    Clusters with deduplication or compression on whose VMs have data or log disks on vSAN (medium; low where those
    roles are guesses). Clusters that run the Express Storage Architecture are left out.

Why:
    In the original architecture blocks are hashed and compressed when they leave the write buffer. That costs CPU and
    slows down emptying the buffer, just what limits a database that writes without pause. Pages of databases hardly
    repeat, so there is little to save.

Do:
    Switch both off for clusters of the busiest databases (a rolling reformat of all disk groups), or move those
    databases to a cluster without. Use the database's own compression.

When it is wrong:
    Databases that are mostly read do not suffer. The Express Storage Architecture compresses before it sends and is
    cheap: name it in the inventory (`vsan_esa`).

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: off for tier 1, possible for tier 2 on flash with few
    writes. vSAN Design and Sizing guide: what it costs. It is off by default in the original architecture.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.knowledge.vsan import database_disks, is_esa, roles_guessed
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="DST124",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("cluster.vsan_dedup|cluster.vsan_compression", "virtual-disk.role"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    inventory = context.inventory
    for cluster in inventory.of_kind(EntityKind.CLUSTER):
        names = {"vsan_dedup": "deduplication", "vsan_compression": "compression"}
        on = [setting for setting in names if inventory.get(cluster, setting)]
        disks = database_disks(inventory, cluster, Role.DATA, Role.WAL) if on else []
        if not disks or is_esa(inventory, cluster):
            continue
        guessed = roles_guessed(inventory, disks)
        shown = ", ".join(disk.label() for disk in disks[:4])
        more = f" and {len(disks) - 4} more" if len(disks) > 4 else ""
        yield context.finding(
            cluster,
            f"vSAN {' and '.join(names[s] for s in on)} of {cluster.label()} slows the writes of its databases",
            [*setting_evidence(context, cluster, *on), Evidence(f"disks of databases on it: {shown}{more}")],
            severity=META.severity.lowered() if guessed else META.severity,
            guessed=guessed,
        )
