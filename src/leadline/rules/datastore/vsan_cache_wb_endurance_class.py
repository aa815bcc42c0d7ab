"""A device that caches for vSAN is not made for so many writes.

Finds:
    Disk groups whose cache device endures fewer than 10 drive writes per day (medium).

Why:
    Every write of the group goes through the cache device first. A read-intensive SSD in that place wears out within
    months, and slows down or stops for clean-up long before it fails.

Do:
    Use write-intensive devices for the cache and cheaper ones for capacity. Watch the wear indicator until it is
    replaced.

When it is wrong:
    A large device that is written little lives long: drive writes per day times size is what counts. Persistent-memory
    devices have other figures.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: high endurance for cache, cheaper SSDs for capacity.
    vSAN Design and Sizing guide: endurance classes.
    Judgement: 10 drive writes per day is a starting point.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST131",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("disk-group.cache_dwpd",),
    thresholds={"warn": Threshold(10.0, "count", "Judgement: a starting point")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk group."""
    noun = "drive writes per day of the cache device"
    yield from setting_over(context, SettingLimit(EntityKind.DISK_GROUP, "cache_dwpd", noun, below=True))
