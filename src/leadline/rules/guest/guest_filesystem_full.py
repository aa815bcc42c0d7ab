"""A filesystem of a guest is nearly full.

Finds:
    Less than 15 % free (medium) or less than 5 % (high).

Why:
    A database that cannot extend a file stops; one that cannot write its log stops at once. Shortly before, the
    filesystem searches long for free space and fragments what it writes.

Do:
    Find what grows (WAL kept by a dead replication slot, archives, logs, temporary files), then extend disk and
    filesystem; both can be done while they are mounted.

When it is wrong:
    A volume sized for files of fixed length may be full on purpose, and 5 % of many terabytes is still much.

Sources:
    vCheck-vSphere: guest disks with little free space. RVTools, vHealth and vPartition: 15 % and less.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST146",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    causes=("disk-full",),
    needs=("block-device.filesystem_free_pct",),
    thresholds={
        "warn": Threshold(15.0, "pct", "RVTools, vHealth"),
        "crit": Threshold(5.0, "pct", "vCheck-vSphere"),
    },
    examines="file systems",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per filesystem."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        free = float(fact.value)
        if not free < context.limit("warn"):
            return None
        mount = context.inventory.get(disk, "mount")
        where = disk.label() if mount is None else f"{mount} on {disk.label()}"
        severity = META.severity if free < context.limit("crit") else META.severity.lowered()
        return f"{where} has {show(free, 'pct')} free", severity

    yield from by_setting(context, EntityKind.BLOCK_DEVICE, "filesystem_free_pct", judge)
