"""Steady state and intervals: known series, known answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.model.workload import Steadiness
from leadline.core.statistics.resampling import difference_interval, mean_interval
from leadline.core.statistics.steady import steady_state

BOUNDS = Steadiness(window_s=2, window_count=5)
SECONDS = [float(second) for second in range(1, 31)]


def test_level_load_is_steady_and_says_how_much() -> None:
    found = steady_state(SECONDS, [100.0] * 30, BOUNDS)
    assert found.steady
    assert found.range_pct == 0.0
    assert found.slope_pct == pytest.approx(0.0)
    assert found.sentence() == "steady: windows range over 0.0 % of their mean, drift by 0.0 %"


def test_load_that_only_settled_lately_is_judged_by_its_last_windows() -> None:
    assert steady_state(SECONDS, [1000.0] * 20 + [100.0] * 10, BOUNDS).steady
    assert not steady_state(SECONDS, [1000.0] * 22 + [100.0] * 8, BOUNDS).steady


@pytest.mark.parametrize(("drift", "steady"), [(0.0249, True), (0.0262, False)])
def test_the_limit_of_the_drift(drift: float, steady: bool) -> None:
    """Five windows that climb by ``drift`` of their mean each drift by four times that in all."""
    levels = np.repeat(1.0 + drift * np.arange(-2, 3), 2)
    assert steady_state(SECONDS[:10], (1000.0 * levels).tolist(), BOUNDS).steady is steady


def test_too_short_and_standing_still_are_not_steady() -> None:
    assert "too short" in steady_state(SECONDS[:8], [100.0] * 8, BOUNDS).sentence()
    assert not steady_state(SECONDS, [0.0] * 30, BOUNDS).steady
    assert not steady_state([], [], BOUNDS).steady


def test_few_samples_give_a_mean_and_no_interval() -> None:
    found = mean_interval([[1.0, 2.0, float("nan")], []], 1)
    assert (found.mean, found.sample_count, found.too_few) == (1.5, 2, True)
    assert np.isnan(found.low)
    assert mean_interval([], 1).sample_count == 0


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(20)
    covered = 0
    for trial in range(200):
        noise = generator.normal(0.0, 10.0, 61)
        series = 100.0 + (noise[1:] + 0.5 * noise[:-1])  # neighbours resemble each other
        found = mean_interval([series[:30].tolist(), series[30:].tolist()], trial)
        covered += found.low <= 100.0 <= found.high
    assert 0.85 <= covered / 200 <= 0.99


def test_a_difference_is_shown_when_there_is_one() -> None:
    generator = np.random.default_rng(3)
    before = generator.normal(100.0, 5.0, 60).tolist()
    change, low, high = difference_interval([before], [[1.2 * value for value in before]], 1)
    assert change == pytest.approx(0.2)
    assert low > 0.15
    assert high < 0.25
    _, low, high = difference_interval([before], [generator.normal(100.0, 5.0, 60).tolist()], 1)
    assert low < 0.0 < high
    assert np.isnan(difference_interval([before], [[1.0]], 1)[1])


@given(st.lists(st.floats(1.0, 1e6), min_size=10, max_size=60), st.integers(0, 1000))
def test_an_interval_lies_within_the_samples_and_repeats(values: list[float], seed: int) -> None:
    found = mean_interval([values], seed)
    assert min(values) * (1 - 1e-9) <= found.low <= found.high <= max(values) * (1 + 1e-9)
    assert found == mean_interval([values], seed)
