"""Episodes: spans of time in which a condition held long enough to count.

`find_episodes` takes any condition and gives an object for each episode. `find_beyond` compares thousands of series
with two limits in one pass and gives columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline._core import episode_is_critical, episodes, episodes_beyond
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.statistics.rows import with_whole_rows

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
    columns = episodes(np.ascontiguousarray(met), with_whole_rows(values), starts, ends, duration_s)
    shown = -1
    for row, first, last, held_ns, median, lowest, peak in zip(*(each.tolist() for each in columns), strict=True):
        if row != shown:
            shown, entity, series_met, series = row, group.entities[row], met[row], values[row]
        window = Window(int(starts[first]), int(ends[last]))
        span = (first, last, series_met, series, held_ns / 1e9, group, row)
        yield Episode(entity, window, *span, median, lowest, peak)


@dataclass(frozen=True, slots=True)
class Limits:
    """When a sample is beyond a limit, and for how long it must be.

    Attributes:
        warn: the limit, in the unit of the values.
        crit: the second limit; every episode is critical when None.
        duration_s: the least time that the values must be beyond a limit.
        below: bad is below the limits, not above.
        inclusive: a value at a limit is beyond it too.
        mostly: a sample counts only when most of the measured samples within half the duration around it are beyond
            the limit too; this asks nothing where the sampling interval is longer than half the duration.
    """

    warn: float
    crit: float | None
    duration_s: float
    below: bool = False
    inclusive: bool = False
    mostly: bool = False

    def passed(self, group: SeriesGroup) -> tuple[float, float | None, bool, bool, int]:
        """What the native code takes: ``reach`` samples on each side of one are its neighbours."""
        step = group.interval_s
        reach = 0 if not self.mostly or np.isnan(step) or step <= 0 else int(self.duration_s / step) // 2
        return self.warn, self.crit, self.below, self.inclusive, reach


@dataclass(frozen=True, slots=True)
class Load:
    """Metrics whose sum must reach ``least`` for a sample to count; not measured adds nothing.

    Attributes:
        metrics: [k, n] each, like the values.
        least: in their unit.
    """

    metrics: Sequence[NDArray[np.floating[Any]]]
    least: float


@dataclass(frozen=True, eq=False, slots=True)
class EpisodeColumns:
    """Episodes [m], by series and time.

    Attributes:
        entities: whose series it is.
        groups: which group the series is from.
        start_ns: int64, where the episode begins.
        end_ns: int64, where it ends.
        held_ns: int64, how long the condition held within it.
        median: of the samples that met the condition, in the unit of the values.
        lowest: of them.
        peak: the highest of them.
        is_critical: bool, whether the samples were beyond the second limit for the duration too.
    """

    entities: list[Entity]
    groups: list[SeriesGroup]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    held_ns: NDArray[np.int64]
    median: NDArray[np.float64]
    lowest: NDArray[np.float64]
    peak: NDArray[np.float64]
    is_critical: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.entities)

    def take(self, places: NDArray[np.intp]) -> EpisodeColumns:
        """Only some of the episodes, in the order asked for."""
        chosen = places.tolist()
        return EpisodeColumns(
            [self.entities[place] for place in chosen],
            [self.groups[place] for place in chosen],
            **{name: getattr(self, name)[places] for name in _NUMBERS},
        )

    def of_group(self, group: SeriesGroup) -> EpisodeColumns:
        """The same episodes, said to be of another group that has their series too."""
        return replace(self, groups=[group] * len(self))

    def windows(self, gap_s: float) -> tuple[Window, ...]:
        """Windows of the episodes in order of time, those that overlap or lie within ``gap_s`` of each other joined."""
        if not len(self):
            return ()
        order = np.lexsort((self.end_ns, self.start_ns))
        starts, ends = self.start_ns[order], np.maximum.accumulate(self.end_ns[order])
        after = np.flatnonzero(starts[1:] - ends[:-1] > gap_s * 1e9) + 1
        firsts, lasts = [0, *after.tolist()], [*(after - 1).tolist(), len(order) - 1]
        return tuple(map(Window, starts[firsts].tolist(), ends[lasts].tolist()))


_NUMBERS: dict[str, Any] = {
    "start_ns": np.int64,
    "end_ns": np.int64,
    "held_ns": np.int64,
    "median": np.float64,
    "lowest": np.float64,
    "peak": np.float64,
    "is_critical": np.bool_,
}


def find_beyond(
    group: SeriesGroup, values: NDArray[np.floating[Any]], limits: Limits, load: Load | None = None
) -> EpisodeColumns:
    """Episodes of every series of a group in which its values are beyond a limit, as `find_episodes` finds them.

    Args:
        group: gives entities, times and the interval.
        values: [k, n] in the unit of the limits; NaN is beyond no limit.
        limits: both limits, and the duration.
        load: asked of every sample, where given.

    Returns:
        Episodes of one entity stand together, in the order in which the entities appear in the group.
    """
    starts, ends = sample_bounds(group)
    asked = None if load is None else ([with_whole_rows(metric) for metric in load.metrics], load.least)
    times = (starts, ends, limits.duration_s)
    columns, is_critical = episodes_beyond(with_whole_rows(values), limits.passed(group), times, asked)
    rows, firsts, lasts, held_ns, median, lowest, peak = columns
    row_indices, place_of_row = np.unique(rows, return_inverse=True)
    entity_of_row = [group.entities[row] for row in row_indices.tolist()]
    entities = [entity_of_row[place] for place in place_of_row.tolist()]
    spans = (starts[firsts], ends[lasts], held_ns)
    episodes = EpisodeColumns(entities, [group] * len(entities), *spans, median, lowest, peak, is_critical)
    places: dict[Entity, int] = {}
    order = np.array([places.setdefault(entity, len(places)) for entity in entity_of_row], dtype=np.intp)
    if (np.diff(order) >= 0).all():
        return episodes
    # An entity has several series that are not side by side.
    return episodes.take(np.argsort(order[place_of_row], kind="stable"))


def columns_of(episodes: Sequence[Episode], limits: Limits) -> EpisodeColumns:
    """Columns of episodes of any condition, and whether their samples are beyond the second limit for the duration."""
    numbers = {
        "start_ns": [episode.window.start_ns for episode in episodes],
        "end_ns": [episode.window.end_ns for episode in episodes],
        "held_ns": [round(episode.held_s * 1e9) for episode in episodes],
        "median": [episode.median for episode in episodes],
        "lowest": [episode.lowest for episode in episodes],
        "peak": [episode.peak for episode in episodes],
        "is_critical": [_is_critical(episode, limits) for episode in episodes],
    }
    return EpisodeColumns(
        [episode.entity for episode in episodes],
        [episode.group for episode in episodes],
        **{name: np.array(numbers[name], dtype=dtype) for name, dtype in _NUMBERS.items()},
    )


def _is_critical(episode: Episode, limits: Limits) -> bool:
    starts, ends = sample_bounds(episode.group)
    values = with_whole_rows(episode.values[np.newaxis, :])[0]
    met, span = np.ascontiguousarray(episode.series_met), (episode.first, episode.last)
    times = (starts, ends, limits.duration_s)
    return episode_is_critical(met, values, span, limits.passed(episode.group), times)


def joined_columns(parts: Sequence[EpisodeColumns]) -> EpisodeColumns:
    """All episodes of several columns, one after the other; at least one of them is needed."""
    if len(parts) == 1:
        return parts[0]
    return EpisodeColumns(
        [entity for part in parts for entity in part.entities],
        [group for part in parts for group in part.groups],
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _NUMBERS},
    )


def sample_bounds(group: SeriesGroup) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end [n] of the interval each sample stands for; gaps in the recording do not stretch an interval."""
    known: tuple[NDArray[np.int64], NDArray[np.int64]] | None = group.__dict__.get("_bounds")
    if known is None:
        known = group.__dict__["_bounds"] = _bounds(group)
    return known


def _bounds(group: SeriesGroup) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
