"""Published figures of cluster storage: what each comes out as, and that the setup matters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.experiment import Experiment, FigureVerdict, Findings, Statement, verdict
from leadline.core.contracts.scenario import Outcome
from leadline.experiments import density_two_generations, ec_against_replicas, nvmeof_share_of_theory, pmem

VERDICTS = {
    "density-two-generations": FigureVerdict.DIRECTION_ONLY,
    "ec-against-replicas": FigureVerdict.DIRECTION_ONLY,
    "nvmeof-share-of-theory": FigureVerdict.REPRODUCED,
    "pmem": FigureVerdict.REPRODUCED,
}


def simulated(given: Mapping[str, Any]) -> Outcome:
    return outcome_of({"name": "changed", **given})


@cache
def findings(name: str) -> Findings:
    return cast("Experiment", load_unit("experiment", name)).reproduce(simulated)


def found(name: str, comparison: str) -> float:
    return next(part.found for part in findings(name).comparisons if part.name == comparison)


def check(name: str, statement: str) -> Statement:
    return next(part for part in findings(name).checks if statement in part.statement)


@pytest.mark.parametrize("name", VERDICTS)
def test_figures_come_out_as_claimed(name: str) -> None:
    own = cast("Experiment", load_unit("experiment", name))
    assert verdict(own.META, findings(name)) is VERDICTS[name], findings(name)
    assert findings(name).why or VERDICTS[name] is FigureVerdict.REPRODUCED


def test_the_code_takes_its_space_survives_and_is_faster_but_not_by_a_tenth() -> None:
    name = "ec-against-replicas"
    assert found(name, "raw space of the code") == pytest.approx(5 / 3, 1e-9)
    assert found(name, "raw space of three copies") == pytest.approx(3.0, 1e-9)
    assert 0.2 < found(name, "gain with 15 backups a node") < 0.5
    assert check(name, "can be read").holds


def test_three_failures_are_too_many() -> None:
    plain = ec_against_replicas.scenario(ec_against_replicas.CODE, backups=1)
    failures = [{"at": "1s", "what": f"node-{number}", "state": "absent"} for number in (1, 2, 3)]
    timing = {"warm_up_s": 1, "measure_s": 3, "window_s": 1}
    lost = simulated({**plain, "failures": failures, "timing": timing}).measure("recovery", "unreadable_count").value
    assert lost > 0


def test_small_units_undo_the_gain() -> None:
    """Units that make each disk position more often turn the order round: the gain is not built into the model."""
    rates = [
        simulated(ec_against_replicas.scenario(name, unit=128 * 1024)).measure("cluster", "mb_per_s").value
        for name in (ec_against_replicas.COPIES, ec_against_replicas.CODE)
    ]
    assert rates[1] < rates[0]


@pytest.mark.slow
def test_the_older_storage_carries_what_it_was_set_to() -> None:
    name = "density-two-generations"
    assert found(name, "VMs on the older storage") == pytest.approx(60, abs=1)
    assert 80 <= found(name, "VMs on the newer storage, at least") < 100


def test_without_more_throughput_no_more_vms() -> None:
    bound = density_two_generations.BOUND_MS
    assert density_two_generations.carried(simulated, bound, 1.0) == pytest.approx(60, abs=1)
    assert density_two_generations.carried(simulated, bound, 0.8) < 50


def test_another_device_would_give_other_shares() -> None:
    assert nvmeof_share_of_theory.share(26_834_060.0, 4) == pytest.approx(1.016, abs=0.001)
    assert nvmeof_share_of_theory.share(26_834_060.0, 4, 500_000.0) > 1.1


def test_memory_as_slow_as_flash_would_win_nothing() -> None:
    rates = [
        simulated(pmem.scenario(device, pmem.LOG)).measure("db01", "iops").value
        for device in (pmem.device(pmem.MEMORY, memory_us=20.0), pmem.device(pmem.NVME))
    ]
    assert rates[0] < rates[1]
    assert "not examined" in findings("pmem").why
