"""Every experiment runs to the same findings again, and they are sound."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from math import isnan
from typing import Any, cast

import pytest

from leadline.app.simulate import reproducing
from leadline.app.simulate.reproducing import Reproduction, SimulatedRun, figures, reproduce
from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.experiment import Experiment, FigureVerdict, verdict
from leadline.core.contracts.scenario import Outcome

EVENTS_MAX = 1_500_000  # of what is simulated again: a fraction of a second


@pytest.mark.parametrize("name", figures())
def test_every_experiment_is_sound(name: str, reproduced: Callable[[str], Reproduction]) -> None:
    own = reproduced(name)
    assert own.name == name
    assert own.verdict is verdict(own.meta, own.findings)
    found = own.findings
    assert found.comparisons or found.checks, own.name
    json.dumps(asdict(found))  # plain numbers and words
    names = [part.name for part in found.comparisons]
    assert len(set(names)) == len(names), own.name
    assert found.why or own.verdict is FigureVerdict.REPRODUCED, f"{own.name} does not say why"
    assert own.meta.calibrated or not any(part.is_calibrated for part in found.comparisons), own.name
    assert not any(isnan(value) for part in found.comparisons for value in _values(part.published)), own.name
    assert ("simulation" in own.meta.by) == bool(own.runs), own.name


@pytest.mark.parametrize("name", figures())
def test_an_experiment_begins_the_same_again(name: str, reproduced: Callable[[str], Reproduction]) -> None:
    """As many of its simulations as `EVENTS_MAX` allows; the slow test below compares all of them."""
    own = reproduced(name)
    runs: list[SimulatedRun] = []
    simulate = reproducing._simulating(name, runs, lambda _: None)

    def simulated(plain: Mapping[str, Any]) -> Outcome:
        if sum(run.event_count for run in runs) > EVENTS_MAX:
            raise _Enough
        return simulate(plain)

    try:
        again = cast("Experiment", load_unit("experiment", name)).reproduce(simulated)
    except _Enough:
        assert runs
    else:
        assert repr(own.findings) == repr(again)  # NaN is not equal to itself
        assert len(runs) == len(own.runs)
    assert tuple(runs) == own.runs[: len(runs)]


@pytest.mark.slow
def test_every_experiment_runs_twice_to_the_same_findings() -> None:
    first, second = reproduce(), reproduce()
    assert [own.name for own in first] == figures()
    for own, again in zip(first, second, strict=True):
        assert repr(own.findings) == repr(again.findings), own.name
        assert own.runs == again.runs, own.name


class _Enough(Exception):
    """As many events were simulated again as a short test may."""


def _values(published: float | tuple[float, float]) -> tuple[float, ...]:
    return published if isinstance(published, tuple) else (published,)
