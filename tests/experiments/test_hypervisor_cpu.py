"""Published figures of CPU scheduling: what each comes out as, and that the parameters matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.experiment import Experiment, FigureVerdict, Findings, verdict
from leadline.core.contracts.scenario import Outcome
from leadline.experiments import _cpu_24_cores as setup

VERDICTS = {
    "cpu-right-sizing-24-cores": FigureVerdict.DIRECTION_ONLY,
    "cpu-two-monsters": FigureVerdict.REPRODUCED,
    "cpu-guest-looks-idle": FigureVerdict.REPRODUCED,
    "hyper-threading-gain": FigureVerdict.REPRODUCED,
    "sca-v1-cost": FigureVerdict.DIRECTION_ONLY,
}


def simulated(given: Mapping[str, Any]) -> Outcome:
    return outcome_of({"system": "hypervisor-cpu", **given})


def experiment(name: str) -> Experiment:
    return cast("Experiment", load_unit("experiment", name))


@pytest.mark.parametrize("name", VERDICTS)
def test_figures_come_out_as_claimed(name: str) -> None:
    own = experiment(name)
    found = own.reproduce(simulated)
    assert verdict(own.META, found) is VERDICTS[name], shown(found)
    for part in found.comparisons:
        if part.is_calibrated:
            assert part.is_within(0.03), part
            assert own.META.calibrated


def shown(found: Findings) -> str:
    numbers = [f"{own.name}: {own.found:.4g} for {own.published}" for own in found.comparisons]
    return "\n".join([*numbers, *(f"{own.statement}: {own.holds}: {own.evidence}" for own in found.checks)])


def test_only_the_host_of_twelve_vcpus_is_off() -> None:
    own = experiment("cpu-right-sizing-24-cores")
    found = own.reproduce(simulated)
    off = [part.name for part in found.comparisons if not part.is_within(own.META.tolerance)]
    assert off == ["host at 4x, 12 vCPUs"]
    assert "12 vCPUs" in found.why


@pytest.mark.parametrize(("name", "gain_pct"), [("cpu-two-monsters", 10.0), ("hyper-threading-gain", 5.0)])
def test_another_gain_of_threads_reproduces_nothing(
    name: str, gain_pct: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "THREAD_GAIN_PCT", gain_pct)
    own = experiment(name)
    assert verdict(own.META, own.reproduce(simulated)) is not FigureVerdict.REPRODUCED


def test_another_load_of_1x_is_another_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "BUSY_AT_3X", 0.5 * setup.CORES)
    own = experiment("cpu-guest-looks-idle")
    assert verdict(own.META, own.reproduce(simulated)) is FigureVerdict.NOT_REPRODUCED
