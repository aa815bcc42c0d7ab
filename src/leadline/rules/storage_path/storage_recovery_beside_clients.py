"""A storage cluster recovers or rebalances while its clients work, and moves more than they do.

Finds:
    Recovery of at least 10 MiB/s that is more than half of all that is moved, while clients do at least 10 operations
    a second, for at least 20 s.

Why:
    Recovery reads and writes on the same disks and the same network as the clients. Its requests are large, and a
    spinning disk that serves one answers nobody else for as long.

Do:
    Give it less, or another time: ceph config set osd osd_mclock_profile high_client_ops; before Quincy: ceph config
    set osd osd_max_backfills 1. See why it recovers: ceph health detail, ceph osd tree (an OSD that is down). To stop
    rebalancing until the night: ceph osd set norebalance, and unset it.

When it is wrong:
    On flash with a network of its own, recovery may take nothing from the clients: compare their latency with that of
    a quiet time.

Sources:
    Ceph documentation: mClock configuration; backfill and recovery. Judgement: the share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="STO197",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    needs=("storage_recovery_mib_per_s",),
    uses=("storage_client_mib_per_s", "storage_client_iops"),
    thresholds={
        "warn": Threshold(50.0, "pct", "Judgement: recovery is the larger part"),
        "recovery_min": Threshold(10.0, "mib_per_s", "Judgement: less is felt by nobody"),
        "load_min": Threshold(10.0, "per_s", "Judgement: somebody who may wait"),
        "duration": Threshold(20.0, "s", "Judgement: longer than a burst"),
    },
    explains=GUEST_AND_DATABASE_WAIT_FOR_DISK,
    clears=False,
    judgement=True,
)
_SHOWN_S = 20.0  # Judgement: one run shows what was so for as long


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    yield from over_threshold(
        context,
        Over(
            "storage_recovery_mib_per_s",
            "recovery's share of what is moved",
            (EntityKind.CLUSTER,),
            value=_share,
            load=("storage_client_iops",),
            averaged_s=_SHOWN_S,
            unit="pct",
        ),
    )


def _share(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """Share of recovery [k, n] in per cent; NaN where there is little of it or the clients' is not known."""
    recovery = group.values.astype(np.float64)
    clients = context.aligned(group, "storage_client_mib_per_s")
    if clients is None:
        return np.full(recovery.shape, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = 100.0 * recovery / (recovery + clients)
    return np.where(recovery >= context.limit("recovery_min"), share, np.nan)
