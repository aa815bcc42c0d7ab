"""A SQL Server volume is formatted with small clusters.

Finds:
    NTFS or ReFS volumes with data, WAL or temp files whose allocation unit is not 64 KiB.

Why:
    SQL Server reads and writes extents of 64 KiB. In clusters of 4 KiB the file is mapped in many more pieces: larger
    metadata, more fragmentation as files grow, and extents that straddle stripes of the storage.

Do:
    Format a new volume with 64 KiB (`Format-Volume -AllocationUnitSize 65536`) and move the files to it.

When it is wrong:
    On flash the gain is small; do it with the next move, not for itself.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere and Microsoft SQL Server documentation: 64 KB.
    Judgement: neither gives the size of the effect.
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
    code="GST145",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("block-device.allocation_unit_bytes", "block-device.filesystem"),
    thresholds={"expected": Threshold(65_536.0, "bytes", "Architecting Microsoft SQL Server on VMware vSphere")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per volume of a database."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        role = context.role(disk)
        kind = str(context.inventory.get(disk, "filesystem")).casefold()
        if kind not in {"ntfs", "refs"} or role is None or role[0] not in DATABASE_ROLES:
            return None
        if float(fact.value) == context.limit("expected"):
            return None
        return f"{disk.label()} ({role[0].value}) has clusters of {float(fact.value):,.0f} bytes", META.severity

    yield from by_setting(context, EntityKind.BLOCK_DEVICE, "allocation_unit_bytes", judge)
