"""Doubling, then halving: the last count that holds is found whatever it is, and what is not known is said."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.density.model import CountLevel, CountState
from leadline.app.density.steps import StepRule, answer, count_most, next_count
from leadline.core.model.errors import UsageError
from leadline.core.statistics.resampling import Interval

NAN = float("nan")


def level(count: int, state: CountState, per_s: float = 100.0) -> CountLevel:
    interval = Interval(per_s, per_s * 0.99, per_s * 1.01, 1.0, 30)
    failures = ("instance 1: fio failed",) if state is CountState.FAILED else ()
    each = (per_s / count,) * count
    return CountLevel(count, state, interval, each, "p95", {}, NAN, NAN, NAN, (NAN, NAN), 1.0, (), failures)


def searched(fits: int, rule: StepRule) -> dict[int, CountState]:
    """What is measured when so many fit."""
    states: dict[int, CountState] = {}
    while (count := next_count(states, rule)) is not None:
        assert count not in states
        assert 1 <= count <= rule.most
        states[count] = CountState.HELD if count <= fits else CountState.BROKE
    return states


@given(fits=st.integers(0, 300), start=st.integers(1, 40), most=st.integers(40, 200), growth=st.floats(1.0, 4.0))
def test_what_fits_is_found(fits: int, start: int, most: int, growth: float) -> None:
    rule = StepRule(start=start, most=most, growth=growth)
    levels = [level(count, state) for count, state in searched(fits, rule).items()]
    assert len(levels) <= count_most(rule) + 1  # a gap of odd width may take one more
    found = answer(levels, rule)
    assert found.last_held == min(fits, most)
    assert found.bounds[1] == (fits if fits < most else math.inf)


@given(fits=st.integers(1, 200), step=st.integers(1, 20))
def test_a_coarser_step_bounds_it(fits: int, step: int) -> None:
    rule = StepRule(step=step, most=200)
    found = answer([level(c, s) for c, s in searched(fits, rule).items()], rule)
    assert found.last_held <= fits <= found.bounds[1]
    assert math.isinf(found.bounds[1]) or found.bounds[1] + 1 - found.last_held <= step


def test_counts_double_then_halve() -> None:
    assert list(searched(8, StepRule())) == [1, 2, 4, 8, 16, 12, 10, 9]
    assert list(searched(8, StepRule(growth=1.0, step=3))) == [1, 4, 7, 10]
    assert len(searched(60, StepRule(most=4096))) <= 13
    assert [count_most(StepRule(most=most)) for most in (1, 2, 64)] == [1, 2, 12]
    assert count_most(StepRule(start=8, most=9)) == 5


def test_what_cannot_be_told_is_bounded_from_both_sides() -> None:
    states: dict[int, CountState] = {}
    rule = StepRule(most=64)
    while (count := next_count(states, rule)) is not None:
        states[count] = CountState.HELD if count <= 8 else CountState.UNSURE if count <= 11 else CountState.BROKE
    found = answer([level(c, s) for c, s in states.items()], rule)
    assert found.bounds == (8, 11)
    assert found.sentence.startswith("Between 8 and 11 instances fit: 8 surely held, 12 surely broke.")
    assert "the result is open" in found.sentence
    assert "measure longer" in found.sentence


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ({}, "Nothing was measured."),
        ({1: CountState.BROKE}, "Not even one instance fits. At 1 it broke."),
        ({1: CountState.HELD, 2: CountState.BROKE}, "1 instance fits: every one had its service level at 1, not at 2."),
        ({64: CountState.HELD}, "At least 64 instances fit, the most asked for; nothing broke up to 64."),
        ({1: CountState.HELD, 2: CountState.FAILED}, "At 2 could not run (instance 1: fio failed)."),
        ({1: CountState.UNSURE}, "It cannot be told how many fit."),
    ],
)
def test_the_answer_in_words(states: dict[int, CountState], sentence: str) -> None:
    assert sentence in answer([level(c, s) for c, s in states.items()], StepRule()).sentence


def test_a_search_that_was_cut_says_so() -> None:
    assert "ended before its time" in answer([level(1, CountState.HELD)], StepRule(), whole=False).sentence


@pytest.mark.parametrize(
    "rule", [StepRule(start=0), StepRule(start=9, most=8), StepRule(step=0), StepRule(growth=0.5), StepRule(most=10**6)]
)
def test_a_rule_that_leads_nowhere_is_refused(rule: StepRule) -> None:
    with pytest.raises(UsageError, match="--max"):
        rule.check()
