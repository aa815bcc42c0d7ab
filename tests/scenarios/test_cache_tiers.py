"""Disk groups as a scenario: what its keys do, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.scenario import Outcome, System, read_scenario
from leadline.core.model.errors import InputError
from leadline.scenarios import cache_tiers

FRONT_END = "front-end"
MB, MIB = 1e6, 2.0**20
SYSTEM = cast("System", cache_tiers)
PLAIN = """
name: own
system: cache-tiers
policy: {policy}
timing: {{warm_up_s: 0, measure_s: {measure_s}, window_s: 5}}
workload: {{io: [{io}]}}
groups:
  - {{name: g, cache: {{gb: 100, mb_per_s: 1000, latency: 100us}}, devices: {{count: 4, mb_per_s: 100, access: 10ms}}}}
destage_from_pct: 0
{more}
"""
WRITES = "{block: 64k, read_pct: 0, oio: 64}"


def run(folder: Path, io: str = WRITES, more: str = "", policy: str = "all-flash", measure_s: int = 200) -> Outcome:
    path = folder / "own.yaml"
    path.write_text(PLAIN.format(io=io, more=more, policy=policy, measure_s=measure_s))
    _, scenario = read_scenario(path, lambda _: SYSTEM)
    return outcome_of(scenario.plain())


def values(own: Outcome, name: str) -> tuple[float, ...]:
    return next(series.values for series in own.series if (series.entity, series.name) == (FRONT_END, name))


def test_outstanding_writes_fill_the_buffer_and_then_go_as_fast_as_it_drains(tmp_path: Path) -> None:
    own = run(tmp_path, more="slow_from_pct: 100", measure_s=400)
    assert own.measure(FRONT_END, "slowed_after_s").value == pytest.approx(100_000 / (1000 - 400), 0.01)
    assert values(own, "mib_per_s")[0] == pytest.approx(500 * MB / MIB, 0.01)
    assert values(own, "mib_per_s")[-1] == pytest.approx(200 * MB / MIB, 0.01)
    assert values(own, "fill_pct")[-1] == pytest.approx(100.0, 0.01)
    # 64 outstanding: Little's law in every window.
    rates, latencies = values(own, "iops"), values(own, "latency_ms")
    assert [rate * latency / 1e3 for rate, latency in zip(rates, latencies, strict=True)] == pytest.approx([64.0] * 80)
    assert any("slowed writes" in note for note in own.notes)


def test_congestion_slows_before_the_buffer_is_full(tmp_path: Path) -> None:
    own = run(tmp_path, more="slow_from_pct: 50\nslow_to_pct: 90", measure_s=600)
    assert own.measure(FRONT_END, "slowed_after_s").value == pytest.approx(50_000 / 600, 0.02)
    assert max(values(own, "fill_pct")) < 90.0
    assert values(own, "congestion_pct")[-1] > 95.0
    assert list(values(own, "congestion_pct")) == sorted(values(own, "congestion_pct"))


def test_codes_write_their_parities(tmp_path: Path) -> None:
    rates = [
        run(tmp_path, more=f"protection: {text}\nslow_from_pct: 100").ticks[0].bytes_per_s
        for text in ("{copies: 1}", "{copies: 2}", "{data: 4, parity: 2}")
    ]
    assert rates == pytest.approx([1000 * MB, 500 * MB, 1000 * MB / 3], 0.01)


def test_offered_rates_are_done_and_wait_when_the_buffer_is_full(tmp_path: Path) -> None:
    io = "{name: a, block: 64k, rate_iops: {read: 100, write: 2000}}, {name: b, block: 8k, read_pct: 50, oio: 1}"
    own = run(tmp_path, io, "protection: {copies: 1}\nread_hit_pct: 100")
    first = {operation.name: operation.per_s for operation in own.results[0].operations}
    assert first == pytest.approx({"read": 100.0, "write": 2000.0})
    assert sum(operation.per_s for operation in own.results[1].operations) == pytest.approx(10_000, 0.01)
    slow = run(tmp_path, "{block: 64k, rate_iops: {write: 20000}}", "slow_from_pct: 100", measure_s=300)
    assert values(slow, "latency_ms")[-1] > 1000.0


def test_misses_of_a_hybrid_group_take_from_destaging(tmp_path: Path) -> None:
    io = WRITES + ", {name: reads, block: 4k, rate_iops: {read: 500}}"
    ends = []
    for hit_pct in (100, 90):
        own = run(tmp_path, io, f"read_hit_pct: {hit_pct}\nslow_from_pct: 100", "hybrid", 200)
        ends.append(values(own, "destage_mib_per_s")[-1])
        assert own.measure("h1-g", "buffer_gib").value == pytest.approx(30e9 / 2**30)
    fetch_s = 0.01 + MIB / (100 * MB)
    assert ends == pytest.approx([400 * MB / MIB, 400 * MB / MIB * (1 - 50 * fetch_s / 4)], 0.01)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("hosts: 1\nfailures: [{at: 1, group: h2-g}]", "no group h2-g; there are h1-g"),
        ("protection: {data: 3}", "either copies, or data and parity units"),
        ("slow_from_pct: 90\nslow_to_pct: 80", "slow_from_pct is above slow_to_pct"),
    ],
)
def test_what_makes_no_run_is_refused(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        run(tmp_path, more=more)
    assert message in str(caught.value)


def test_too_many_groups_devices_and_steps_are_refused(tmp_path: Path) -> None:
    plain: dict[str, Any] = {
        "name": "own",
        "workload": {"io": [{"read_pct": 0}]},
        "groups": [{"name": "g", "cache": {"gb": 1, "mb_per_s": 1000}, "devices": {"count": 2, "mb_per_s": 10}}],
    }
    assert cache_tiers.MODEL.model_validate(plain).group_names() == ["h1-g"]
    group = plain["groups"][0]
    for change, message in (
        ({"groups": [{**group, "count": 6}]}, "less than or equal to 5"),
        ({"groups": [{**group, "count": 3}, {**group, "name": "h", "count": 3}]}, "6 groups in a host"),
        ({"groups": [group, group]}, "two groups have the same name"),
        ({"groups": [{**group, "devices": {"count": 8, "mb_per_s": 1}}]}, "less than or equal to 7"),
        ({"timing": {"measure_s": 1e7, "warm_up_s": 0, "window_s": 100}}, "steps, at most 20,000,000"),
        ({"workload": {"pgbench": {}}}, "workload"),
    ):
        with pytest.raises(ValueError, match=message):
            cache_tiers.MODEL.model_validate({**plain, **change})
