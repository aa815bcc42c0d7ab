"""Whether a count of instances held: every instance is judged by itself, chance and too few samples are told."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pytest
from numpy.typing import NDArray

from leadline.app.density.model import (
    CountState,
    Instance,
    Second,
    jain,
    judge,
    level_of,
    parse_service_level,
    student_t,
)
from leadline.core.model.errors import UsageError
from leadline.core.model.histogram import Histogram

SECONDS = 20


def second(ms: Sequence[float] | NDArray[np.float64]) -> Second:
    """A second in which requests took so long, in buckets of 0.1 ms."""
    tenths, counts = np.unique(np.floor(np.asarray(ms) * 10.0), return_counts=True)
    histogram = Histogram.of(tenths / 10.0, (tenths + 1.0) / 10.0, counts.tolist(), "ms")
    return Second(float(len(ms)), histogram)


def instance(number: int, ms: float, per_s: int = 50, spread: float = 0.2, seed: int = 1) -> Instance:
    generator = np.random.default_rng([seed, number])
    seconds = tuple(second(ms * generator.lognormal(0.0, spread, per_s)) for _ in range(SECONDS))
    return Instance(number, (seconds,))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p95<=20ms", ["p95 <= 20 ms"]),
        ("P99.9 <= 1.5 s", ["p99.9 <= 1500 ms"]),
        ("p50<=300us,per_s>=45", ["p50 <= 0.3 ms", "per_s >= 45/s"]),
        ("per_s >= 95 % of offered", ["per_s >= 0.95 of offered"]),
        ("per_s >= 0.9 of offered", ["per_s >= 0.9 of offered"]),
    ],
)
def test_a_service_level_is_read_and_reads_back(text: str, said: list[str]) -> None:
    found = parse_service_level(text)
    assert [str(clause) for clause in found] == said
    assert parse_service_level(", ".join(said)) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", "p95", "p95<=20", "p95>=20ms", "p94<=20ms", "per_s<=5", "per_s>=50%", "per_s>=1.2 of offered"),
        *("p95<=0ms", "p95<=1ms,p95<=2ms", "p95<=20ms of offered", "per_s>=5ms", "p95<=1.2.3ms"),
        "p95 <= 20ms; p99 <= 1s",
    ],
)
def test_what_is_no_service_level_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--service-level"):
        parse_service_level(text)


def test_all_well_below_the_bound_hold() -> None:
    level = judge([instance(n, 5.0) for n in range(1, 9)], parse_service_level("p95<=10ms"))
    assert level.state is CountState.HELD
    assert level.reasons == []
    assert level.fairness == pytest.approx(1.0)


def test_one_slow_instance_breaks_what_the_pooled_percentile_hides() -> None:
    found = [*(instance(n, 1.0) for n in range(1, 30)), instance(30, 50.0)]
    level = judge(found, parse_service_level("p95<=10ms"))
    assert level.pooled_ms < 10.0
    assert level.state is CountState.BROKE
    assert level.clauses[0].instance == 30
    assert level.clauses[0].hidden_by_pooling
    assert level.clauses[0].broke_count == 1
    assert level.worst_ms > 50.0
    assert "instance 30: p95" in level.reasons[0]


def test_one_at_the_bound_cannot_be_told() -> None:
    p95 = 10.0 * math.exp(0.2 * 1.645)
    level = judge([instance(1, 10.0)], parse_service_level(f"p95<={p95:.3f}ms"))
    assert level.state is CountState.UNSURE
    assert level.clauses[0].unsure_count == 1


@pytest.mark.slow
def test_chance_alone_seldom_breaks_one_among_many() -> None:
    """At the very bound each is as likely above as below; with 40 of them none may *surely* break, but for 2.5 %."""
    p95 = 10.0 * math.exp(0.2 * 1.645)
    clauses = parse_service_level(f"p95<={p95:.3f}ms")
    states = [judge([instance(n, 10.0, seed=s) for n in range(1, 41)], clauses).state for s in range(6)]
    assert states.count(CountState.BROKE) <= 3  # the bootstrap of twenty seconds is a little too narrow
    assert CountState.HELD not in states


def test_throughput_is_judged_against_what_was_offered() -> None:
    clauses = parse_service_level("per_s>=0.9 of offered")
    assert judge([instance(1, 1.0, per_s=50)], clauses, offered_per_s=50.0).state is CountState.HELD
    level = judge([instance(1, 1.0, per_s=50), instance(2, 1.0, per_s=40)], clauses, offered_per_s=50.0)
    assert level.state is CountState.BROKE
    assert (level.clauses[0].instance, level.clauses[0].bound, level.worst_per_s) == (2, 45.0, 40.0)
    assert level.fairness == pytest.approx(90.0**2 / (2 * (50.0**2 + 40.0**2)))


def test_one_that_got_nothing_broke_it() -> None:
    silent = Instance(2, ((*[Second(0.0)] * SECONDS,),))
    level = judge([instance(1, 1.0), silent], parse_service_level("p95<=10ms"))
    assert level.state is CountState.BROKE
    assert level.reasons == ["instance 2: p95 nothing; at most 10 is asked"]


def test_too_few_samples_are_told() -> None:
    few = Instance(1, (tuple(second([1.0]) for _ in range(SECONDS)),))
    level = judge([few], parse_service_level("p99<=10ms"))
    assert level.state is CountState.UNSURE
    assert math.isnan(level.clauses[0].low)


def test_one_that_failed_is_told() -> None:
    level = judge([instance(1, 1.0), Instance(2, (), "fio failed")], parse_service_level("p95<=10ms"))
    assert level.state is CountState.FAILED
    assert level.reasons == ["instance 2: fio failed"]


def test_whole_rounds_are_judged_by_students_t() -> None:
    rounds = tuple((second([ms] * 400),) for ms in (5.0, 5.2, 5.4))
    clauses = parse_service_level("p95<=8ms, per_s>=100")
    level = judge([Instance(1, rounds)], clauses)
    assert level.state is CountState.HELD
    assert judge([Instance(1, rounds)], parse_service_level("p95<=5.3ms")).state is CountState.UNSURE


def test_pooled_percentiles_are_those_of_the_pooled_requests() -> None:
    generator = np.random.default_rng(7)
    samples = [generator.lognormal(n / 3.0, 0.5, 2000) for n in range(4)]
    found = [
        Instance(n + 1, (tuple(second(part) for part in np.split(own, SECONDS)),)) for n, own in enumerate(samples)
    ]
    level = judge(found, parse_service_level("p95<=100ms"))
    whole = np.concatenate(samples)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert level.percentiles_ms[name] == pytest.approx(float(np.quantile(whole, share)), abs=0.2)
    mean_of_p95 = float(np.mean([np.quantile(own, 0.95) for own in samples]))
    assert abs(level.pooled_ms - mean_of_p95) > 0.3  # what averaging would have said
    assert "p99.99" not in level.percentiles_ms


@pytest.mark.parametrize(("rates", "index"), [([5.0] * 7, 1.0), ([1.0, 0.0, 0.0, 0.0], 0.25), ([3.0, 1.0], 0.8)])
def test_jains_index(rates: list[float], index: float) -> None:
    assert jain(rates) == pytest.approx(index)


def test_jains_index_of_nothing_is_not_measured() -> None:
    assert math.isnan(jain([]))
    assert math.isnan(jain([0.0, 0.0]))


@pytest.mark.parametrize(
    ("share", "freedom", "printed"),
    [
        *((0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 3, 3.182), (0.975, 4, 2.776), (0.975, 9, 2.262)),
        *((0.975, 30, 2.042), (0.9995, 1, 636.619), (0.9995, 4, 8.610), (0.9, 9, 1.383), (0.5, 5, 0.0)),
    ],
)
def test_students_t_is_the_printed_table(share: float, freedom: int, printed: float) -> None:
    """Source: Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.10."""
    assert student_t(share, freedom) == pytest.approx(printed, abs=6e-4)
    assert student_t(1.0 - share, freedom) == pytest.approx(-printed, abs=6e-4)


def test_a_level_is_kept_and_read_back() -> None:
    level = judge([instance(1, 5.0), Instance(2, (), "gone")], parse_service_level("p95<=10ms"))
    plain = json.loads(json.dumps(asdict(level)).replace("NaN", "null"))
    back = level_of(plain)
    assert repr(back) == repr(level)  # NaN is not equal to itself
