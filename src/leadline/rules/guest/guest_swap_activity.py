"""The guest swaps.

Finds:
    Memory swapped in or out by the guest, in most samples, for at least 60 s.

Why:
    A database plans with memory it believes to have. Once its buffers or its sessions' memory are paged to disk, a
    cache hit costs a disk read, and the log and data disks get the swap's load on top.

Do:
    Make the memory settings fit: shared buffers, memory per session times sessions, and what else runs on the machine,
    must leave room. Use huge pages for the database's shared memory (they are not swapped), and lower vm.swappiness.
    Look for a balloon: the hypervisor may be taking the memory away.

When it is wrong:
    Idle pages of other programs may trickle out once after start without any harm; swap to zram costs CPU, not disk.
    Rates just above nothing are critical by this rule: look at the numbers.

Sources:
    yaspe documentation: any sustained swapping of a database server alerts.
    vmstat(8): si and so.
    Judgement: 60 s stands for "sustained".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="GST105",
    layer=Layer.GUEST,
    severity=Severity.CRITICAL,
    causes=("memory-short", "swapping"),
    needs=("guest_swap_in_kib_per_s",),
    uses=("guest_swap_out_kib_per_s",),
    thresholds={
        "warn": Threshold(0.0, "kib_per_s", "yaspe documentation"),
        "duration": Threshold(60.0, "s", "Judgement: long enough to be more than a left-over page"),
    },
    explains=(
        "guest-disk-await-high",
        "guest-iowait-high",
        "guest-blocked-processes",
        "guest-load-average-per-core",
        "guest-cpu-system-share",
        "guest-cache-cold",
        "db-data-read-latency",
        "db-log-write-latency",
    ),
    examines="memory",
)


def _both_ways(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    out = context.aligned(group, "guest_swap_out_kib_per_s")
    return group.values if out is None else group.values + np.nan_to_num(out, nan=0.0)


_SPEC = Over(
    metric="guest_swap_in_kib_per_s",
    noun="swapping",
    kinds=(EntityKind.GUEST,),
    value=_both_ways,
    mostly=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    yield from over_threshold(context, _SPEC)
