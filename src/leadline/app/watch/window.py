"""A live window: the last samples of many series, as one capture after each step.

Series that are sampled together are registered once, as columns of entities; each step appends one column of values.
Where series come and go (statements, sessions, disks), the window takes captures and finds their series itself. The
capture of a step shares its memory with the window: it holds until the next step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, EntityColumn, Inventory
from leadline.core.model.vocabulary import EntityKind

_Rows = slice | NDArray[np.intp]
_BEFORE_ALL = -(1 << 62)
EVENTS, EVENTS_MAX = "events", 1000  # a setting whose values add up; the last ones are kept of each entity
USUAL_S = 1.0  # of series whose interval is not known yet
SPARE_SHARE = 0.25  # of the samples of a window: how many more fit before the oldest make place
SPARE_ROWS_SHARE, SPARE_ROWS_MIN = 0.125, 16  # of the series: a VM that moves must not double a window of 10,000


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
    """The samples of series: values [k, n] between two columns of a larger matrix.

    Attributes:
        registered: as it was registered; it lives as long as the track, which is known by its identity.
        placed: entities of the last group that was put here, those of the series then, and the rows of the former.
    """

    series: LiveSeries
    values: NDArray[np.float32]
    times_ns: NDArray[np.int64]
    first: int = 0
    end: int = 0
    registered: LiveSeries | None = None
    placed: tuple[Sequence[Entity], EntityColumn, _Rows] | None = None

    def group(self, last: int | None = None) -> SeriesGroup:
        """The samples, or the last few of them."""
        series, first = self.series, self.first if last is None else max(self.end - last, self.first)
        span = slice(first, self.end)
        values = self.values[: len(series.entities), span]
        return SeriesGroup(
            series.metric, series.entities, self.times_ns[span], values, series.interval_s, series.source
        )

    def newest_ns(self) -> int:
        """The time of the last sample; a time before all others where there is none."""
        return int(self.times_ns[self.end - 1]) if self.end > self.first else _BEFORE_ALL

    def append(self, time_ns: int, values: NDArray[np.floating[Any]], rows: _Rows, kept_count: int) -> None:
        """Add a sample of some rows behind all others; those before the last ``kept_count`` may make place for it."""
        if self.end == len(self.times_ns):
            kept = slice(max(self.first, self.end - kept_count + 1), self.end)
            count = kept.stop - kept.start
            self.values[:, :count] = self.values[:, kept].copy() if count > kept.start else self.values[:, kept]
            self.times_ns[:count] = self.times_ns[kept].copy()
            self.first, self.end = 0, count
        if not isinstance(rows, slice):
            self.values[:, self.end] = np.nan
        self.values[rows, self.end] = values
        self.times_ns[self.end] = time_ns
        self.end += 1

    def fill(self, time_ns: int, values: NDArray[np.floating[Any]], rows: _Rows) -> bool:
        """Put a late sample where it belongs: what is known of that time stays. False where nothing was added."""
        span = self.times_ns[self.first : self.end]
        place = self.first + int(np.searchsorted(span, time_ns))
        if place == self.end or self.times_ns[place] != time_ns:
            if self.end < len(self.times_ns):
                self._move(slice(place, self.end), 1)
                self.end += 1
            elif self.first > 0:
                self._move(slice(self.first, place), -1)
                self.first, place = self.first - 1, place - 1
            else:
                return False  # the window is full of later ones
            self.times_ns[place], self.values[:, place] = time_ns, np.nan
        column = self.values[rows, place]
        added = np.isnan(column) & ~np.isnan(values)
        self.values[rows, place] = np.where(added, values, column)
        return bool(added.any())

    def narrowed(self) -> None:
        """Give up the rows of entities of which nothing is in the window any more."""
        is_here = ~np.isnan(self.values[: len(self.series.entities), self.first : self.end]).all(axis=1)
        if is_here.all():
            return
        kept = np.flatnonzero(is_here)
        self.values = self.values[kept]
        self.series = replace(self.series, entities=EntityColumn([self.series.entities[row] for row in kept]))

    def _move(self, columns: slice, by: int) -> None:
        moved = slice(columns.start + by, columns.stop + by)
        self.values[:, moved] = self.values[:, columns].copy()
        self.times_ns[moved] = self.times_ns[columns].copy()

    def widened(self, entities: Sequence[Entity]) -> None:
        """Make rows for further entities, whose samples until now are not measured."""
        known = len(self.series.entities)
        whole = EntityColumn((*self.series.entities, *entities))
        if len(whole) > len(self.values):
            size = len(whole) + max(round(SPARE_ROWS_SHARE * len(whole)), SPARE_ROWS_MIN)
            values = np.empty((size, len(self.times_ns)), dtype=np.float32)
            values[:known] = self.values[:known]
            self.values = values
        self.values[known : len(whole)] = np.nan
        self.series = replace(self.series, entities=whole)


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
    _by_name: dict[tuple[str, str, frozenset[EntityKind]], list[_Track]] = field(default_factory=dict)
    _columns: dict[tuple[Entity, ...], EntityColumn] = field(default_factory=dict)

    def entities(self, entities: Sequence[Entity]) -> EntityColumn:
        """A column of entities; the same object for the same entities, and a column itself where it is one."""
        if isinstance(entities, EntityColumn):
            return entities
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
        self._tracks[id(series)] = _Track(series, values, np.empty(whole, dtype=np.int64), registered=series)
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
            if track.newest_ns() < time_ns:
                track.append(time_ns, values, slice(0, len(values)), self._size(series.interval_s))
                added.append((track, 1))
        return self._moved(time_ns, added)

    def take(self, capture: Capture) -> Capture:
        """Add the samples of a capture to their series, known or new, and give the window.

        A sample of a time that has left the window, or of a time and series that is known, is left out: a sample that
        is given twice is kept once. Late ones are put where they belong. What the capture says of entities is merged.
        """
        added = [(track, count) for track, count in map(partial(self._put, capture), capture.groups) if count]
        self._merge(capture.inventory)
        newest_ns = max((track.newest_ns() for track in self._tracks.values()), default=_BEFORE_ALL)
        return self._moved(newest_ns, added)

    def drop_newer(self, time_ns: int) -> None:
        """Forget samples after a time, as when a clock that was ahead is put back: what comes now is the newest."""
        for track in self._tracks.values():
            span = track.times_ns[track.first : track.end]
            track.end = track.first + int(np.searchsorted(span, time_ns, side="right"))

    def forget_gone(self) -> None:
        """Give up what has left the window: sessions that ended, disks that were taken away, sources that are gone.

        Series that were registered stay, whatever is in them.
        """
        for name, tracks in list(self._by_name.items()):
            for track in tracks:
                track.narrowed()
            gone = [track for track in tracks if track.end == track.first or not track.series.entities]
            self._by_name[name] = [track for track in tracks if track not in gone]
            for track in gone:
                self._tracks = {key: known for key, known in self._tracks.items() if known is not track}
            if not self._by_name[name]:
                del self._by_name[name]
        self._columns.clear()

    def _put(self, capture: Capture, group: SeriesGroup) -> tuple[_Track, int]:
        """Add the samples of a group; its track, and how many of its moments were new at the end."""
        info = capture.sources[group.source] if capture.sources else SourceInfo("", "", "")
        track = self._track_of(group, info)
        rows = self._rows_in(track, group.entities)
        values, times = group.values, group.times_ns
        kept_count = self._size(track.series.interval_s)
        count = 0
        for column, time_ns in enumerate(times.tolist()):
            if time_ns > track.newest_ns():
                track.append(time_ns, values[:, column], rows, kept_count)
                count += 1
            elif track.fill(time_ns, values[:, column], rows):
                count = max(count, 1)
        return track, count

    def _track_of(self, group: SeriesGroup, info: SourceInfo) -> _Track:
        """The track that a group goes on with: one with its entities, or sampled at the same moments; else a new one.

        Groups of one metric and source may be sampled a little apart, as rows of a view that each have their own time.
        """
        tracks = self._by_name.setdefault((group.metric, info.name, frozenset(e.kind for e in group.entities[:1])), [])
        for track in tracks:
            if group.entities is track.series.entities or any(e in track.series.entities.rows for e in group.entities):
                return track
        moments = set(group.times_ns.tolist())
        together = next((track for track in tracks if track.newest_ns() in moments), None)
        if together is not None:
            return together
        interval_s = group.interval_s if np.isfinite(group.interval_s) else USUAL_S
        series = self.series(group.metric, self.entities(group.entities), interval_s, self._source(info))
        tracks.append(self._tracks[id(series)])
        return tracks[-1]

    def _rows_in(self, track: _Track, entities: Sequence[Entity]) -> _Rows:
        """The rows of entities in a track; new ones get rows."""
        known = track.series.entities
        if track.placed is not None and track.placed[0] is entities and track.placed[1] is known:
            return track.placed[2]
        if entities is known or tuple(entities) == known:
            track.placed = (entities, known, slice(0, len(known)))
            return track.placed[2]
        new = [entity for entity in dict.fromkeys(entities) if entity not in known.rows]
        if new:
            track.widened(new)
        rows = np.array([track.series.entities.rows[entity][0] for entity in entities], dtype=np.intp)
        track.placed = (entities, track.series.entities, rows)
        return rows

    def _source(self, info: SourceInfo) -> int:
        """The index of a source by its name; what is said of it is that of the last capture."""
        for place, known in enumerate(self.sources):
            if known.name == info.name:
                return place
        self.sources.append(info)
        return len(self.sources) - 1

    def _merge(self, inventory: Inventory) -> None:
        """Take over settings: those of now win, of what is gone none stay. Without a change nothing is made anew."""
        known = self.inventory.facts
        changed = any(
            entity not in known or any(known[entity].get(name) != fact for name, fact in facts.items())
            for entity, facts in inventory.facts.items()
        )
        gone = {entity: source for entity, source in inventory.gone.items() if entity in known}
        if changed or gone or not inventory.links.items() <= self.inventory.links.items():
            newest = Inventory()
            newest.merge(inventory)
            newest.merge(self.inventory.without(gone) if gone else self.inventory)
            newest.gone.clear()
            for entity, facts in inventory.facts.items():
                before = known.get(entity, {}).get(EVENTS)
                if before is not None and EVENTS not in facts and entity in gone:
                    newest.facts[entity][EVENTS] = before
                elif before is not None and EVENTS in facts:
                    listed = [*before.value, *(one for one in facts[EVENTS].value if one not in before.value)]
                    newest.facts[entity][EVENTS] = replace(facts[EVENTS], value=listed[-EVENTS_MAX:])
            newest.version = self.inventory.version + 1
            self.inventory = newest

    def _moved(self, time_ns: int, added: Sequence[tuple[_Track, int]]) -> Capture:
        """The window up to a time, with what was added to it."""
        oldest_ns = time_ns - round(self.span_s * NS_PER_S)
        for track in self._tracks.values():
            span = track.times_ns[track.first : track.end]
            track.first += int(np.searchsorted(span, oldest_ns, side="right"))
        self.changed = frozenset(track.series.metric for track, _ in added)
        recorded = [track.group() for track in self._tracks.values() if track.end > track.first]
        newest = Capture([track.group(count) for track, count in added], self.sources, self.inventory)
        self._say_spans(recorded)
        self.capture = self.capture.moved_on(recorded, newest, self.sources, self.inventory)
        return self.capture

    def _say_spans(self, recorded: Iterable[SeriesGroup]) -> None:
        """Give each source the span of its samples in the window."""
        spans: dict[int, tuple[int, int]] = {}
        for group in recorded:
            start, end = int(group.times_ns[0]), int(group.times_ns[-1])
            known = spans.get(group.source, (start, end))
            spans[group.source] = (min(known[0], start), max(known[1], end))
        for place, (start, end) in spans.items():
            self.sources[place] = replace(self.sources[place], start_ns=start, end_ns=end)

    def _size(self, interval_s: float) -> int:
        return max(int(np.ceil(self.span_s / interval_s)), 1)
