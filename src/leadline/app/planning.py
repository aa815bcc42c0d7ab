"""Use case: a question of sizing answered by its planner, from inputs, inventories and captures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.discovery import load_unit, load_units
from leadline.core.contracts.planner import Plan, PlanContext, PlanInput, Planner, read_inputs
from leadline.core.model.capture import Capture


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """An answer with the question."""

    name: str
    planner: Planner
    inputs: PlanInput
    plan: Plan


def planner_of(name: str) -> Planner:
    """The unit that answers a question.

    Raises:
        UsageError: there is none.
    """
    return cast("Planner", load_unit("planner", name))


def planners() -> dict[str, Planner]:
    """Every planner by name."""
    return {name: cast("Planner", module) for name, module in load_units("planner").items()}


def make_plan(
    name: str, path: Path | None = None, settings: Mapping[str, Any] | None = None, capture: Capture | None = None
) -> PlannedAnswer:
    """The answer for the inputs of a file, with settings by dotted key in their place.

    Raises:
        InputError: the file is none of inputs; with line and column.
        UsageError: no such planner, or a setting is none of its.
    """
    planner = planner_of(name)
    inputs = read_inputs(planner, path, settings or {})
    return PlannedAnswer(name, planner, inputs, planner.plan(inputs, PlanContext(capture, outcome_of)))
