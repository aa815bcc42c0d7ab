"""A vSAN cache device is larger than the write buffer vSAN makes of it.

Finds:
    All-flash disk groups of the original architecture whose cache device exceeds what is used as write buffer: 600 GB,
    1.6 TB from vSAN 8 on. Severity is info.

Why:
    Whoever buys a larger cache for longer bursts gets nothing beyond the limit but endurance. Bursts grow with the
    number of disk groups instead, up to five per host.

Do:
    Plan bursts with the usable size. For a larger buffer split the host into more disk groups; the spare part of the
    device still helps it wear evenly.

When it is wrong:
    In hybrid groups most of the device caches reads and is used; those are left out. Where the version is not known
    the limit of vSAN 8 is assumed, so nothing is claimed too early.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance; yellow-bricks.com, 600 GB write buffer limit.
    Judgement: 1.6 TB for vSAN 8 is known but was not read again.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.vsan import capacity_medium, is_esa, vsan_version
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST130",
    layer=Layer.DATASTORE,
    severity=Severity.INFO,
    needs=("disk-group.cache_gib", "disk-group.capacity_medium"),
    thresholds={
        "warn": Threshold(600e9 / 1024**3, "gib", "yellow-bricks.com, 600 GB write buffer limit"),
        "warn_vsan8": Threshold(1600e9 / 1024**3, "gib", "Judgement: known of vSAN 8, not read again"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk group."""
    inventory = context.inventory

    def judge(group: Entity, fact: Fact) -> tuple[str, Severity] | None:
        version = vsan_version(inventory, group)
        limit = context.limit("warn" if version is not None and version < (8, 0, 0) else "warn_vsan8")
        if fact.value <= limit or capacity_medium(inventory, group) != "flash" or is_esa(inventory, group):
            return None
        size = show(float(fact.value), "gib")
        return f"Of the {size} cache of {group.label()} {show(limit, 'gib')} buffer writes", META.severity

    yield from by_setting(context, EntityKind.DISK_GROUP, "cache_gib", judge)
