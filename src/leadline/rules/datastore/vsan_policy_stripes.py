"""A vSAN policy stripes a disk over several devices.

Finds:
    Virtual disks whose vSAN policy has more than one stripe.

Why:
    More stripes make more components to place and to rebuild and rarely make a cached disk quicker. The queue of the
    single virtual disk in front stays one.

Do:
    Go back to one stripe; spread the load over several virtual disks on several paravirtual controllers instead.

When it is wrong:
    On hybrid vSAN a disk that misses the cache all the time can gain from more spindles.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: keep the default of one, divide data over virtual disks.
    vSAN Design and Sizing guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST119",
    layer=Layer.DATASTORE,
    severity=Severity.LOW,
    needs=("virtual-disk.vsan_stripe_count",),
    thresholds={"warn": Threshold(1.0, "count", "vmgu.ru articles on vSphere, vSAN and StarWind performance")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""
    yield from setting_over(
        context, SettingLimit(EntityKind.VIRTUAL_DISK, "vsan_stripe_count", "number of vSAN stripes")
    )
