"""Reads miss the cache of a hybrid vSAN disk group.

Finds:
    Read cache hit rate of a disk group below 90 % (low) or 70 % (medium) for at least 60 s. Disk groups whose capacity
    tier is known to be flash are left out, and hit rates of exactly 0 where it is not known.

Why:
    In a hybrid group flash answers the hits and rotating disks the misses. vSAN is built for nine reads of ten from
    flash; each miss takes ten times as long or more, so a drop from 90 to 80 % doubles the load of the rotating disks.

Do:
    Enlarge the cache devices or add disk groups until the cache is twice the working set, or go all-flash. Move scans
    and backups that read everything once out of busy hours: they empty the cache.

When it is wrong:
    After a restart, a migration or a rebuild the cache is cold and fills within hours. All-flash groups read from
    capacity on purpose and report 0.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: 90 % of reads from cache is the aim.
    RVC vSAN Observer graphs.js: lower limit.
    Judgement: 60 s is two samples of 30 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.vsan import capacity_medium
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="DST106",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    needs=("vsan_read_cache_hit_pct",),
    thresholds={
        "warn": Threshold(90.0, "pct", "vmgu.ru articles on vSphere, vSAN and StarWind performance"),
        "crit": Threshold(70.0, "pct", "RVC vSAN Observer graphs.js"),
        "duration": TWO_SAMPLES,
    },
    explains=("vsan-client-latency-high", *GUEST_WAITS_FOR_DISK),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk group or cache device."""
    yield from over_threshold(
        context, Over("vsan_read_cache_hit_pct", "read cache hit rate", below=True, value=_hits, keep=_of_disks)
    )


def _of_disks(context: RuleContext, entity: Entity) -> bool:
    """Hosts and clusters report the client's cache in memory, which is small by design."""
    if entity.kind in (EntityKind.HOST, EntityKind.CLUSTER):
        return False
    return capacity_medium(context.inventory, entity) != "flash"


def _hits(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """[k, n] in per cent; NaN where 0 may only say that there is no read cache."""
    hybrid = np.array([capacity_medium(context.inventory, entity) == "hdd" for entity in group.entities])
    return np.where((group.values == 0.0) & ~hybrid[:, np.newaxis], np.nan, group.values)
