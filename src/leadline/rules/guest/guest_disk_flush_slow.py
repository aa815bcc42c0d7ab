"""Flushes of a disk take long: each commit waits for one.

Finds:
    A mean flush (f_await) of 5 ms or more (high from 10 ms) with at least one flush in two seconds, in most samples for
    at least 20 s, where a flush takes at least as long as a write. Low severity for a disk that threads of the same
    machine serve while its CPUs are overloaded.

Why:
    A write ends in a cache, a flush ends on the medium. A database waits for the flush of its log at every commit, so
    that its commits per second and session are at most one by the flush's time.

Do:
    Look for a cache without a battery or capacitor, a consumer disk, a mirror at another site, a volume
    whose writes are forced through (sync=always), barriers of a nested file system. Put the log on a device whose
    cache is protected. Group commits (commit_delay, innodb_flush_log_at_timeout) where a lost second is acceptable.

When it is wrong:
    A flush carries what was written before it: after a large batch the first one takes long.

Sources:
    Linux Documentation/admin-guide/iostats.rst, fields 16 and 17; iostat(1), f_await.
    Judgement: a protected cache answers within 1 ms; 5 ms is felt by every commit, 10 ms is a spinning disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.guests import starved_by_cpu
from leadline.estate.language.templates import Over, over_groups
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="GST109",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=("guest_disk_flush_latency_ms",),
    uses=("guest_disk_flushes_per_s", "guest_disk_await_ms_write", "guest_run_queue_count"),
    thresholds={
        "warn": Threshold(5.0, "ms", "Judgement: felt by every commit"),
        "crit": Threshold(10.0, "ms", "Judgement: a spinning disk"),
        "least": Threshold(0.5, "per_s", "Judgement: fewer flushes hold up nobody"),
        "by_write": Threshold(1.0, "ratio", "Judgement: a disk whose writes take longer is slow as a whole"),
        "duration": Threshold(20.0, "s", "Judgement: longer than the flush of one batch"),
        "starved": Threshold(2.0, "ratio", "yaspe documentation: run queue per CPU"),
    },
    explains=(*GUEST_AND_DATABASE_WAIT_FOR_DISK, "vm-iops-limit-hit", "db-lock-waits"),
    clears=False,
    examines="disks",
    causes=("flush-slow",),
)

_SPEC = Over("guest_disk_flush_latency_ms", "flush time", inclusive=True, mostly=True)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per block device."""
    groups = (_counting(context, group) for group in context.of("guest_disk_flush_latency_ms", EntityKind.BLOCK_DEVICE))
    for finding in over_groups(context, groups, _SPEC):
        yield starved_by_cpu(context, finding)


def _counting(context: RuleContext, group: SeriesGroup) -> SeriesGroup:
    """The group with NaN where flushes are few, or writes take longer."""
    values = group.values.astype(np.float64)
    flushes = context.aligned(group, "guest_disk_flushes_per_s")
    if flushes is not None:
        values = np.where(flushes >= context.limit("least"), values, np.nan)
    writes = context.aligned(group, "guest_disk_await_ms_write")
    if writes is not None:
        shorter = values < context.limit("by_write") * np.nan_to_num(writes)
        values = np.where(shorter, np.nan, values)
    return replace(group, values=values)
