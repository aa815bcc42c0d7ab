"""A database's log or data is on vSAN erasure coding.

Finds:
    Virtual disks with RAID-5 or RAID-6 in their vSAN policy that hold a log (medium) or data (low). vSAN known to run
    the Express Storage Architecture is left out.

Why:
    In the original architecture a small write to RAID-5 reads data and parity first and writes both: four operations
    on the network and the devices instead of two, six with RAID-6. A log is nothing but small writes that wait.

Do:
    Give log disks and the data of the busiest databases a RAID-1 policy. Keep erasure coding for data that is mostly
    read, warehouses and archives. The change rewrites the object: do it in quiet hours.

When it is wrong:
    The Express Storage Architecture writes whole stripes and is about as quick either way; say so in the inventory
    (`vsan_esa`). Data that is mostly read loses nothing.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: RAID-1 for data and log of tier 1; logs stay on RAID-1
    everywhere. vSAN Design and Sizing guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.knowledge.vsan import is_esa
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST118",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    catalogue=("vsan-esa-no-disk-groups",),
    needs=("virtual-disk.vsan_raid", "virtual-disk.role"),
    clears=False,
)
_CODED = frozenset({"raid-5", "raid-6", "raid5", "raid6"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        role = context.role(disk)
        if role is None or role[0] not in (Role.WAL, Role.DATA) or str(fact.value).casefold() not in _CODED:
            return None
        if is_esa(context.inventory, disk):
            return None
        sure = role[0] is Role.WAL and not role[1]
        holds = "the log" if role[0] is Role.WAL else "data"
        return (
            f"{disk.label()} holds {holds} on {str(fact.value).upper()}",
            META.severity if sure else META.severity.lowered(),
        )

    yield from by_setting(context, EntityKind.VIRTUAL_DISK, "vsan_raid", judge)
