from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.arithmetic.episodes import (
    EpisodeColumns,
    Limits,
    Load,
    columns_of,
    find_beyond,
    find_episodes,
    joined_columns,
    joined_windows,
)
from tests.estate.oracle_episodes import Expected, expected, expected_episodes

S = 1_000_000_000
Values = NDArray[np.floating[Any]]
# Limits are among the levels, and some of them are not exact in single precision.
LEVELS = (0.0, 0.1, 0.3, 1.0, 10.1, 1e30)


def tuples(episodes: EpisodeColumns) -> list[Expected]:
    numbers = (episodes.start_ns, episodes.end_ns, episodes.held_ns, episodes.median, episodes.lowest, episodes.peak)
    rows = zip(episodes.entities, *(column.tolist() for column in (*numbers, episodes.is_critical)), strict=True)
    return [Expected(*row) for row in rows]


def series(count: int, names: str, step_s: float = 5.0) -> SeriesGroup:
    entities = [Entity(EntityKind.VM, name) for name in names]
    times = np.arange(1, count + 1, dtype=np.int64) * round(step_s * S)
    return SeriesGroup("cpu_ready_pct", entities, times, np.zeros((len(entities), count)), step_s)


@st.composite
def matrices(draw: st.DrawFn, shape: tuple[int, int]) -> Values:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    levels = [dtype(level) for level in (*LEVELS, -0.2, 0.2, 5.0, np.inf, -np.inf, np.nan)]
    values = draw(arrays(dtype, shape, elements=st.sampled_from(levels)))
    if draw(st.booleans()):
        return values
    # Rows with a gap between them, or columns side by side.
    return np.pad(values, ((0, 0), (3, 1)))[:, 3:-1] if draw(st.booleans()) else np.asfortranarray(values)


@st.composite
def groups(draw: st.DrawFn) -> SeriesGroup:
    """Series with gaps in time, some of them of one entity."""
    names = draw(st.text("abc", min_size=1, max_size=5))
    steps = draw(st.lists(st.sampled_from([1, 5, 5, 5, 5, 40, 300]), min_size=1, max_size=40))
    entities = [Entity(EntityKind.VM, name) for name in names]
    times = np.cumsum(steps).astype(np.int64) * S
    step_s = draw(st.sampled_from([5.0, 5.0, 1.0, 300.0, np.nan]))
    return SeriesGroup("cpu_ready_pct", entities, times, np.zeros((len(entities), len(times))), step_s)


@settings(max_examples=400)
@given(st.data())
def test_the_native_pass_equals_numpy(data: st.DataObject) -> None:
    group = data.draw(groups())
    shape = (len(group.entities), len(group.times_ns))
    values = data.draw(matrices(shape))
    level, flag = st.sampled_from(LEVELS), st.booleans()
    limits = data.draw(
        st.builds(
            Limits, level, st.none() | level, st.sampled_from([0.0, 5.0, 10.0, 15.5, 30.0, 60.0]), flag, flag, flag
        )
    )
    metrics = data.draw(st.none() | st.lists(matrices(shape), min_size=1, max_size=2))
    least = data.draw(level)
    load = None if metrics is None else (metrics, least)
    columns = find_beyond(group, values, limits, None if metrics is None else Load(metrics, least))
    with np.errstate(all="ignore"):
        assert repr(tuples(columns)) == repr(expected_episodes(group, values, limits, load))


@settings(max_examples=200)
@given(st.data())
def test_columns_of_episodes_know_which_are_critical(data: st.DataObject) -> None:
    group = data.draw(groups())
    values = data.draw(matrices((len(group.entities), len(group.times_ns))))
    level, flag = st.sampled_from(LEVELS), st.booleans()
    limits = data.draw(st.builds(Limits, level, level, st.sampled_from([0.0, 5.0, 15.5, 30.0]), mostly=flag))
    with np.errstate(all="ignore"):
        episodes = list(find_episodes(group, values > limits.warn, values, limits.duration_s))
        wanted = [expected(episode, limits) for episode in episodes]
        assert repr(tuples(columns_of(episodes, limits))) == repr(wanted)


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 9)), min_size=1), st.floats(0.0, 20.0))
def test_windows_are_joined_as_those_of_single_episodes(spans: list[tuple[int, int]], gap_s: float) -> None:
    starts = np.array([start * S for start, _ in spans], dtype=np.int64)
    ends = starts + np.array([length * S for _, length in spans], dtype=np.int64)
    none = np.zeros(len(spans))
    group, count = series(1, "a"), len(spans)
    names = [*group.entities] * count
    episodes = EpisodeColumns(names, [group] * count, starts, ends, ends - starts, none, none, none, none > 0)
    singles = [episodes.take(np.array([place])).windows(0.0)[0] for place in range(len(spans))]
    assert episodes.windows(gap_s) == joined_windows(singles, gap_s)


def test_majority_needs_more_than_half_of_what_was_measured() -> None:
    ready = np.array([[0.0, 9.0, 0.0, 9.0, 9.0, 9.0, np.nan, 9.0]])
    group = series(8, "a")
    single = find_beyond(group, ready, Limits(5.0, None, 15.0))
    mostly = find_beyond(group, ready, Limits(5.0, None, 15.0, mostly=True))
    assert single.held_ns.tolist() == [25 * S]
    assert mostly.held_ns.tolist() == [20 * S]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_value_at_the_limit_is_beyond_it_only_where_the_limit_is_inclusive(dtype: type) -> None:
    group = series(3, "a")
    values: Values = np.full((1, 3), 0.1, dtype=dtype)
    assert len(find_beyond(group, values, Limits(0.1, None, 15.0))) == 0
    assert len(find_beyond(group, values, Limits(0.1, None, 15.0, inclusive=True))) == 1
    assert len(find_beyond(group, values, Limits(0.1, None, 15.0, below=True, inclusive=True))) == 1


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(TypeError, match="differ in shape"):
        find_beyond(series(3, "a"), np.zeros((1, 4)), Limits(1.0, None, 15.0))
    with pytest.raises(TypeError, match="differ in shape"):
        find_beyond(series(3, "a"), np.zeros((1, 3)), Limits(1.0, None, 15.0), Load([np.zeros((2, 3))], 1.0))


def test_several_columns_are_joined_in_their_order() -> None:
    one = find_beyond(series(3, "ba"), np.full((2, 3), 9.0), Limits(1.0, 20.0, 15.0))
    other = find_beyond(series(3, "c"), np.full((1, 3), 30.0), Limits(1.0, 20.0, 15.0))
    both = joined_columns([one, other])
    assert [entity.name for entity in both.entities] == ["b", "a", "c"]
    assert both.is_critical.tolist() == [False, False, True]
