"""Two systems side by side: how many more fit, how much more they do, and what cannot be said."""

from __future__ import annotations

import json
import math

import pytest

from leadline.app.density.comparison import DensityComparison, Side, change_of, compare
from leadline.app.density.model import CountState
from leadline.app.density.steps import StepRule, answer
from leadline.core.statistics.resampling import Interval
from tests.app.density.test_steps import level

NAN = float("nan")


def side(name: str, held: int, per_s: float, *, broke: bool = True) -> Side:
    levels = [level(20, CountState.HELD, 2000.0), level(held, CountState.HELD, per_s)]
    if broke:
        levels.append(level(held + 1, CountState.BROKE, per_s))
    rule = StepRule(most=held + 1 if broke else held)
    return Side(name, answer(levels, rule), tuple(levels))


def compared(*sides: Side) -> DensityComparison:
    return compare(sides[0], sides[1], ["kernel: 5 then 6"])


def test_sixty_against_a_hundred() -> None:
    found = compared(side("old", 60, 10_000.0), side("new", 100, 13_000.0))
    assert found.fit.change == found.fit.low == found.fit.high == pytest.approx(2 / 3)
    assert found.full.change == pytest.approx(0.3)
    # Each interval is 1 % either way: together 1.4 %.
    assert (found.full.low, found.full.high) == pytest.approx((1.3 * 0.98596 - 1, 1.3 * 1.01424 - 1), abs=1e-4)
    assert "67 % more instances fit after" in found.sentence
    assert "30.0 % more" in found.sentence
    assert not found.worse
    assert [part.count for part in found.counts] == [20]
    assert not found.counts[0].per_s.is_shown


def test_the_other_way_round_is_worse() -> None:
    found = compared(side("new", 100, 13_000.0), side("old", 60, 10_000.0))
    assert found.worse
    assert "40 % fewer instances fit after" in found.sentence
    assert json.loads(json.dumps(found.to_dict()))["worse"] is True


def test_where_nothing_broke_only_a_bound_is_known() -> None:
    found = compared(side("old", 60, 10_000.0), side("new", 100, 13_000.0, broke=False))
    assert math.isinf(found.fit.high)
    assert "At least 67 % more instances fit after" in found.sentence
    assert "At least 40 % fewer" in compared(side("new", 100, 1.0, broke=False), side("old", 60, 1.0)).sentence


def test_as_many_is_no_difference() -> None:
    found = compared(side("a", 60, 10_000.0), side("b", 60, 10_050.0))
    assert "as many fit cannot be ruled out" in found.sentence
    assert "no difference shown" in found.sentence
    assert not found.worse


def test_none_before_and_some_after() -> None:
    levels = (level(1, CountState.BROKE),)
    none = Side("a", answer(levels, StepRule()), levels)
    assert "None surely fit before" in compared(none, side("b", 60, 10_000.0)).sentence
    assert compared(side("b", 60, 10_000.0), none).worse


def test_too_few_samples_give_no_interval() -> None:
    few = Interval(100.0, NAN, NAN, NAN, 3)
    found = change_of(few, Interval(130.0, 129.0, 131.0, 1.0, 30))
    assert found.change == pytest.approx(0.3)
    assert math.isnan(found.low)
    assert not found.is_shown
    assert "too few samples" in found.words()
    assert change_of(None, few).words() == "not measured on both"
