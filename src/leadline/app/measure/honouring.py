"""Use case: the load that was there beside the load that was asked for, and how busy the loading machine was."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from leadline.core.contracts.benchmark import Measured
from leadline.core.contracts.honoured import Load, LoadCheck, LoadState, compare
from leadline.core.model.workload import Workload

STAT = Path("/proc/stat")
ANY_CPU = 100.0  # where the CPU is limited on purpose, or not known: a rate that is too low is nobody's mistake


def measured(
    workload: Workload, duration_s: float, work: Callable[[], Measured]
) -> tuple[Measured, tuple[LoadCheck, ...]]:
    """Do a step, and compare the load it was with the workload; a step that was ended early says nothing."""
    before = _cpu_times()
    done = work()
    busy = _busy_pct(before, _cpu_times())
    return done, () if done.ended_early else compare(workload, done.loads, duration_s, busy)


def broken_or_none(workload: Workload, loads: Sequence[Load]) -> str | None:
    """The first key that was not honoured, in words; rates that are too low are left to the reader."""
    checks = compare(workload, loads, math.nan, ANY_CPU)
    return next((check.sentence for check in checks if check.state is LoadState.BROKEN), None)


def _cpu_times() -> tuple[float, float]:
    """Time of all CPUs since the start, in ticks: busy, and in total; NaN where the kernel does not tell.

    Source: proc(5), /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
    """
    try:
        counted = [float(word) for word in STAT.read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return math.nan, math.nan
    return sum(counted) - sum(counted[3:5]), sum(counted)


def _busy_pct(before: tuple[float, float], after: tuple[float, float]) -> float:
    passed = after[1] - before[1]
    return 100.0 * (after[0] - before[0]) / passed if passed > 0 else math.nan
