"""Use case: a question of sizing answered by its planner, from inputs, inventories and captures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.discovery import load_unit, load_units
from leadline.core.contracts.planner import Plan, PlanContext, PlanInput, Planner, read_inputs
from leadline.core.model.capture import Capture
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind

# <VM>, <DATASTORE FOR DATA>: names that stand in commands because nobody gave them.
PLACEHOLDER = re.compile(r"<[A-Z][^<>\n]*>")


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
        UsageError: no such planner, a setting is none of its, or a capture was given that holds nothing it plans from.
    """
    planner = planner_of(name)
    inputs = read_inputs(planner, path, settings or {})
    plan = planner.plan(inputs, PlanContext(capture, outcome_of))
    if capture is not None and not plan.evidence and _is_same(planner, inputs, plan):
        if not inputs.model_fields_set - {"leadline_plan"}:
            raise _nothing_used(name, planner, capture)
        note = f"Nothing was taken from {_files(capture)}: the answer is for the inputs alone."
        plan = replace(plan, assumptions=(*plan.assumptions, note))
    return PlannedAnswer(name, planner, inputs, with_placeholders_named(plan))


def with_placeholders_named(plan: Plan) -> Plan:
    """The plan, with an assumption that lists the names left open in its commands."""
    texts = (snippet.text for snippet in plan.snippets)
    names = list(dict.fromkeys(name for text in texts for name in PLACEHOLDER.findall(text)))
    if not names:
        return plan
    note = f"Commands contain {', '.join(names)}: no input names them. Put your own names there before you run them."
    return replace(plan, assumptions=(*plan.assumptions, note))


def _is_same(planner: Planner, inputs: PlanInput, plan: Plan) -> bool:
    """Whether the plan is the one that the inputs alone have, whatever it assumes."""
    try:
        alone = planner.plan(inputs, PlanContext(None, outcome_of))
    except UsageError:
        return False
    return replace(alone, assumptions=()) == replace(plan, assumptions=())


def _nothing_used(name: str, planner: Planner, capture: Capture) -> UsageError:
    kinds = [(kind, len(capture.inventory.of_kind(kind))) for kind in EntityKind]
    counts = [f"{count} of kind {kind.value}" for kind, count in kinds if count]
    metrics = list(dict.fromkeys(group.metric for group in capture.groups))
    shown = ", ".join([*counts[:4], *metrics[:3]]) or "no entities and no series"
    return UsageError(
        f"plan {name}: {_files(capture)}",
        found=f"nothing that this planner plans from; the recording or inventory has {shown}",
        expected=planner.META.reads,
        advice=f"Leave the files out to plan for given inputs: `leadline plan {name} --example` prints them all.",
    )


def _files(capture: Capture) -> str:
    return ", ".join(sorted({Path(source.name).name for source in capture.sources})) or "the recording or inventory"
