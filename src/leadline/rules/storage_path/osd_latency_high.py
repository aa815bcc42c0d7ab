"""An OSD of a Ceph cluster answers slowly, alone or with all the others.

Finds:
    Commits or applies of an OSD that take longer than 25 ms (warning) or 50 ms (critical) for at least 20 s. Where
    half of the OSDs or more do, one finding of the cluster; else one per OSD, with what the others take.

Why:
    A write is answered when all of its copies are written. So one slow OSD delays every write that has a copy on it,
    which soon are the writes of all VMs.

Do:
    Look at the OSD's disk on its host (ceph osd find N, then smartctl -a, dmesg, iostat -x 1), and at the other OSDs of
    that host. Take it out until it is replaced: ceph osd out osd.N.

    Where most OSDs are slow: see what they do beside the clients (ceph -s: recovery, scrubs). See whether their
    disks have power loss protection, and whether their network drops packets. DB and WAL of spinning disks belong on
    flash.

When it is wrong:
    `ceph osd perf` shows means of the last few writes: an OSD that writes little shows what a few of them took.

Sources:
    Ceph documentation, monitoring OSDs; Yellow-Bricks esxtop thresholds: 25 ms, as for any other disk.
    Judgement: twice that is critical.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="STO195",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    needs=("osd_commit_latency_ms",),
    uses=("osd_apply_latency_ms",),
    thresholds={
        "warn": Threshold(25.0, "ms", "Yellow-Bricks esxtop thresholds"),
        "crit": Threshold(50.0, "ms", "Judgement: twice what a disk may take"),
        "duration": Threshold(20.0, "s", "Judgement: longer than a burst"),
        "all": Threshold(0.5, "ratio", "Judgement: half of the OSDs have no disk in common"),
    },
    explains=(*GUEST_AND_DATABASE_WAIT_FOR_DISK, "storage-slow-requests"),
    clears=False,
)
_SHOWN_S = 20.0  # Judgement: one run shows what was so for as long, or nobody would have typed it


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per OSD, or one of the cluster."""
    spec = Over(
        "osd_commit_latency_ms",
        "latency of OSDs",
        (EntityKind.DEVICE,),
        value=_slower_of_both,
        averaged_s=_SHOWN_S,
    )
    findings = list(over_threshold(context, spec))
    means = {
        entity: float(np.nanmean(row))
        for group in context.of(spec.metric, *spec.kinds)
        for entity, row in zip(group.entities, group.values, strict=True)
        if not np.isnan(row).all()
    }
    if len(findings) > 1 and len(findings) >= context.limit("all") * len(means):
        rolled_up = replace(spec, roll_up=EntityKind.CLUSTER, noun="latency of most OSDs")
        for finding in over_threshold(context, rolled_up):
            yield replace(finding, remedy=context.advice("Where most OSDs are slow"))
        return
    slow = {finding.entity for finding in findings}
    others = [mean for entity, mean in means.items() if entity not in slow]
    beside = f"; the other OSDs take {show(float(np.median(others)), 'ms')}" if others else ""
    for finding in findings:
        yield replace(finding, summary=finding.summary + beside)


def _slower_of_both(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """The longer of commits and applies [k, n], ms."""
    applies = context.aligned(group, "osd_apply_latency_ms")
    commits = group.values.astype(np.float64)
    return commits if applies is None else np.fmax(commits, applies)
