"""Flushes of a VM's disk take long, measured by the hypervisor.

Finds:
    A mean flush of a virtual disk of 5 ms or more (high from 10 ms) with at least one flush in two seconds, where the
    rate is known, for at least 20 s in sum.

Why:
    A write may end in a cache of the host or the array, a flush ends on the medium. A database in the VM waits for the
    flush of its log at every commit, so that each session commits at most once in a flush's time.

Do:
    Look at what lies below the VM's disk: a pool without a log device (ZFS), a consumer disk without
    protection against power loss, a mirror on another site, a file system on a file system. Measure the same place with
    `pg_test_fsync` or `pveperf` on the host. Put the log on a device whose cache is protected. A cache mode of the VM
    that ignores flushes (unsafe) loses committed data when the host fails.

When it is wrong:
    A flush carries what was written before it: after a large batch the first one takes long.

Sources:
    QEMU, query-blockstats: flush_total_time_ns. libvirt, virsh(1), domstats: block.N.fl.times.
    Judgement: a protected cache answers within 1 ms; 5 ms is felt by every commit, 10 ms is a spinning disk.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="STO193",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    needs=("virtual_disk_latency_ms_flush",),
    uses=("virtual_disk_flushes_per_s",),
    thresholds={
        "warn": Threshold(5.0, "ms", "Judgement: felt by every commit"),
        "crit": Threshold(10.0, "ms", "Judgement: a spinning disk"),
        "least": Threshold(0.5, "per_s", "Judgement: fewer flushes hold up nobody"),
        "duration": Threshold(20.0, "s", "Judgement: longer than the flush of one batch"),
    },
    explains=(*GUEST_AND_DATABASE_WAIT_FOR_DISK, "guest-disk-flush-slow"),
    clears=False,
    examines="disks",
    causes=("flush-slow",),
)
_COUNTED_S = 20.0  # Judgement: two samples without times were typed by hand, which takes as long


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""
    yield from over_threshold(
        context,
        Over(
            "virtual_disk_latency_ms_flush",
            "flush",
            (EntityKind.VIRTUAL_DISK,),
            inclusive=True,
            value=_of_many,
            averaged_s=_COUNTED_S,
        ),
    )


def _of_many(context: RuleContext, group: SeriesGroup) -> NDArray[np.float64]:
    """Latency [k, n] where enough was flushed, or where nobody knows how much."""
    rate = context.aligned(group, "virtual_disk_flushes_per_s")
    values = np.asarray(group.values, dtype=np.float64)
    if rate is None:
        return values
    with np.errstate(invalid="ignore"):
        return np.where(rate < context.limit("least"), np.nan, values)
