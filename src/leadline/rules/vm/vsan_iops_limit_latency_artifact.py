"""vSAN delays a disk's I/O because of an IOPS limit in its policy: the latency is not the storage's.

Finds:
    Virtual disks for which vSAN reports operations delayed by their limit, or whose operations in units of 32 KiB reach
    95 % of the limit the inventory gives, for at least 60 s, while their read or write latency is above 2 ms where it
    was recorded.

Why:
    A policy's IOPS limit holds requests back until the next second's share. A limit of 200 showed 580 ms, one of 400
    some 250 ms on storage that was idle. vSAN's own charts cannot tell it from real trouble. An operation counts once
    per 32 KiB begun, so 64 KiB requests reach the limit at half of its number.

Do:
    Raise or remove the limit in the storage policy, and write down why it was set. Leave disks and network alone. What
    copies to a limited VM is slowed down too, without showing latency of its own.

When it is wrong:
    A disk close to its limit by coincidence, in samples so long that the average hides bursts. Resync, Storage vMotion
    and replication are not limited, whether snapshots are is disputed: they count as the guest's.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: latency at limits of 200 and 400; what is limited.
    cormachogan.com, vSAN 6.2 IOPS limit: units of 32 KiB; snapshots are counted.
    Judgement: 95 % of the limit, as samples are averages; 2 ms is what a log may take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Blames, Layer, Severity
from leadline.estate.language.iops_limits import limit_of
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="VMC190",
    layer=Layer.VM,
    severity=Severity.MEDIUM,
    causes=("disk-capped",),
    accuses=Blames.LIMIT,
    catalogue=("iops-limit-normalisation-32k",),
    needs=("virtual_disk_delayed_iops|virtual_disk_normalised_iops",),
    uses=("virtual_disk_latency_ms_read", "virtual_disk_latency_ms_write"),
    thresholds={
        "warn_delayed": Threshold(0.0, "per_s", "cormachogan.com, vSAN 6.2 IOPS limit: any delay is the limit's"),
        "warn": Threshold(95.0, "pct", "Judgement: samples are averages and hide moments at the limit"),
        "latency_min": Threshold(2.0, "ms", "Judgement: what the slides allow a log; below it nobody is held back"),
        "duration": TWO_SAMPLES,
    },
    explains=("vsan-client-latency-high", "vsan-latency-stddev-high", "vsan-oio-high", *GUEST_WAITS_FOR_DISK),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""
    delayed = Over("virtual_disk_delayed_iops", "I/O delayed by an IOPS limit", value=_while_slow, warn="warn_delayed")
    reached = Over(
        "virtual_disk_normalised_iops",
        "share of its IOPS limit in units of 32 KiB",
        value=_share_of_limit,
        inclusive=True,
        unit="pct",
    )
    yield from over_any(context, (delayed, reached))


def _share_of_limit(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """[k, n] in per cent; NaN where no limit is known, or the disk is quick."""
    limits = [limit_of(context.inventory, entity) for entity in group.entities]
    known = np.array([np.nan if limit is None or limit <= 0 else limit for limit in limits])
    share: NDArray[np.floating[Any]] = 100.0 * _while_slow(context, group) / known[:, np.newaxis]
    return share


def _while_slow(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """The values [k, n]; NaN where both latencies are known and low."""
    slow = np.zeros(group.values.shape, dtype=bool)
    measured = np.zeros(group.values.shape, dtype=bool)
    for metric in ("virtual_disk_latency_ms_read", "virtual_disk_latency_ms_write"):
        latency = context.aligned(group, metric)
        if latency is not None:
            with np.errstate(invalid="ignore"):
                slow |= latency > context.limit("latency_min")
            measured |= np.isfinite(latency)
    return np.where(measured & ~slow, np.nan, group.values)
