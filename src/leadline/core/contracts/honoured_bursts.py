"""Bursts and pauses in the operations of a job over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

PAUSE_SHARE = 0.5  # Judgement: of the pause that was asked for; a shorter gap is the device's


@dataclass(frozen=True, slots=True)
class OverTime:
    """Operations of one job: ``counts`` in the ``interval_s`` that ended at ``ends_s``; spans without any may lack."""

    interval_s: float
    ends_s: tuple[float, ...]
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Phases:
    """Lengths in seconds: whole pauses and bursts; those the begin or the end of the round cut."""

    pauses: tuple[float, ...]
    bursts: tuple[float, ...]
    edges: tuple[float, ...]
    cut: tuple[float, ...]
    on_share: float

    @property
    def pause_s(self) -> float:
        """The middle pause."""
        return median(self.pauses) if self.pauses else math.nan

    def sentence(self) -> str:
        """The phases in words."""
        on = self.bursts or self.cut
        off = self.pauses or self.edges
        if not off:
            return "no pause"
        longest = f", longest burst {max(*on, *self.cut):.3g} s" if self.cut and max(self.cut) > max(on) else ""
        return f"{median(on) if on else math.nan:.3g} s on, {median(off):.3g} s off{longest}"


def phases(over_time: OverTime, off_s: float, duration_s: float) -> Phases:
    """The phases of a job that is to pause for ``off_s``.

    A pause begins somewhere in the last interval with operations and ends somewhere in the next one with some: on
    average it is one interval longer than the gap between them.

    >>> ends = tuple(0.1 * n for n in (*range(1, 11), *range(31, 41)))
    >>> job = phases(OverTime(0.1, ends, (5.0,) * 20), 2.0, 4.0)
    >>> round(job.pause_s, 3), [round(part, 3) for part in job.cut]
    (2.1, [0.95, 0.95])
    """
    step_s = over_time.interval_s
    ends = [end for end, count in sorted(zip(over_time.ends_s, over_time.counts, strict=True)) if count > 0]
    if not ends:
        return Phases((), (), (duration_s,), (), 0.0)
    least = max(PAUSE_SHARE * off_s, step_s)
    gaps = [(before, after - step_s) for before, after in pairwise(ends) if after - step_s - before >= least]
    pauses = tuple(end - start + step_s for start, end in gaps)
    bursts = tuple(after[0] - before[1] - step_s for before, after in pairwise(gaps))
    first, last = ends[0] - step_s, duration_s - ends[-1]
    edges = tuple(part for part in (first, last) if part >= least)
    cut = _cut(ends, gaps, step_s) if gaps else (ends[-1] - first,)
    return Phases(pauses, bursts, edges, cut, 1.0 - min(sum((*pauses, *edges)) / duration_s, 1.0))


def _cut(ends: Sequence[float], gaps: Sequence[tuple[float, float]], step_s: float) -> tuple[float, float]:
    first = gaps[0][0] - (ends[0] - step_s) - 0.5 * step_s
    last = ends[-1] - gaps[-1][1] - 0.5 * step_s
    return first, last
