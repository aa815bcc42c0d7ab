"""A database's disk is stored on vSAN once: the first failed device loses it.

Finds:
    Virtual disks whose vSAN policy tolerates no failure: critical for data, log and temp disks, high for disks whose
    role is not known. System and backup disks are high too.

Why:
    Without a second copy a single failed device, disk group or host destroys the object, or stops the VM until it is
    back. Maintenance becomes slow as well: everything must be moved away first.

Do:
    Assign a policy that tolerates at least one failure, RAID-1 for databases, and check that there is room for the
    copies.

When it is wrong:
    Scratch disks of software that keeps its own copies on other hosts may have none on purpose, with each node pinned
    to its host.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: at least one failure to tolerate, never data without
    redundancy. vSAN Design and Sizing guide: the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST117",
    layer=Layer.DATASTORE,
    severity=Severity.CRITICAL,
    needs=("virtual-disk.vsan_ftt",),
    thresholds={"warn": Threshold(1.0, "count", "vmgu.ru articles on vSphere, vSAN and StarWind performance")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value >= context.limit("warn"):
            return None
        role = context.role(disk)
        sure = role is not None and role[0] in DATABASE_ROLES and not role[1]
        return f"{disk.label()} is stored without redundancy", META.severity if sure else META.severity.lowered()

    yield from by_setting(context, EntityKind.VIRTUAL_DISK, "vsan_ftt", judge)
