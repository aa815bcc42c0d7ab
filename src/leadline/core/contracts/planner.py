"""Planners: sizing answers that show their arithmetic.

A unit of ``planners/`` is one file with ``META``, ``MODEL`` and ``plan``:

``MODEL``
    The pydantic model of its inputs, a `PlanInput`. Every field has a description and a default or an example, from
    which the planner's example file is written.
``plan(inputs, context) -> Plan``
    The answer. ``context`` has the capture and inventory the user gave, if any, and runs scenarios of the simulator.
    A function of both: no clock, no network.

The unit's docstring carries the headings *Answers, Method, Assumptions, Bends, Sources*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from leadline.core.contracts.scenario import Outcome, set_key
from leadline.core.io.yaml_files import parse_model, read_text
from leadline.core.io.yaml_text import YamlFault, load_yaml
from leadline.core.model.capture import Capture
from leadline.core.model.errors import UsageError
from leadline.core.model.picture import Picture

STRICT = ConfigDict(extra="forbid", frozen=True)
WHAT, GUIDE = "the inputs of a plan", "docs/guides/plan.md"


class PlanInput(BaseModel):
    """What every file of inputs has."""

    model_config = STRICT

    leadline_plan: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class PlannerMeta:
    """What is known about a planner.

    Attributes:
        about: the question it answers, a line.
        example: inputs that make a worked example, as plain data.
        grows: pairs of a key of the inputs and a figure of the answer that never falls when the key grows.
        reads: what it takes from recordings and inventories; a file without any of it is refused.
    """

    about: str
    example: Mapping[str, Any]
    grows: tuple[tuple[str, str], ...] = ()
    reads: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number or word of the answer; ``arithmetic`` is how it came out, with the numbers in it."""

    name: str
    value: float | int | str
    unit: str = ""
    arithmetic: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of the answer: who gets what, what lies where."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int, ...], ...]


@dataclass(frozen=True, slots=True)
class Bend:
    """A rule that the answer or the inputs bend, what that costs, and whose rule it is."""

    rule: str
    cost: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Snippet:
    """Configuration to apply: printed, never applied. ``tool`` is what takes it."""

    title: str
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class Infeasible:
    """Why there is no answer: the constraint that binds, and the nearest answer there is."""

    constraint: str
    nearest: str


@dataclass(frozen=True, slots=True)
class Plan:
    """An answer. ``headline`` is a sentence; ``infeasible`` says that nothing fits what was asked."""

    headline: str
    figures: tuple[Figure, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    assumptions: tuple[str, ...] = ()
    bends: tuple[Bend, ...] = ()
    snippets: tuple[Snippet, ...] = ()
    pictures: tuple[Picture, ...] = ()
    evidence: tuple[str, ...] = ()
    infeasible: Infeasible | None = None

    def figure(self, name: str) -> Figure:
        """The figure of that name.

        Raises:
            KeyError: there is none.
        """
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise KeyError(name)


def _no_simulator(_: Mapping[str, Any]) -> Outcome:
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What a planner may use beside its inputs.

    Attributes:
        capture: what the user's recordings and inventories hold; None when none were given.
        simulated: runs a scenario given as the data of its file.
    """

    capture: Capture | None = None
    simulated: Callable[[Mapping[str, Any]], Outcome] = field(default=_no_simulator)


class Planner(Protocol):
    """The type of a unit of ``planners/``."""

    META: PlannerMeta
    MODEL: type[PlanInput]

    def plan(self, inputs: PlanInput, context: PlanContext) -> Plan:
        """The answer."""


def parse_setting(text: str) -> tuple[str, Any]:
    """Key and value of ``KEY=VALUE``; the value is YAML.

    Raises:
        UsageError: it is none.

    >>> parse_setting("hosts=[4, 6]")
    ('hosts', [4, 6])
    """
    key, mark, value = text.partition("=")
    try:
        if key.strip() and mark:
            return key.strip(), load_yaml(value).content
    except YamlFault:
        pass
    raise UsageError(
        f"--set {text}", found="no key with a value", expected="KEY=VALUE", advice="For example --set nodes=6."
    )


def read_inputs(planner: Planner, path: Path | None, settings: Mapping[str, Any]) -> PlanInput:
    """The inputs of a file, or the planner's defaults, with settings by dotted key in their place.

    Raises:
        InputError: the file is none of inputs; with line and column.
        UsageError: a setting is none of the planner's.
    """
    if path is None:
        plain: dict[str, Any] = {}
    else:
        text = read_text(path, WHAT, GUIDE)
        plain = parse_model(text, str(path), planner.MODEL, WHAT, GUIDE).model_dump(mode="json", exclude_unset=True)
    for key, value in settings.items():
        if "." in key:
            set_key(plain, key, value)
        else:
            plain[key] = value
    try:
        return planner.MODEL.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        near = _nearest_key(planner, key) if first["type"] == "extra_forbidden" else None
        raise UsageError(
            f"plan: {key or 'inputs'}",
            found="no such key" if near else first["msg"].removeprefix("Value error, "),
            expected="inputs as in the planner's example",
            advice=f"Did you mean {near}? `leadline plan NAME --example` prints every key."
            if near
            else "`leadline plan NAME --example` prints one with every key.",
        ) from error


def _nearest_key(planner: Planner, key: str) -> str | None:
    """Return the key of the planner's inputs whose name is nearest to ``key``; None where none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only needed on the error path

    return next(iter(get_close_matches(key, planner.MODEL.model_fields, n=1, cutoff=0.5)), None)


def example_text(name: str, planner: Planner) -> str:
    """Return an input file with the values of the planner's worked example; a comment explains each top-level key."""
    example = planner.MODEL.model_validate(planner.META.example).model_dump(mode="json")
    lines = [f"# {planner.META.about}", f"#   leadline plan {name} --input THIS-FILE"]
    for key, info in planner.MODEL.model_fields.items():
        if info.description:
            lines.append(f"# {info.description}")
        lines.append(yaml.safe_dump({key: example[key]}, sort_keys=False, allow_unicode=True).rstrip())
    return "\n".join(lines) + "\n"
