"""The flash of a hybrid vSAN cluster does not hold twice the working set.

Finds:
    Clusters with rotating capacity disks whose cache devices add up to less than twice the working set the inventory
    gives.

Why:
    A hybrid group uses 70 % of its flash to cache reads and 30 % to buffer writes, and a copy may be cached on more
    than one host. Twice the working set leaves room for both.

Do:
    Add cache, or measure the working set again: the read cache hit rate tells whether it fits.

When it is wrong:
    A working set is an estimate and grows with the hour of the day. All-flash clusters do not cache reads.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: flash of at least twice the working set; 70 % read
    cache, 30 % write buffer.
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
    code="DST127",
    layer=Layer.DATASTORE,
    severity=Severity.LOW,
    catalogue=("vsan-hybrid-cache-split",),
    needs=("cluster.vsan_working_set_gib", "disk-group.cache_gib", "disk-group.capacity_medium"),
    thresholds={"warn": Threshold(2.0, "ratio", "vmgu.ru articles on vSphere, vSAN and StarWind performance")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    noun = "vSAN cache as a multiple of the working set"
    spec = SettingLimit(EntityKind.CLUSTER, "vsan_working_set_gib", noun, below=True, value=_times, keep=_hybrid)
    yield from setting_over(context, spec)


def _hybrid(context: RuleContext, cluster: Entity) -> bool:
    return capacity_medium(context.inventory, cluster) == "hdd"


def _times(context: RuleContext, cluster: Entity) -> float | None:
    hot, cache = context.inventory.get(cluster, "vsan_working_set_gib"), cache_gib(context.inventory, cluster)
    return None if cache is None or not hot else cache / hot
