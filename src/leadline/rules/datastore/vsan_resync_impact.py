"""vSAN copies data between hosts while VMs need the same disks.

Finds:
    Resync and recovery operations above 30 % (low) or 50 % (medium) of all operations for at least 60 s, while VMs do
    50 or more operations per second. Where the bytes left to copy were recorded, only while there are any.

Why:
    After a failure, a policy change or a host in maintenance vSAN rebuilds copies. That reads and writes the same
    devices and network the VMs use. vSAN yields to VMs under congestion, but latency rises before it does.

Do:
    Find out why it copies: a failed device, maintenance with full evacuation, a changed policy, a rebalance. If it is
    planned, do it at night and one change at a time; if VMs suffer, throttle the resync for a few hours in vCenter. Do
    not throttle while objects have lost redundancy.

When it is wrong:
    Operations of resync are larger than those of databases, and those of VMs are counted before they are mirrored: the
    share is rough. A resync next to idle VMs hurts nobody.

Sources:
    VMware, Troubleshooting vSAN performance: resync competes with VMs for devices and network.
    Judgement: 30 and 50 % are starting points; vSAN itself guarantees VMs about four fifths under contention.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="DST107",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    needs=("vsan_resync_iops", "vsan_client_iops"),
    uses=("vsan_resync_bytes",),
    thresholds={
        "warn": Threshold(30.0, "pct", "Judgement: a starting point"),
        "crit": Threshold(50.0, "pct", "Judgement: a starting point"),
        "load_min": Threshold(50.0, "per_s", "Judgement: fewer operations of VMs suffer little"),
        "duration": TWO_SAMPLES,
    },
    explains=(
        "vsan-congestion-high",
        "vsan-client-latency-high",
        "vsan-latency-stddev-high",
        "vsan-disk-latency-high",
        "vsan-oio-high",
        *GUEST_WAITS_FOR_DISK,
    ),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster and host."""
    spec = Over("vsan_resync_iops", "resync's share of vSAN operations", value=_share, unit="pct")
    yield from over_threshold(context, spec)


def _share(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """[k, n]: resync in per cent of all operations; NaN where VMs do too little or their rate was not recorded."""
    clients = context.aligned(group, "vsan_client_iops")
    values: NDArray[np.floating[Any]] = np.full(group.values.shape, np.nan)
    if clients is not None:
        with np.errstate(invalid="ignore"):
            counts = clients >= context.limit("load_min")
            left = context.aligned(group, "vsan_resync_bytes")
            counts &= True if left is None else ~(left <= 0.0)
        values[counts] = 100.0 * group.values[counts] / (group.values + clients)[counts]
    return values
