"""Intervals of differences between runs hold as often as they say: closed forms, and simulation."""

from __future__ import annotations

from math import atan, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.statistics.between_runs import shift
from leadline.core.statistics.student import quantile_two_sided, two_sided_p

REPEATS = 2000
# Of 2,000 intervals that hold 95 times in 100, so many hold but for three standard errors of that share.
LEAST = 0.95 - 3.0 * sqrt(0.95 * 0.05 / REPEATS)


@given(st.floats(-200.0, 200.0))
def test_t_agrees_with_its_closed_forms(t: float) -> None:
    assert two_sided_p(t, 1.0) == pytest.approx(1.0 - 2.0 * atan(abs(t)) / pi, abs=1e-12)
    assert two_sided_p(t, 2.0) == pytest.approx(1.0 - abs(t) / sqrt(2.0 + t * t), abs=1e-12)


@given(st.floats(0.5, 0.999), st.floats(0.7, 500.0))
def test_quantiles_undo_probabilities(confidence: float, freedom: float) -> None:
    assert two_sided_p(quantile_two_sided(confidence, freedom), freedom) == pytest.approx(1.0 - confidence, abs=1e-9)


@pytest.mark.parametrize(("freedom", "expected"), [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (120, 1.980)])
def test_quantiles_are_those_of_the_tables(freedom: float, expected: float) -> None:
    """Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2."""
    assert quantile_two_sided(0.95, freedom) == pytest.approx(expected, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "history", "spreads"),
    [
        ((3, 3), (), (0.15, 0.15)),
        ((3, 3), (), (0.05, 0.25)),
        ((5, 3), (), (0.10, 0.30)),
        ((2, 2), (), (0.15, 0.15)),
        ((3, 1), (), (0.15, 0.15)),
        ((1, 1), (3,), (0.15, 0.15)),
        ((1, 1), (2, 3), (0.15, 0.15)),
        ((2, 1), (6,), (0.15, 0.15)),
    ],
)
def test_the_interval_holds_as_often_as_it_says(
    counts: tuple[int, int], history: tuple[int, ...], spreads: tuple[float, float]
) -> None:
    generator = np.random.default_rng(20261121)
    held = 0
    for _ in range(REPEATS):
        before, after = (
            np.exp(generator.normal(level, spread, count))
            for level, spread, count in zip((8.0, 8.0 + np.log(1.1)), spreads, counts, strict=True)
        )
        others = [np.exp(generator.normal(7.9 + 0.2 * k, spreads[0], n)) for k, n in enumerate(history)]
        found = shift(list(before), list(after), [list(group) for group in others])
        held += found.low <= 0.1 <= found.high
    assert LEAST <= held / REPEATS <= 0.985


def test_without_any_other_run_nothing_is_known() -> None:
    found = shift([100.0], [110.0], [[100.0, 101.0]])
    assert found.change == pytest.approx(0.1)
    assert found.freedom == 0.0
    assert np.isnan([found.low, found.high, found.p_value, found.spread_pct]).all()


def test_values_of_one_bucket_are_not_known_better_than_the_bucket() -> None:
    found = shift([1.0, 1.0, 1.0], [1.0156, 1.0156, 1.0156], resolution=1 / 64)
    assert found.spread_pct == pytest.approx(100 / 64 / sqrt(12))
    assert found.low < 0.0156 < found.high
    exact = shift([5.0, 5.0], [5.0, 5.0])
    assert (exact.change, exact.low, exact.high, exact.p_value) == (0.0, 0.0, 0.0, 1.0)
