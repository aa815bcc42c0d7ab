"""The cache of a hybrid vSAN cluster is small for what it serves.

Finds:
    Clusters with rotating capacity disks whose cache devices add up to less than 10 % of what VMs use, copies not
    counted.

Why:
    Flash answers what is in the cache. Below a tenth of the data most working sets do not fit and reads go to rotating
    disks.

Do:
    Fit larger cache devices or add disk groups; check the read cache hit rate before and after.

When it is wrong:
    The share is a rule of thumb: a small hot set needs less, a cluster full of hot databases more. All-flash clusters
    are sized by what is written per day instead and are left out.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: at least 10 % of the data. vSAN Design and Sizing guide:
    of the capacity used before copies.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.vsan import cache_gib, capacity_medium
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST126",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("cluster.vsan_used_gib", "disk-group.cache_gib", "disk-group.capacity_medium"),
    thresholds={"warn": Threshold(10.0, "pct", "vSAN Design and Sizing guide")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    noun = "vSAN cache against used space"
    yield from setting_over(
        context, SettingLimit(EntityKind.CLUSTER, "vsan_used_gib", noun, below=True, value=_share_pct, keep=_hybrid)
    )


def _hybrid(context: RuleContext, cluster: Entity) -> bool:
    return capacity_medium(context.inventory, cluster) == "hdd"


def _share_pct(context: RuleContext, cluster: Entity) -> float | None:
    used, cache = context.inventory.get(cluster, "vsan_used_gib"), cache_gib(context.inventory, cluster)
    return None if cache is None or not used else 100.0 * cache / used
