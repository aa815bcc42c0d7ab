"""Figures of the storage path, of mClock, PARDA and placement: what came out, and what a wrong setup would give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.app.simulate.reproducing import Reproduction
from leadline.core.contracts.experiment import FigureVerdict, Published
from leadline.core.contracts.scenario import Outcome
from leadline.experiments import (
    _mclock,
    iops_cap_latency,
    mclock_burst,
    neighbour_of_a_capped_vm,
    parda_table3,
    pvscsi_queue_depth,
    sdrs_example,
    sfq_breaks_reservations,
    sioc_v2_shares,
)

Reproduced = Callable[[str], Reproduction]
REPRODUCED = (
    "hardware-assisted-virtualisation",
    "iops-cap-latency",
    "iops-normalisation-32k",
    "load-average-queue",
    "mclock-burst",
    "mclock-fig3",
    "neighbour-of-a-capped-vm",
    "parda-table3",
    "provisioned-limit-pulses",
    "pvscsi-queue-depth",
    "sdrs-example",
    "sfq-breaks-reservations",
    "sioc-v2-shares",
)


def simulated(plain: Mapping[str, Any]) -> Outcome:
    return outcome_of({"name": "changed", **plain})


def compared(own: Reproduction, name: str) -> Published:
    return next(part for part in own.findings.comparisons if part.name == name)


@pytest.mark.parametrize("name", REPRODUCED)
def test_is_reproduced(name: str, reproduced: Reproduced) -> None:
    own = reproduced(name)
    assert own.verdict is FigureVerdict.REPRODUCED, own.findings


def test_table_4_of_mclock_is_off_for_one_machine_and_says_why(reproduced: Reproduced) -> None:
    own = reproduced("mclock-table4")
    assert own.verdict is FigureVerdict.DIRECTION_ONLY
    off = [part.name for part in own.findings.comparisons if not part.is_within(own.meta.tolerance)]
    assert off == ["vm2, reservation 1"]
    assert "390" in own.findings.why


def test_with_fewer_outstanding_the_cap_shows_another_latency() -> None:
    scenario = iops_cap_latency.scenario(200)
    scenario["vms"][0]["workload"]["io"][0]["oio"] = 58
    found = simulated(scenario).measure("db01", "latency_ms_mean").value
    assert not Published("latency", 580.0, found).is_within(0.05)


def test_without_a_limit_the_neighbour_keeps_its_rate() -> None:
    scenario = neighbour_of_a_capped_vm.scenario("files01", "capped01", 100_000)
    assert simulated(scenario).measure("files01", "iops").value > 300


def test_with_weights_alone_mclock_breaks_the_reservations_too() -> None:
    vms = [{**vm, "reservation_iops": 0.0} for vm in sfq_breaks_reservations.machines()]
    found = simulated(_mclock.scenario(vms, sfq_breaks_reservations.CAPACITY))
    assert found.measure("vm1", "iops").value == pytest.approx(160.0, rel=0.02)


def test_without_idle_credit_for_it_the_burst_gains_nothing() -> None:
    none, again = (
        simulated(_mclock.scenario(mclock_burst.machines(credit), mclock_burst.CAPACITY, measure_s=100.0))
        for credit in (0, 1)
    )
    latencies = [own.measure("bursty", "latency_ms_mean").value for own in (none, again)]
    assert latencies[1] == pytest.approx(latencies[0], rel=0.02)


def test_the_threshold_sets_the_latency_of_the_hosts() -> None:
    found = simulated(parda_table3.scenario("parda", threshold_ms=20.0)).measure("array", "array_ms_mean").value
    assert found == pytest.approx(20.0 + 4.0 / 3.36, rel=0.03)  # Σβ / X beyond the threshold
    assert not Published("latency", 31.0, found).is_within(parda_table3.META.tolerance)


def test_equal_shares_give_equal_rates() -> None:
    scenario = sioc_v2_shares.version_2({"oio": 32}, {name: {"shares": 100} for name in sioc_v2_shares.SHARES})
    found = simulated(scenario)
    assert found.measure("vm1", "iops").value == pytest.approx(found.measure("vm5", "iops").value, rel=0.01)


def test_a_narrow_array_gains_nothing_by_depth() -> None:
    scenarios = [pvscsi_queue_depth.scenario(depth, depth) for depth in (64, 254)]
    for scenario in scenarios:
        scenario["devices"][0]["parallelism"] = 8
    low, high = (simulated(own).measure("db01", "iops").value for own in scenarios)
    assert high == pytest.approx(low, rel=0.02)


def test_moves_are_needed_only_where_space_is_short() -> None:
    held = sdrs_example.HELD
    assert {own.move_count for own in sdrs_example.plans(held, new_gb=250.0)} >= {0}
    assert min(own.move_count for own in sdrs_example.plans(held)) == 1
    assert list(sdrs_example.plans({"only": {"vm": 700.0}})) == []
    # With one VM that is too large to move anywhere, the datastore that needed one move is out.
    large = {**held, "datastore1": {"vm11": 550.0}}
    assert min(sdrs_example.plans(large)).move_count == 2
