"""One run of a scenario; what the simulator refuses comes as the error people see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from leadline._core import CoreError
from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.scenario import Outcome, Progress, Scenario, System
from leadline.core.model.errors import InputError


def system_of(name: str) -> System:
    """The unit that simulates a system.

    Raises:
        UsageError: there is none.
    """
    return cast("System", load_unit("scenario", name))


def simulated(system: System, scenario: Scenario, progress: Progress = lambda _: None) -> Outcome:
    """One run.

    Raises:
        InputError: the simulator refuses the scenario, a trace it names cannot be read, or the run broke a law.
    """
    try:
        return system.simulate(scenario, progress)
    except CoreError as error:
        raise InputError(
            f"scenario {scenario.name}: {error.where}", found=error.found, expected=error.expected, advice=error.advice
        ) from error


def outcome_of(plain: Mapping[str, Any]) -> Outcome:
    """One run of a scenario given as the data of its file; nothing is kept.

    Raises:
        InputError: as `simulated`.
        UsageError: there is no such system.
        pydantic.ValidationError: the data make no scenario.
    """
    system = system_of(str(plain["system"]))
    return simulated(system, system.MODEL.model_validate(plain))
