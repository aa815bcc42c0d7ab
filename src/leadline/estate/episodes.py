"""Episodes: spans of time in which a condition held long enough to count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.statistics.row_quantiles import median_of_sorted

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

    @property
    def met_indices(self) -> NDArray[np.intp]:
        """Indices [m], ascending, of the samples that belong to the episode and met the condition."""
        return self.first + np.flatnonzero(self.series_met[self.first : self.last + 1])

    @property
    def met_values(self) -> NDArray[np.floating[Any]]:
        """The samples [m] that belong to the episode and met the condition."""
        span = slice(self.first, self.last + 1)
        return self.values[span][self.series_met[span]]

    @cached_property
    def median(self) -> float:
        """Median of the samples that met the condition."""
        return median_of_sorted(np.sort(self.met_values))

    @property
    def peak(self) -> float:
        """Highest of the samples that met the condition."""
        return float(np.max(self.met_values))


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
    for row, spans in _spans_by_row(met, starts, ends, duration_s):
        entity, series_met, series = group.entities[row], met[row], values[row]
        for first, last, held_ns in spans:
            window = Window(int(starts[first]), int(ends[last]))
            yield Episode(entity, window, first, last, series_met, series, held_ns / 1e9, group, row)


def is_held(group: SeriesGroup, met: NDArray[np.bool_], duration_s: float) -> bool:
    """Whether a series of a group has any episode; ``met`` is bool [n]."""
    return next(_spans_by_row(met[np.newaxis, :], *sample_bounds(group), duration_s), None) is not None


def sample_bounds(group: SeriesGroup) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end [n] of the interval each sample stands for; gaps in the recording do not stretch an interval."""
    ends = group.times_ns
    step = group.interval_s
    usual = 0 if np.isnan(step) else round(step * 1e9)
    starts = ends - usual
    if len(ends) > 1:
        starts[1:] = np.maximum(starts[1:], ends[:-1])
    return starts, ends


def _spans_by_row(
    met: NDArray[np.bool_], starts: NDArray[np.int64], ends: NDArray[np.int64], duration_s: float
) -> Iterator[tuple[int, list[tuple[int, int, int]]]]:
    """Rows of a condition [k, n] that held for a duration, each with first sample, last sample and length in sum."""
    count = met.shape[1]
    until = np.concatenate(([0], np.cumsum(ends - starts)))
    padded = np.zeros(count + 2, dtype=bool)
    for row in np.flatnonzero(met.any(axis=1)).tolist():
        padded[1:-1] = met[row]
        edges = (padded[1:] != padded[:-1]).nonzero()[0]
        firsts, after = edges[::2], edges[1::2]
        lengths_ns = until[after] - until[firsts]
        if int(lengths_ns.sum()) / 1e9 + 1e-6 < duration_s:
            continue
        columns = (firsts, after - 1, starts[firsts], ends[after - 1], lengths_ns)
        joined = _joined([column.tolist() for column in columns], duration_s * 1e9)
        spans = [span for span in joined if span[2] / 1e9 + 1e-6 >= duration_s]
        if spans:
            yield row, spans


def _joined(columns: list[list[int]], gap_ns: float) -> Iterator[tuple[int, int, int]]:
    """First sample, last sample and length in sum of the runs of one series, those with short gaps joined.

    Args:
        columns: of each run the first sample, the last, where the interval of the first begins and that of the last
            ends, and the length of its intervals in sum: a pause in the recording is no part of it.
        gap_ns: the longest gap that is joined.
    """
    runs = zip(*columns, strict=True)
    first, last, start_ns, end_ns, held_ns = next(runs)
    span_ns = end_ns - start_ns
    for next_first, next_last, next_start_ns, next_end_ns, next_held_ns in runs:
        own_ns = next_end_ns - next_start_ns
        pause_ns = next_start_ns - end_ns
        end_ns = next_end_ns
        if pause_ns <= gap_ns and pause_ns <= span_ns and pause_ns <= own_ns:
            last, span_ns, held_ns = next_last, span_ns + own_ns, held_ns + next_held_ns
        else:
            yield first, last, held_ns
            first, last, span_ns, held_ns = next_first, next_last, own_ns, next_held_ns
    yield first, last, held_ns


def joined_windows(windows: list[Window], gap_s: float = 0.0) -> tuple[Window, ...]:
    """Windows in order of time, those that overlap or lie within ``gap_s`` of each other joined."""
    joined: list[Window] = []
    for window in sorted(windows, key=lambda w: (w.start_ns, w.end_ns)):
        if joined and window.start_ns - joined[-1].end_ns <= gap_s * 1e9:
            joined[-1] = Window(joined[-1].start_ns, max(joined[-1].end_ns, window.end_ns))
        else:
            joined.append(window)
    return tuple(joined)
