"""Synchronous writes or reads wait in the queue of a storage pool, not in its disks.

Finds:
    A wait of synchronous writes, or reads, in a ZFS pool's queue (syncq_wait) above 10 ms (warning) or 25 ms
    (critical) in most samples for at least 15 s, where it is longer than the disks take (disk_wait).

Why:
    ZFS sorts requests into queues and gives each kind a few places at a disk. A commit that is synchronous is written
    to the intent log at once; without a log device that log lies on the disks of the pool, among all other writes. More
    synchronous writes than the disks take up wait in the queue, though each disk answers as quickly as it can.

Do:
    Give the pool a log device (SLOG) of flash with power-loss protection, mirrored. Ask for fewer synchronous writes:
    see what syncs (a VM's cache mode, a database's commits, NFS exports), group commits, and spread pools over more
    mirrors. sync=disabled loses commits when the host fails: not for a database.

    Where reads wait: the disks have more reads than they serve. Give the pool more memory for its cache (ARC), more
    mirrors, or flash; stop a scrub or resilver in busy hours.

When it is wrong:
    The columns are means of what went through the queue: few synchronous requests in a pool that is busy with others
    wait long without weighing much. Rebuilds (resilver) raise all queues.

Sources:
    zpool-iostat(8): total_wait, disk_wait, syncq_wait. OpenZFS, zfs(4): zfs_vdev_sync_write_max_active.
    Yellow-Bricks esxtop thresholds: 25 ms; EsxtopDrill c_map.csv: 10 ms, as for any other disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Blames, Layer, Severity
from leadline.estate.derived.series import mean_of
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="STO153",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    accuses=Blames.LIMIT,
    needs=("pool_sync_queue_wait_ms_write|pool_sync_queue_wait_ms_read",),
    uses=("pool_disk_wait_ms_write", "pool_disk_wait_ms_read"),
    thresholds={
        "warn": Threshold(10.0, "ms", "EsxtopDrill c_map.csv"),
        "crit": Threshold(25.0, "ms", "Yellow-Bricks esxtop thresholds"),
        "duration": THREE_SAMPLES,
    },
    explains=GUEST_AND_DATABASE_WAIT_FOR_DISK,
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per pool; reads only where writes do not wait."""
    reported = set()
    for way in ("write", "read"):
        spec = Over(
            f"pool_sync_queue_wait_ms_{way}",
            f"wait of synchronous {way}s in the pool's queue",
            value=_longer_than_in_disks,
            mostly=True,
        )
        for finding in over_threshold(context, spec):
            if finding.entity in reported:
                continue
            reported.add(finding.entity)
            remedy = finding.remedy if way == "write" else context.advice("Where reads wait")
            yield replace(_with_disks(context, finding, way), remedy=remedy)


def _longer_than_in_disks(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """The wait in the queue [k, n], ms; NaN where the disks took at least as long, or that was not measured."""
    waits = group.values.astype(np.float64)
    in_disks = context.aligned(group, group.metric.replace("sync_queue", "disk"))
    return np.full(waits.shape, np.nan) if in_disks is None else np.where(waits > in_disks, waits, np.nan)


def _with_disks(context: RuleContext, finding: Finding, way: str) -> Finding:
    metric = f"pool_disk_wait_ms_{way}"
    in_disks = mean_of(context, metric, finding.entity, finding.windows) or 0.0
    taken = f"the disks take {show(in_disks, 'ms')}"
    evidence = Evidence(
        f"{taken} of each {way} on average",
        metric=metric,
        entity=finding.entity,
        statistic="mean",
        value=in_disks,
        unit="ms",
    )
    return replace(finding, summary=f"{finding.summary}; {taken}", evidence=(*finding.evidence, evidence))
