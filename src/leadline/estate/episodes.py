"""Episodes: spans of time in which a condition held long enough to count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup


@dataclass(frozen=True, eq=False)
class Episode:
    """A span in which a condition held for at least the asked duration.

    Attributes:
        row: the series' row in the group.
        met: bool [n], the samples of the whole series that belong to the episode and met the condition.
        values: the series [n] the condition was about.
        held_s: how many seconds the condition held within the window.
    """

    entity: Entity
    window: Window
    met: NDArray[np.bool_]
    values: NDArray[np.floating[Any]]
    held_s: float
    group: SeriesGroup
    row: int

    @cached_property
    def median(self) -> float:
        """Median of the samples that met the condition."""
        # A sick host has ten thousand episodes of few samples, for which `numpy.median` takes five times as long.
        ordered = np.sort(self.values[self.met])
        half = len(ordered) // 2
        return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)

    @property
    def peak(self) -> float:
        """Highest of the samples that met the condition."""
        return float(np.max(self.values[self.met]))


def find_episodes(
    group: SeriesGroup,
    met: NDArray[np.bool_],
    values: NDArray[np.floating[Any]],
    duration_s: float,
) -> Iterator[Episode]:
    """Episodes of every series of a group.

    A sample stands for the interval that ends at its time. Spans in which the condition held are joined when the gap
    between them is not longer than ``duration_s`` nor than what held before and after it (a condition that flickers is
    one episode, a spike long before it is not part of it), and count when they held for ``duration_s`` in sum. A
    single sample counts when its interval alone is long enough.

    Args:
        group: gives entities, times and the interval.
        met: bool [k, n]; False where the value is NaN.
        values: [k, n] in the unit the evidence will state.
        duration_s: the least time the condition must have held.
    """
    if met.shape[1] == 0:
        return
    starts, ends = sample_bounds(group)
    for row in np.flatnonzero(met.any(axis=1)):
        for first, last in _joined_runs(met[row], starts, ends, duration_s):
            in_episode = np.zeros(met.shape[1], dtype=bool)
            in_episode[first : last + 1] = met[row, first : last + 1]
            held_s = float((ends[in_episode] - starts[in_episode]).sum()) / 1e9
            if held_s + 1e-6 >= duration_s:
                window = Window(int(starts[first]), int(ends[last]))
                yield Episode(group.entities[int(row)], window, in_episode, values[row], held_s, group, int(row))


def sample_bounds(group: SeriesGroup) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end [n] of the interval each sample stands for; gaps in the recording do not stretch an interval."""
    ends = group.times_ns
    step = group.interval_s
    usual = 0 if np.isnan(step) else round(step * 1e9)
    starts = ends - usual
    if len(ends) > 1:
        starts[1:] = np.maximum(starts[1:], ends[:-1])
    return starts, ends


def _joined_runs(
    met: NDArray[np.bool_], starts: NDArray[np.int64], ends: NDArray[np.int64], gap_s: float
) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], met, [False])).astype(np.int8)))
    firsts, lasts = edges[::2], edges[1::2] - 1
    gap_ns = gap_s * 1e9
    first, last = int(firsts[0]), int(lasts[0])
    held_ns = int(ends[last] - starts[first])
    for next_first, next_last in zip(firsts[1:].tolist(), lasts[1:].tolist(), strict=True):
        own_ns = int(ends[next_last] - starts[next_first])
        if starts[next_first] - ends[last] <= min(gap_ns, held_ns, own_ns):
            last, held_ns = next_last, held_ns + own_ns
        else:
            yield first, last
            first, last, held_ns = next_first, next_last, own_ns
    yield first, last


def joined_windows(windows: list[Window], gap_s: float = 0.0) -> tuple[Window, ...]:
    """Windows in order of time, those that overlap or lie within ``gap_s`` of each other joined."""
    joined: list[Window] = []
    for window in sorted(windows, key=lambda w: (w.start_ns, w.end_ns)):
        if joined and window.start_ns - joined[-1].end_ns <= gap_s * 1e9:
            joined[-1] = Window(joined[-1].start_ns, max(joined[-1].end_ns, window.end_ns))
        else:
            joined.append(window)
    return tuple(joined)
