from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.arithmetic.episodes import Episode, find_episodes, joined_windows, sample_bounds

S = 1_000_000_000


def episodes(met: list[bool], *, step_s: float = 5.0, duration_s: float = 15.0) -> list[Episode]:
    times = np.arange(1, len(met) + 1, dtype=np.int64) * round(step_s * S)
    mask = np.array([met], dtype=bool)
    group = SeriesGroup("cpu_ready_pct", [Entity(EntityKind.VM, "a")], times, mask.astype(float), step_s)
    return list(find_episodes(group, mask, group.values, duration_s))


def test_a_run_of_exactly_the_duration_counts() -> None:
    (found,) = episodes([False, True, True, True, False])
    assert (found.window.start_ns / S, found.window.end_ns / S, found.held_s) == (5.0, 20.0, 15.0)


def test_a_shorter_run_does_not() -> None:
    assert episodes([False, True, True, False]) == []


def test_one_long_sample_is_enough() -> None:
    (found,) = episodes([False, True, False], step_s=300.0)
    assert found.held_s == 300.0


def test_flicker_is_one_episode() -> None:
    (found,) = episodes([True, True, False, True, True, True])
    assert (found.window.end_ns - found.window.start_ns) / S == 30.0
    assert found.held_s == 25.0


def test_a_long_gap_divides() -> None:
    found = episodes([True] * 4 + [False] * 5 + [True] * 4)
    assert len(found) == 2


def test_a_pause_in_the_recording_does_not_stretch_a_sample() -> None:
    times = np.array([5, 10, 1000], dtype=np.int64) * S
    group = SeriesGroup("cpu_ready_pct", [Entity(EntityKind.VM, "a")], times, np.ones((1, 3)), 5.0)
    starts, ends = sample_bounds(group)
    assert ((ends - starts) / S).tolist() == [5.0, 5.0, 5.0]


@given(st.lists(st.booleans(), max_size=60), st.floats(1.0, 100.0))
def test_episodes_hold_what_was_met_and_do_not_overlap(met: list[bool], duration_s: float) -> None:
    found = episodes(met, duration_s=duration_s)
    for one, other in pairwise(found):
        assert one.window.end_ns < other.window.start_ns
    for one in found:
        assert one.held_s + 1e-6 >= duration_s
        assert one.held_s <= one.window.duration_s + 1e-6
        assert np.array(met)[one.met_indices].all()


def test_episodes_of_a_noisy_series_keep_no_array_of_their_own() -> None:
    for count in (200, 400):
        found = episodes([True, False, False, False] * count, duration_s=5.0)
        arrays = {id(value) for one in found for value in vars(one).values() if isinstance(value, np.ndarray)}
        bases = {id(value.base) for one in found for value in vars(one).values() if isinstance(value, np.ndarray)}
        assert len(found) == count
        assert len(arrays) == 2, "an episode keeps an array of the length of the recording"
        assert len(bases) <= 2


def test_windows_that_touch_are_joined() -> None:
    joined = joined_windows([Window(20, 30), Window(0, 10), Window(10, 15)])
    assert joined == (Window(0, 15), Window(20, 30))


def test_a_spike_long_before_is_not_part_of_it() -> None:
    (found,) = episodes([True] + [False] * 3 + [True] * 6 + [False], duration_s=20.0)
    assert found.window.start_ns / S == 20.0


def joined_runs(met: list[bool], starts: list[int], ends: list[int], gap_ns: float) -> list[tuple[int, int, int]]:
    """First sample, last sample and length in sum of the joined runs of one series, in plain Python."""
    runs = []
    for index, is_met in enumerate(met):
        if is_met and (index == 0 or not met[index - 1]):
            runs.append([index, index])
        elif is_met:
            runs[-1][1] = index
    joined: list[tuple[int, int, int, int]] = []  # first, last, own length without pauses between runs, held
    for first, last in runs:
        length = ends[last] - starts[first]
        held = sum(ends[at] - starts[at] for at in range(first, last + 1))
        if joined:
            before = joined[-1]
            pause = starts[first] - ends[before[1]]
            if pause <= gap_ns and pause <= before[2] and pause <= length:
                joined[-1] = (before[0], last, before[2] + length, before[3] + held)
                continue
        joined.append((first, last, length, held))
    return [(first, last, held) for first, last, _, held in joined]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.floats(-1e6, 1e6, width=32)), min_size=1, max_size=60),
    st.floats(0.0, 60.0),
    st.sampled_from([np.float32, np.float64]),
)
def test_the_native_pass_equals_plain_python(
    samples: list[tuple[bool, int, float]], duration_s: float, dtype: type[np.floating[Any]]
) -> None:
    times = np.cumsum([step for _, step, _ in samples]).astype(np.int64) * S
    mask = np.array([[is_met for is_met, _, _ in samples]])
    values = np.array([[value for _, _, value in samples]], dtype=dtype)
    group = SeriesGroup("cpu_ready_pct", [Entity(EntityKind.VM, "a")], times, values, 5.0)
    starts, ends = (each.tolist() for each in sample_bounds(group))
    wanted = [
        run
        for run in joined_runs(mask[0].tolist(), starts, ends, duration_s * 1e9)
        if run[2] / 1e9 + 1e-6 >= duration_s
    ]
    found = list(find_episodes(group, mask, values, duration_s))
    assert [(one.first, one.last, round(one.held_s * S)) for one in found] == wanted
    for one in found:
        held = one.met_values
        assert (one.median, one.lowest, one.peak) == (float(np.median(held)), float(held.min()), float(held.max()))
