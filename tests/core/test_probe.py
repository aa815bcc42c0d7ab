"""The judgement of a probe: limits told from slow media, by numbers that are known."""

from __future__ import annotations

import pytest

from leadline.core.probe import Observed, Pulse, Ruling, judge


def pulse(
    per_s: float, mean_ms: float, *, offered: float | None = None, cv: float = 1.0, outstanding: int = 116
) -> Pulse:
    return Pulse(offered, per_s, mean_ms, 2 * mean_ms, cv, outstanding)


def observed(p95: float, mean_ms: float, *, most: float | None = None, p95_ms: float | None = None) -> Observed:
    return Observed("sda", p95, most or p95, mean_ms, p95_ms or mean_ms)


@pytest.mark.parametrize("cap", [200.0, 400.0])
def test_a_cap_inflates_by_littles_law_and_is_no_slow_disk(cap: float) -> None:
    hard = pulse(cap, 116_000 / cap)
    found = judge(observed(0.98 * cap, 300.0), pulse(0.7 * cap, 0.4), pulse(cap, 1.0, offered=cap), hard, cap)
    assert (found.is_limit, found.delivers, found.ruling) == (True, True, Ruling.CONVICTED)
    assert "its IOPS limit, not a slow medium" in found.sentence
    assert f"{hard.little_ms:.0f} ms" in " ".join(found.reasons)


def test_a_limit_nobody_named_must_be_round_and_steady() -> None:
    gentle = pulse(140, 0.5)
    assert judge(None, gentle, None, pulse(200.3, 579.0), None).is_limit
    assert not judge(None, gentle, None, pulse(200.3, 579.0, cv=20.0), None).is_limit
    assert not judge(None, gentle, None, pulse(213.0, 545.0), None).is_limit
    assert not judge(None, pulse(140, 300.0), None, pulse(200.3, 579.0), None).is_limit


def test_a_slow_medium_is_convicted_whatever_the_workload() -> None:
    found = judge(observed(50, 30.0), pulse(70, 25.0), None, pulse(100, 1160.0), None)
    assert found.ruling is Ruling.CONVICTED
    assert found.sentence.startswith("Yes, the disk: even at 70 IOPS")


def test_a_disk_that_is_hardly_used_is_cleared_with_the_numbers() -> None:
    found = judge(observed(120, 1.2), pulse(700, 0.8), pulse(1000, 0.9, offered=1000), pulse(1000, 116.0), 1000)
    assert found.ruling is Ruling.CLEARED
    assert "used 120 (p95) of 1,000 IOPS at 1.2 ms" in found.sentence


def test_bursts_and_neighbours_are_suspected() -> None:
    gentle, hard = pulse(700, 0.8), pulse(1000, 116.0)
    bursts = judge(observed(300, 5.0, most=980, p95_ms=40.0), gentle, None, hard, 1000)
    assert (bursts.ruling, "bursts reach the limit" in bursts.sentence) == (Ruling.SUSPECTED, True)
    shared = judge(observed(300, 25.0, p95_ms=40.0), gentle, None, hard, 1000)
    assert (shared.ruling, "neighbours" in shared.sentence) == (Ruling.SUSPECTED, True)


def test_a_disk_that_does_not_deliver_is_told() -> None:
    found = judge(None, pulse(350, 0.8), pulse(500, 90.0, offered=1000), pulse(500, 232.0, cv=9.0), 1000)
    assert found.delivers is False
    assert found.ruling is Ruling.SUSPECTED
    assert "does not deliver its provisioned 1,000 IOPS: 500 came out" in " ".join(found.reasons)
