"""Which limit to buy: requests behind buckets of tokens, checked by hand; recorded demands; what is offered."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.app.planning import make_plan
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.planners._tier.offers import offers
from leadline.planners._tier.shaping import DiskDemand, Requests, TokenLimit, behind

DISK = Entity(EntityKind.BLOCK_DEVICE, "sdb", Entity(EntityKind.GUEST, "db01"))
S = 1_000_000_000


def at(*seconds: float, size: float = 8192.0) -> Requests:
    """Requests at these moments, which take no time at the device."""
    return Requests(np.array(seconds), np.full(len(seconds), size), np.zeros(len(seconds)))


def test_requests_at_once_pass_one_after_the_other() -> None:
    result = behind(at(0.0, 0.0, 0.0, 0.0, 10.0), TokenLimit(10.0))
    # They wait 0, 100, 200 and 300 ms; the last one comes when all have passed.
    assert result.p50_ms == pytest.approx(100.0)
    assert result.queue_most == 3
    assert result.waited_share == pytest.approx(3 / 5)


def test_a_bucket_lets_pass_what_it_holds() -> None:
    result = behind(at(*[0.0] * 8), TokenLimit(10.0, held_s=0.5))
    # Five pass at once; the others wait 100, 200 and 300 ms.
    assert result.waited_share == pytest.approx(3 / 8)
    assert result.p99_ms == pytest.approx(300.0, rel=0.03)


def test_large_requests_count_for_more() -> None:
    large = behind(at(0.0, 0.0, size=65536.0), TokenLimit(10.0, unit_kib=32.0))
    assert large.p99_ms == pytest.approx(200.0, rel=0.02)
    moved = behind(at(0.0, 0.0, size=1024.0**2), TokenLimit(None, 10.0))
    assert moved.p99_ms == pytest.approx(100.0, rel=0.02)


def test_credit_lets_a_burst_pass_until_it_ends() -> None:
    # 200 a second for 10 s: a burst of 200/s lasts for 5 s, then 100/s are left. 500 requests wait at the end.
    requests = at(*(np.arange(2000) / 200.0))
    limit = TokenLimit(100.0, burst_iops=200.0, burst_s=5.0)
    result = behind(requests, limit)
    assert result.queue_most == pytest.approx(500, abs=3)
    assert result.waited_share == pytest.approx(0.5, abs=0.01)
    assert behind(requests, TokenLimit(100.0)).queue_most == pytest.approx(1000, abs=3)


def test_random_arrivals_wait_as_in_a_queue_with_even_service() -> None:
    # M/D/1: the mean wait is rho / (2 mu (1 - rho)): at 80 of 100 a second 20 ms.
    demand = DiskDemand(np.array([4000.0]), np.array([80.0]), np.array([8192.0]), np.array([1e-6]))
    requests = Requests.of(demand)
    total = np.arange(len(requests.at_s)) / 100.0
    waits_ms = 1000.0 * (np.maximum.accumulate(requests.at_s - total) + total - requests.at_s)
    assert float(waits_ms.mean()) == pytest.approx(20.0, rel=0.05)
    assert behind(requests, TokenLimit(100.0)).p95_ms == pytest.approx(float(np.quantile(waits_ms, 0.95)), rel=1e-6)


def test_the_busiest_stretch_is_used_of_much() -> None:
    demand = DiskDemand(np.ones(100), np.r_[np.full(50, 10.0), np.full(50, 40.0)], np.full(100, 8192.0), np.ones(100))
    part = demand.busiest(400)
    assert set(part.iops) == {40.0}
    assert part.count <= 400
    assert demand.busiest(10_000) is demand


def test_the_least_limit_is_accepted_and_a_little_less_is_not() -> None:
    inputs = {"demand": [{"seconds": 60, "iops": 100}], "latency_ms": 0.5, "accepted_ms": 20.0}
    plan = make_plan("tier", None, inputs).plan
    limit = plan.figure("least limit").value
    assert isinstance(limit, int)
    assert 100 < limit < 200
    requests = Requests.of(DiskDemand(np.array([60.0]), np.array([100.0]), np.array([8192.0]), np.array([0.5])))
    assert behind(requests, TokenLimit(limit * 1.01)).p95_ms <= 20.0 < behind(requests, TokenLimit(limit * 0.97)).p95_ms
    p95 = [row[2] for row in plan.sheets[0].rows]
    assert p95 == sorted(p95, reverse=True)


def test_a_tier_that_lives_on_credit_is_none() -> None:
    inputs = {"demand": [{"seconds": 60, "iops": 1000}], "accepted_ms": 20.0}
    tiers = {row[0]: row[1] for row in make_plan("tier", None, inputs).plan.sheets[1].rows}
    assert tiers == {
        "Azure Premium": "P15",
        "AWS gp2": "334 GiB",
        "AWS gp3": "3000",
        "Azure Premium v2": "3000",
        "SIOC v2": "Normal",
    }
    large = make_plan("tier", None, {**inputs, "size_gib": 2000.0}).plan
    assert {row[0]: row[1] for row in large.sheets[1].rows}["Azure Premium"] == "P40"


def test_no_limit_helps_a_device_that_is_slow_itself() -> None:
    plan = make_plan("tier", None, {"latency_ms": 30.0, "accepted_ms": 10.0}).plan
    assert plan.infeasible is not None
    assert "the device alone takes longer" in plan.headline


def recording(rates: list[float], latency_ms: float = 2.0, interval_s: float = 1.0) -> Capture:
    builder = CaptureBuilder("iostat.txt", "iostat", "iostat")
    times = 1_700_000_000 * S + np.arange(1, len(rates) + 1, dtype=np.int64) * round(interval_s * S)
    values = np.array(rates)
    for metric, series in (
        ("disk_reads_per_s", values),
        ("disk_writes_per_s", np.zeros(len(rates))),
        ("disk_read_mib_per_s", values * 16.0 / 1024.0),
        ("disk_write_mib_per_s", np.zeros(len(rates))),
        ("guest_disk_await_ms_read", np.full(len(rates), latency_ms)),
    ):
        builder.add_series(metric, DISK, times, series, interval_s=interval_s)
    return builder.build()


def test_the_demand_of_a_recording() -> None:
    plan = make_plan("tier", None, {"accepted_ms": 20.0}, recording([100.0] * 50 + [400.0] * 10)).plan
    (origin,) = plan.evidence
    assert origin.startswith("db01 sdb: 150/s on average, 16 KiB, 2 ms")
    assert plan.figure("highest rate").value == 400.0
    assert [bend.rule for bend in plan.bends] == ["a recording is a day or longer"]
    coarse = make_plan("tier", None, {}, recording([100.0] * 50, interval_s=20.0)).plan
    assert "samples are at most 5 s apart" in [bend.rule for bend in coarse.bends]


def test_a_disk_that_was_not_recorded() -> None:
    with pytest.raises(UsageError, match="no disk of that name"):
        make_plan("tier", None, {"disk": "sdz"}, recording([100.0] * 20))


def test_offers_are_whole() -> None:
    for family, some in offers().items():
        limits = [offer.limit.iops or 0.0 for offer in some]
        assert all(limit > 0 for limit in limits), family
        assert limits == sorted(limits), family
