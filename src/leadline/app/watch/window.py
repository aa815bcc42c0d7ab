"""A live window: the last samples of many series, as one capture after each step.

Series that are sampled together are registered once, as columns of entities; each step appends one column of values.
The capture of a step shares its memory with the window: it holds until the next step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, EntityColumn, Inventory

SPARE_SHARE = 0.25  # of the samples of a window: how many more fit before the oldest make place


@dataclass(frozen=True, slots=True)
class LiveSeries:
    """Series that are sampled together.

    Attributes:
        metric: of all of them.
        entities: k of them, the same object for all metrics that are sampled of the same ones.
        source: index into the sources of the window.
        interval_s: the usual distance of samples.
    """

    metric: str
    entities: EntityColumn
    source: int
    interval_s: float


@dataclass(eq=False)
class _Track:
    """The samples of series: values [k, n] between two columns of a larger matrix."""

    series: LiveSeries
    values: NDArray[np.float32]
    times_ns: NDArray[np.int64]
    first: int = 0
    end: int = 0

    def group(self, last: int | None = None) -> SeriesGroup:
        """The samples, or the last few of them."""
        series, first = self.series, self.first if last is None else max(self.end - last, self.first)
        span = slice(first, self.end)
        return SeriesGroup(
            series.metric, series.entities, self.times_ns[span], self.values[:, span], series.interval_s, series.source
        )


@dataclass(eq=False)
class LiveWindow:
    """The samples of the last ``span_s`` seconds.

    Attributes:
        span_s: how long the window is, seconds.
        sources: what series come from.
        inventory: what is known of the entities; a change to it makes all tables anew.
        capture: the window after the last step.
        changed: metrics that got samples in the last step.
    """

    span_s: float
    sources: list[SourceInfo]
    inventory: Inventory = field(default_factory=Inventory)
    capture: Capture = field(default_factory=Capture)
    changed: frozenset[str] = frozenset()
    _tracks: dict[int, _Track] = field(default_factory=dict)
    _columns: dict[tuple[Entity, ...], EntityColumn] = field(default_factory=dict)

    def entities(self, entities: Sequence[Entity]) -> EntityColumn:
        """A column of entities; the same object for the same entities."""
        whole = tuple(entities)
        if whole not in self._columns:
            self._columns[whole] = EntityColumn(whole)
        return self._columns[whole]

    def series(self, metric: str, entities: EntityColumn, interval_s: float, source: int = 0) -> LiveSeries:
        """Register series; their samples are appended by `step`."""
        series = LiveSeries(metric, entities, source, interval_s)
        size = self._size(interval_s)
        whole = size + max(int(SPARE_SHARE * size), 1)
        values = np.empty((len(entities), whole), dtype=np.float32)
        self._tracks[id(series)] = _Track(series, values, np.empty(whole, dtype=np.int64))
        return series

    def drop(self, series: LiveSeries) -> None:
        """Forget series, as those of a host that has gone."""
        del self._tracks[id(series)]

    def step(self, time_ns: int, samples: Iterable[tuple[LiveSeries, NDArray[np.floating[Any]]]]) -> Capture:
        """Append a sample of some series and give the window.

        Args:
            time_ns: of the samples, UTC nanoseconds; each stands for the interval that ends there.
            samples: series with their values [k] in the unit of the metric; NaN is not measured. Of series that had a
                sample of that time or a later one it is left out: a sample that is sent twice is kept once.
        """
        added = []
        for series, values in samples:
            track = self._tracks[id(series)]
            if track.end > track.first and track.times_ns[track.end - 1] >= time_ns:
                continue
            self._append(track, time_ns, values)
            added.append(track)
        for track in self._tracks.values():
            oldest = time_ns - round(self.span_s * NS_PER_S)
            track.first += int(np.searchsorted(track.times_ns[track.first : track.end], oldest, side="right"))
        self.changed = frozenset(track.series.metric for track in added)
        recorded = [track.group() for track in self._tracks.values() if track.end > track.first]
        newest = Capture([track.group(1) for track in added], self.sources, self.inventory)
        self.capture = self.capture.moved_on(recorded, newest, self.sources, self.inventory)
        return self.capture

    def _size(self, interval_s: float) -> int:
        return max(int(np.ceil(self.span_s / interval_s)), 1)

    def _append(self, track: _Track, time_ns: int, values: NDArray[np.floating[Any]]) -> None:
        if track.end == len(track.times_ns):
            kept = slice(max(track.first, track.end - self._size(track.series.interval_s) + 1), track.end)
            count = kept.stop - kept.start
            track.values[:, :count] = track.values[:, kept].copy() if count > kept.start else track.values[:, kept]
            track.times_ns[:count] = track.times_ns[kept].copy()
            track.first, track.end = 0, count
        track.values[:, track.end] = values
        track.times_ns[track.end] = time_ns
        track.end += 1
