"""Figures of memory in another host: what they amount to, and that another program or network does not give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.experiment import FigureVerdict, Findings, verdict
from leadline.core.contracts.scenario import Outcome
from leadline.experiments import _far_memory, remote_memory, remote_memory_quicksort, remote_memory_spark


def simulated(plain: Mapping[str, Any]) -> Outcome:
    return outcome_of(plain)


def found(experiment: ModuleType) -> tuple[Findings, FigureVerdict]:
    findings = experiment.reproduce(simulated)
    return findings, verdict(experiment.META, findings)


def test_rdma_beats_an_ssd() -> None:
    findings, amounts_to = found(remote_memory)
    assert amounts_to is FigureVerdict.REPRODUCED
    assert [check.holds for check in findings.checks] == [True] * 3
    assert "do not run well" in findings.why


def test_a_slow_network_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_far_memory, "RDMA_READ_S", 100e-6)  # TCP over Ethernet
    findings, amounts_to = found(remote_memory)
    assert amounts_to is FigureVerdict.NOT_REPRODUCED
    assert not findings.checks[0].holds


def test_the_sort_is_predicted_from_one_point() -> None:
    findings, amounts_to = found(remote_memory_quicksort)
    assert amounts_to is FigureVerdict.REPRODUCED
    calibrated, *predicted = findings.comparisons
    assert [own.is_calibrated for own in findings.comparisons] == [True, False, False]
    assert abs(calibrated.error) < 0.002
    assert all(own.is_within(0.05) for own in predicted)


def test_another_program_has_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        remote_memory_quicksort, "PROGRAM", {**remote_memory_quicksort.PROGRAM, "pattern": "uniform", "visits": 5}
    )
    findings, amounts_to = found(remote_memory_quicksort)
    assert amounts_to is not FigureVerdict.REPRODUCED
    assert not findings.checks[0].holds


def test_spark_is_predicted_from_one_point() -> None:
    findings, amounts_to = found(remote_memory_spark)
    assert amounts_to is FigureVerdict.DIRECTION_ONLY  # the growth was chosen after the curve was seen
    assert verdict(replace(remote_memory_spark.META, adjusted=""), findings) is FigureVerdict.REPRODUCED
    first, calibrated, last = findings.comparisons
    assert (first.is_calibrated, calibrated.is_calibrated, last.is_calibrated) == (False, True, False)
    assert abs(calibrated.error) < 0.02
    assert "where 3.35 was measured" in findings.why


def test_memory_that_is_there_from_the_start_does_not_give_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = {**remote_memory_spark.PROGRAM, "pattern": "uniform", "visits": 9.2}  # which meets the calibrated point
    monkeypatch.setattr(remote_memory_spark, "PROGRAM", steady)
    findings, amounts_to = found(remote_memory_spark)
    assert abs(findings.comparisons[1].error) < 0.1
    assert amounts_to is not FigureVerdict.REPRODUCED
