"""The judgement of a probe: limits told from slow media, by numbers that are known."""

from __future__ import annotations

import pytest

from leadline.app.probe.model import Observed, Pulse, Ruling, judge


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


def test_a_load_above_the_ceiling_is_a_contradiction_and_no_verdict() -> None:
    """Two rounds that cannot be of one disk: a cache, another size, another disk."""
    hard, gentle = pulse(1010, 30.0), pulse(700, 25.0)
    found = judge(observed(27_316, 0.3), gentle, None, hard, None)
    assert found.ruling is Ruling.UNDECIDED
    assert found.sentence == (
        "This cannot be told: the workload did 27,316 IOPS (p95), and the pulses only 1,010. The two rounds measured "
        "different things: a cache answered one of them, or they went to different disks; no recording tells which."
    )
    assert "%" not in found.sentence
    small = Observed("sda", 27_316, 28_000, 0.3, 0.4, size_bytes=4096.0, read_pct=100.0)
    sized = judge(small, gentle, None, Pulse(None, 1010, 30.0, 60.0, 1.0, 116, 8192.0, 70.0), None)
    assert "the workload's requests are 4 KiB on average, the pulses' 8 KiB" in sized.sentence
    assert "the workload is 100 % reads, the pulses 70 %" in sized.reasons
    other = judge(small, gentle, None, hard, None, ("the workload was watched on sda, the pulses ran on sdb",))
    assert "different things: the workload was watched on sda" in other.sentence


def test_bursts_far_above_the_ceiling_convict_and_suspect_nobody() -> None:
    found = judge(observed(300, 5.0, most=9_000, p95_ms=40.0), pulse(700, 0.8), None, pulse(1000, 116.0), 1000)
    assert (found.ruling, "9,000 IOPS at most" in found.sentence) == (Ruling.UNDECIDED, True)


@pytest.mark.parametrize("share", [0.91, 1.0, 1.09])
def test_a_load_at_the_ceiling_is_still_at_it(share: float) -> None:
    assert (
        judge(observed(share * 1000, 5.0), pulse(700, 0.8), None, pulse(1000, 116.0), None).ruling is Ruling.CONVICTED
    )


def test_what_was_not_measured_is_never_printed_as_a_number() -> None:
    nan = float("nan")
    idle = judge(Observed("sda", 0.0, 0.0, nan, nan), pulse(700, 0.8), None, pulse(68_145, 116.0), None)
    assert (idle.ruling, "did no I/O while it was watched" in idle.sentence) == (Ruling.UNDECIDED, True)
    dark = judge(Observed("sda", 20.0, 30.0, nan, nan), pulse(700, 0.8), None, pulse(68_145, 116.0), None)
    assert dark.ruling is Ruling.UNDECIDED  # without a latency nothing clears it
    busy = judge(Observed("sda", 990.0, 999.0, nan, nan), pulse(700, 0.8), None, pulse(1_000, 116.0), None)
    assert busy.sentence.endswith("the workload used 990 (p95) of 1,000 IOPS.")
    bare = judge(None, Pulse(700, 700, 0.8, nan, 1.0, 32), None, pulse(1_000, 116.0), None)
    for found in (idle, dark, busy, bare):
        assert "not measured" not in " ".join((found.sentence, *found.reasons))


def test_without_a_pulse_below_the_ceiling_the_rest_is_still_judged() -> None:
    hard = pulse(1000, 116.0)
    assert judge(observed(120, 1.2), None, None, hard, None).ruling is Ruling.CLEARED
    assert judge(observed(120, 25.0), None, None, hard, None).ruling is Ruling.SUSPECTED
    assert judge(observed(980, 1.2), None, None, hard, None).ruling is Ruling.CONVICTED
    assert judge(None, None, None, hard, None).ruling is Ruling.UNDECIDED


def test_a_disk_that_was_watched_for_moments_is_not_cleared() -> None:
    calm = dict.fromkeys(("iops_p95", "iops_max"), 50.0) | dict.fromkeys(("await_ms", "await_ms_p95"), 1.0)
    brief = judge(Observed("sda", **calm, watched_s=2.0), pulse(700, 0.8), None, pulse(68_145, 2.0), None)
    assert (brief.ruling, "watched for 2 s only" in brief.sentence) == (Ruling.UNDECIDED, True)
    enough = judge(Observed("sda", **calm, watched_s=60.0), pulse(700, 0.8), None, pulse(68_145, 2.0), None)
    assert enough.ruling is Ruling.CLEARED
