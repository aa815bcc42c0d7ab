"""Episodes: spans of time in which a condition held long enough to count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline._core import episodes
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup


@dataclass(frozen=True, eq=False)
class Episode:
    """A span in which a condition held for at least the asked duration.

    Attributes:
        first: index of the first sample of the episode in the series.
        last: index of the last one, which belongs to it.
        series_met: bool [n], the samples of the whole series that met the condition; all its episodes share it.
        values: the series [n] the condition was about.
        held_s: how many seconds the condition held within the window.
        row: the series' row in the group.
        median: of the samples that met the condition.
        lowest: of them.
        peak: the highest of them.
    """

    entity: Entity
    window: Window
    first: int
    last: int
    series_met: NDArray[np.bool_]
    values: NDArray[np.floating[Any]]
    held_s: float
    group: SeriesGroup
    row: int
    median: float
    lowest: float
    peak: float

    @property
    def met_indices(self) -> NDArray[np.intp]:
        """Indices [m], ascending, of the samples that belong to the episode and met the condition."""
        return self.first + np.flatnonzero(self.series_met[self.first : self.last + 1])

    @property
    def met_values(self) -> NDArray[np.floating[Any]]:
        """The samples [m] that belong to the episode and met the condition."""
        span = slice(self.first, self.last + 1)
        return self.values[span][self.series_met[span]]


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
    starts, ends = sample_bounds(group)
    wide = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    columns = episodes(np.ascontiguousarray(met), np.ascontiguousarray(wide), starts, ends, duration_s)
    shown = -1
    for row, first, last, held_ns, median, lowest, peak in zip(*(each.tolist() for each in columns), strict=True):
        if row != shown:
            shown, entity, series_met, series = row, group.entities[row], met[row], values[row]
        window = Window(int(starts[first]), int(ends[last]))
        span = (first, last, series_met, series, held_ns / 1e9, group, row)
        yield Episode(entity, window, *span, median, lowest, peak)


def is_held(group: SeriesGroup, met: NDArray[np.bool_], duration_s: float) -> bool:
    """Whether a series of a group has any episode; ``met`` is bool [n]."""
    starts, ends = sample_bounds(group)
    return len(episodes(met[np.newaxis, :], np.zeros((1, len(met))), starts, ends, duration_s)[0]) > 0


def sample_bounds(group: SeriesGroup) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end [n] of the interval each sample stands for; gaps in the recording do not stretch an interval."""
    ends = group.times_ns
    step = group.interval_s
    usual = 0 if np.isnan(step) else round(step * 1e9)
    starts = ends - usual
    if len(ends) > 1:
        starts[1:] = np.maximum(starts[1:], ends[:-1])
    return starts, ends


def joined_windows(windows: Iterable[Window], gap_s: float = 0.0) -> tuple[Window, ...]:
    """Windows in order of time, those that overlap or lie within ``gap_s`` of each other joined."""
    joined: list[Window] = []
    for window in sorted(windows, key=lambda w: (w.start_ns, w.end_ns)):
        if joined and window.start_ns - joined[-1].end_ns <= gap_s * 1e9:
            joined[-1] = Window(joined[-1].start_ns, max(joined[-1].end_ns, window.end_ns))
        else:
            joined.append(window)
    return tuple(joined)
