"""Hosts before a shared array, from the scenario to what came out."""

from __future__ import annotations

from math import isnan
from typing import Any

import pytest
from pydantic import ValidationError

from leadline import _core
from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.scenario import Outcome
from leadline.core.model.errors import InputError
from leadline.scenarios import parda


def cluster(**changed: Any) -> dict[str, Any]:
    hosts = [host(f"esx0{n}", f"db0{n}", {"oio": 32}) for n in (1, 2)]
    plain = {"name": "own", "hosts": hosts, "array": {"slots": 8, "service": {"kind": "exponential", "mean": 0.004}}}
    return {"timing": {"warm_up_s": 80, "measure_s": 80, "window_s": 4}, **plain, **changed}


def host(name: str, vm: str, io: dict[str, Any], shares: int = 1000) -> dict[str, Any]:
    return {"name": name, "vms": [{"name": vm, "shares": shares, "workload": {"io": [{"block": "16k", **io}]}}]}


def run(plain: dict[str, Any]) -> Outcome:
    return outcome_of({"system": "parda", **plain})


def test_series_are_those_of_the_measured_time_and_windows_follow_the_law() -> None:
    found = run(cluster())
    assert len(found.warm_up) == len(found.ticks) == 20
    windows = next(own for own in found.series if (own.entity, own.name) == ("esx01", "window_count"))
    assert len(windows.values) == 20
    assert found.measure("esx01", "window_count_mean").value == pytest.approx(sum(windows.values) / 20)
    assert found.measure("array", "array_ms_mean").value == pytest.approx(32.0, rel=0.02)  # windows of 32 at most
    assert sum(tick.per_s for tick in found.ticks) * 4 == pytest.approx(
        80 * sum(found.measure(name, "iops").value for name in ("db01", "db02")), abs=2
    )
    assert abs(found.measure("array", "little_imbalance_pct").value) < 0.1


def test_without_control_windows_stay_at_their_bound() -> None:
    found = run(cluster(control="none", law={"window_max": 16}))
    assert found.measure("esx02", "window_count_mean").value == 16.0
    assert found.measure("array", "array_ms_mean").value == pytest.approx(16.0, rel=0.02)
    assert found.measure("db01", "latency_ms_mean").value == pytest.approx(32.0, rel=0.02)  # half of it at the host


def test_open_streams_keep_their_rates() -> None:
    hosts = [
        host("esx01", "even", {"rate_iops": 100, "arrivals": "even"}),
        host("esx02", "poisson", {"rate_iops": {"read": 60, "write": 40}}),
        host("esx03", "writes", {"oio": 1, "read_pct": 0, "think_time_s": 0.1}),
    ]
    found = run(cluster(hosts=hosts))
    assert found.measure("even", "iops").value == pytest.approx(100, rel=0.01)
    assert found.measure("poisson", "iops").value == pytest.approx(100, rel=0.1)
    assert [own.operations[0].name for own in found.results] == ["read", "io", "write"]


def test_nothing_done_is_not_measured() -> None:
    found = run(cluster(hosts=[host("esx01", "db01", {"rate_iops": 0.001})]))
    assert isnan(found.measure("db01", "latency_ms_mean").value)
    assert found.results[0].operations == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hosts": [host("esx01", "db01", {"burst": {"on_s": 1, "off_s": 1}})]}, "without bursts"),
        ({"hosts": [host("esx01", "same", {}), host("esx02", "same", {})]}, "the same name"),
        ({"hosts": [host("array", "db01", {})]}, "named array"),
        ({"law": {"window_min": 8, "window_max": 4}}, "window_max is below"),
        ({"control": "lottery"}, "none"),
    ],
)
def test_what_makes_no_cluster_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        parda.MODEL.model_validate(cluster(**changed))


def test_more_than_the_array_can_do_is_refused_with_advice() -> None:
    flood = host("esx01", "db01", {"rate_iops": 200_000, "arrivals": "even"})
    with pytest.raises(InputError, match="more requests waiting than a run keeps"):
        run(cluster(hosts=[flood]))


def test_an_array_that_takes_no_time_is_refused() -> None:
    with pytest.raises(InputError, match="a service time above 0"):
        run(cluster(array={"slots": 1, "service": 0}))


def test_the_fluid_allocation_refuses_senseless_policies() -> None:
    with pytest.raises(_core.CoreError, match="client 1: weight"):
        _core.fluid_allocation([(1.0, 0.0, float("inf")), (0.0, 0.0, float("inf"))], 100.0)
