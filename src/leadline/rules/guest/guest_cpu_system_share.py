"""Much of the CPU a guest uses goes to its kernel.

Finds:
    System time above 30 % (warning) or 50 % (critical) of user and system time together, in most samples, for at least
    30 s, while the two take 20 % of the CPUs or more.

Why:
    A database that computes spends its time in user code. System time in large shares is the price of something else:
    very many small I/Os or packets, page tables of shared memory without huge pages, transparent huge pages being
    built, context switches of too many connections, or an emulated device.

Do:
    See where the kernel is (`perf top -g`, or mpstat -P ALL for interrupts): huge pages, paravirtual adapters, a
    connection pool and larger I/Os are the usual remedies.

When it is wrong:
    A server that only streams data (backup, copy) works in the kernel by nature.

Sources:
    yaspe documentation: 30 % warns, 50 % alerts.
    Judgement: 20 % of the CPUs is the least use at which a share means something; 30 s stands for "sustained".
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
    code="GST152",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    causes=("cpu-busy",),
    needs=("guest_cpu_system_pct", "guest_cpu_user_pct"),
    thresholds={
        "warn": Threshold(30.0, "pct", "yaspe documentation"),
        "crit": Threshold(50.0, "pct", "yaspe documentation"),
        "load_min": Threshold(20.0, "pct", "Judgement: a share of little use means nothing"),
        "duration": Threshold(30.0, "s", "Judgement: long enough to be more than a burst"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    spec = Over(
        metric="guest_cpu_system_pct",
        noun="the kernel's share of CPU time",
        kinds=(EntityKind.GUEST,),
        value=_share,
        load=("guest_cpu_system_pct", "guest_cpu_user_pct"),
        mostly=True,
    )
    yield from over_threshold(context, spec)


def _share(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """System time of system and user time, percent [k, n]; NaN where either was not measured or both are zero."""
    user = context.aligned(group, "guest_cpu_user_pct")
    if user is None:
        return np.full(group.values.shape, np.nan)
    both = group.values + user
    share: NDArray[np.floating[Any]] = np.where(
        both > 0.0, 100.0 * group.values / np.where(both > 0.0, both, 1.0), np.nan
    )
    return share
