"""Requests wait in a Ceph cluster for longer than it may take.

Finds:
    Slow operations (slow ops, slow or blocked requests) in the cluster's state.

Why:
    Ceph counts a request as slow when it has waited for 30 s. A VM whose write is among them stands still, and its
    guest may set its file systems read-only.

Do:
    See which OSDs have them: ceph health detail. See what they wait for on the host of that OSD: ceph daemon osd.N
    dump_ops_in_flight. Then look at its disk and its network: ceph osd perf, dmesg, iostat -x 1.

When it is wrong:
    A monitor has slow operations, too ("mon.a has slow ops"): then its own disk is slow, not the clients' data.

Sources:
    Ceph documentation, health checks: SLOW_OPS; osd_op_complaint_time, 30 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="STO196",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    needs=("storage_slow_requests_count",),
    uses=("storage_slow_request_age_s",),
    thresholds={
        "warn": Threshold(0.0, "count", "Ceph, SLOW_OPS: each waited for 30 s"),
        "duration": Threshold(20.0, "s", "Judgement: one request that waits for 30 s is too much"),
    },
    explains=GUEST_AND_DATABASE_WAIT_FOR_DISK,
    clears=False,
)
_SHOWN_S = 30.0  # what a slow request has waited at least


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    spec = Over(
        "storage_slow_requests_count",
        "slow requests",
        (EntityKind.CLUSTER,),
        averaged_s=_SHOWN_S,
        says="{value} requests wait for 30 s or longer in {where}",
    )
    for finding in over_threshold(context, spec):
        ages = [
            float(np.nanmax(row))
            for group in context.of("storage_slow_request_age_s")
            if (row := group.row(finding.entity)) is not None and not np.isnan(row).all()
        ]
        oldest = f"; the oldest waited for {show(max(ages), 's')}" if ages else ""
        yield replace(finding, summary=finding.summary + oldest)
