"""Scenarios: simulated systems described in YAML, and what a simulation of one gives.

A file names its ``system``, a unit of ``scenarios/`` with ``META``, ``MODEL`` and ``simulate``:

``MODEL``
    The pydantic model of its files, a `Scenario` with the system's own keys.
``simulate(scenario, progress) -> Outcome``
    One run: a function of the scenario, its seed and this version. ``progress`` is told the share that is done; what
    it raises ends the run. Errors of the simulator pass: `app.simulating_one` makes them errors for people.

The unit's docstring carries the headings *Model, Assumptions, Parameters, Limits, Sources*.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from leadline.core.contracts.ignored_keys import Ignored
from leadline.core.io.yaml_files import parse_model, read_text
from leadline.core.io.yaml_text import YamlFault, load_yaml
from leadline.core.model.errors import InputError, LeadlineError, UsageError
from leadline.core.model.result import Result, Tick
from leadline.core.model.workload import Seconds, Stream, Workload, find_workload, profiles

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

STRICT = ConfigDict(extra="forbid", frozen=True)
WHAT, GUIDE = "a scenario file", "docs/guides/simulate.md"
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,60}$"
VARIANTS_MAX = 10_000
WINDOWS_MAX = 1_000_000
NAMES_SHOWN = 5
ALL = "*"
Progress = Callable[[float], object]
Name = Annotated[str, Field(pattern=NAME)]


class VirtualTiming(BaseModel):
    """Virtual seconds: the warm-up, what is measured, and the windows of the series."""

    model_config = STRICT

    warm_up_s: Annotated[Seconds, Field(ge=0, le=1e7)] = 10.0
    measure_s: Annotated[Seconds, Field(gt=0, le=1e7)] = 60.0
    window_s: Annotated[Seconds, Field(gt=0)] = 1.0

    @property
    def warm_up_count(self) -> int:
        """Whole windows of the warm-up."""
        return int(self.warm_up_s / self.window_s + 1e-9)

    @property
    def window_count(self) -> int:
        """Whole windows of what is measured."""
        return int(self.measure_s / self.window_s + 1e-9)

    @model_validator(mode="after")
    def _fits(self) -> VirtualTiming:
        count = self.measure_s / self.window_s
        if not 1.0 <= count <= WINDOWS_MAX:
            message = f"{count:,.3g} windows in what is measured; there are 1 to {WINDOWS_MAX:,}"
            raise ValueError(message)
        return self


class Scenario(BaseModel):
    """What every scenario file has; ``vary`` maps keys to the values they take, one after the other."""

    model_config = STRICT

    leadline_scenario: Literal[1] = 1
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")]
    about: str = ""
    source: str = ""
    system: str
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    timing: VirtualTiming = VirtualTiming()
    vary: dict[str, list[Any]] = Field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Plain data that validates to the same scenario, with every default written out."""
        return self.model_dump(mode="json")

    def loads(self) -> list[dict[str, Any]]:
        """The streams of I/O of all its workloads, see `named_streams`; none for systems without I/O."""
        return []

    def ignored(self) -> Iterable[Ignored]:
        """Keys that change nothing as the scenario is, with the reason; none is given in vain, see `app.simulating`."""
        return ()

    def parameters(self) -> dict[str, str]:
        """What may differ between runs, by dotted key; not what names it, nor its workloads."""
        naming = {"leadline_scenario", "name", "about", "source", "seed", "vary"}
        return dict(_flat({key: value for key, value in self.plain().items() if key not in naming}))


def _workload(given: object, info: ValidationInfo) -> object:
    """A workload in the file itself, the name of a shipped one, or a file beside the scenario."""
    if isinstance(given, dict):
        return {"name": "inline", **given}
    if not isinstance(given, str):
        return given
    folder = Path((info.context or {}).get("folder", "."))
    try:
        return find_workload(given if given in profiles() else str(folder / given))
    except LeadlineError as error:
        raise ValueError(str(error)) from error


WorkloadOf = Annotated[Workload, BeforeValidator(_workload)]


def _is_io(given: Workload) -> Workload:
    if given.kind != "io":
        message = f"a workload of kind {given.kind}; the system takes streams of io"
        raise ValueError(message)
    return given


IoWorkloadOf = Annotated[WorkloadOf, AfterValidator(_is_io)]


def _beside(given: object, info: ValidationInfo) -> object:
    """A path beside the scenario."""
    return str(Path((info.context or {}).get("folder", ".")) / given) if isinstance(given, str) else given


FileOf = Annotated[str, BeforeValidator(_beside)]


@dataclass(frozen=True, slots=True)
class ScenarioMeta:
    """What is known about a simulated system.

    Attributes:
        policy_key: the key that names its policy.
        policies: the policies there are.
        columns: measures shown in tables, with their headings; an entity without the first has a line of its own. The
            first two are what a variant is said to change.
        legend: a line below the table that explains it.
    """

    policy_key: str
    policies: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of one entity; ``half_width`` of its 95 % interval, NaN where there is none."""

    entity: str
    name: str
    value: float
    unit: str
    half_width: float = float("nan")


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity of one entity over the windows of the measured time; NaN is not measured."""

    entity: str
    name: str
    unit: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one simulated run gave.

    Attributes:
        results: as load tools have them, latencies as histograms.
        warm_up, ticks: windows before measuring and while measuring.
        measures: numbers of every entity.
        trace: hash over every event in order: the same on every machine.
    """

    results: tuple[Result, ...]
    warm_up: tuple[Tick, ...]
    ticks: tuple[Tick, ...]
    measures: tuple[Measure, ...]
    series: tuple[Series, ...]
    trace: str
    event_count: int
    notes: tuple[str, ...] = ()

    def entities(self) -> list[str]:
        """Entities with measures, in order."""
        return list(dict.fromkeys(measure.entity for measure in self.measures))

    def measure(self, entity: str, name: str) -> Measure:
        """That measure; NaN where there is none."""
        matching = (measure for measure in self.measures if (measure.entity, measure.name) == (entity, name))
        return next(matching, Measure(entity, name, float("nan"), ""))


def whole_windows(values: ArrayLike, count: int, fill: float) -> NDArray[np.float64]:
    """The first ``count`` windows [count]; those after the last with a value are ``fill``."""
    known = np.asarray(values, dtype=np.float64)[:count]
    return np.concatenate([known, np.full(count - len(known), fill)])


def named_streams(owned: Sequence[tuple[str, Stream]]) -> list[dict[str, Any]]:
    """Streams with the VM each belongs to as plain data; of several VMs with the VM before their names."""
    plain = [(name, stream.model_dump(mode="json", exclude_defaults=True)) for name, stream in owned]
    if len({name for name, _ in owned}) == 1:
        return [stream_data for _, stream_data in plain]
    return [{**stream_data, "name": f"{name}/{stream_data.get('name', 'io')}"} for name, stream_data in plain]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, of many the first."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


class System(Protocol):
    """The type of a unit of ``scenarios/``."""

    META: ScenarioMeta
    MODEL: type[Scenario]

    def simulate(self, scenario: Scenario, progress: Progress) -> Outcome:
        """One run."""


def read_scenario(path: Path, system_of: Callable[[str], System]) -> tuple[System, Scenario]:
    """The scenario of a file and its system.

    Raises:
        InputError: not readable, not YAML, or no scenario; with line and column of the first fault.
    """
    text = read_text(path, WHAT, GUIDE)
    head = parse_model(text, str(path), _Head, WHAT, GUIDE)
    try:
        system = system_of(head.system)
    except UsageError as error:
        line = next((n for n, row in enumerate(text.splitlines(), 1) if row.startswith("system:")), 1)
        raise InputError(
            f"{path}:{line}", found=f"system {head.system}", expected="a system there is", advice=error.advice
        ) from error
    return system, parse_model(text, str(path), system.MODEL, WHAT, GUIDE, context={"folder": str(path.parent)})


class _Head(BaseModel):
    model_config = ConfigDict(extra="ignore")

    system: str


@dataclass(frozen=True, slots=True)
class Axis:
    """One key and the values it takes."""

    key: str
    values: tuple[Any, ...]


def parse_axis(text: str) -> Axis:
    """An axis of ``KEY=VALUE,VALUE``; values are YAML.

    Raises:
        UsageError: it is none.

    >>> parse_axis("vms.db01.iops_limit=200,400,null")
    Axis(key='vms.db01.iops_limit', values=(200, 400, None))
    """
    key, mark, values = text.partition("=")
    if not (key and mark and values):
        raise UsageError(f"--vary {text}", found="no values", expected="KEY=VALUE,VALUE", advice=f"See {GUIDE}.")
    try:
        return Axis(key.strip(), tuple(load_yaml(value).content for value in values.split(",")))
    except YamlFault as error:
        raise UsageError(
            f"--vary {text}", found="values that are not YAML", expected="numbers or words", advice=f"See {GUIDE}."
        ) from error


@dataclass(frozen=True, slots=True)
class Variant:
    """A scenario with some keys set; ``idle`` has a note for each key of the file that this one ignores."""

    settings: tuple[tuple[str, Any], ...]
    scenario: Scenario
    idle: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What tells it from the others, empty when nothing was set."""
        short = [key.rpartition(".")[2] for key, _ in self.settings]
        names = short if len(set(short)) == len(short) else [key for key, _ in self.settings]
        values = ("null" if value is None else value for _, value in self.settings)
        return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def variants(scenario: Scenario, axes: Sequence[Axis]) -> list[Variant]:
    """Every combination of the axes' values, the last axis changing fastest.

    Raises:
        UsageError: a key is not in the scenario, a value makes none, or there are too many.
    """
    count = 1
    for axis in axes:
        count *= len(axis.values)
    if count > VARIANTS_MAX:
        raise UsageError(
            "--vary", found=f"{count:,} variants", expected=f"at most {VARIANTS_MAX:,}", advice="Vary fewer values."
        )
    plain = scenario.plain()
    result = []
    for values in itertools.product(*(axis.values for axis in axes)):
        settings = tuple(zip((axis.key for axis in axes), values, strict=True))
        changed = deepcopy(plain) if settings else plain
        for key, value in settings:
            set_key(changed, key, value)
        result.append(Variant(settings, _validated(scenario, changed, settings) if settings else scenario))
    return result


def _validated(scenario: Scenario, plain: dict[str, Any], settings: Sequence[tuple[str, Any]]) -> Scenario:
    try:
        return type(scenario).model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            "--vary " + ", ".join(f"{key}={value}" for key, value in settings),
            found=f"{'.'.join(str(part) for part in first['loc'])}: {first['msg'].removeprefix('Value error, ')}",
            expected="values the scenario can have",
            advice=f"See {GUIDE}.",
        ) from error


def places(plain: Any, key: str) -> list[tuple[Any, str | int]]:  # noqa: ANN401 - plain data
    """Where a dotted key lies in plain data: containers with the last step; list items by name, number or ``*``.

    Raises:
        UsageError: it lies nowhere.
    """
    nodes: list[tuple[Any, str | int]] = [({"": plain}, "")]
    for step in key.split("."):
        nodes = [(container[at], inner) for container, at in nodes for inner in _steps(container[at], step)]
        if not nodes:
            raise UsageError(
                f"key {key}",
                found=f"no {step}",
                expected="a key of the scenario, as vms.db01.iops_limit",
                advice="Items of a list are named by their name, their number or *.",
            )
    return nodes


def _steps(node: Any, step: str) -> list[str | int]:  # noqa: ANN401 - plain data
    if isinstance(node, dict):
        return list(node) if step == ALL else [step] if step in node else []
    if isinstance(node, list):
        named = [i for i, item in enumerate(node) if isinstance(item, dict) and item.get("name") == step]
        numbered = [int(step)] if step.isdigit() and int(step) < len(node) else []
        return list(range(len(node))) if step == ALL else named or numbered  # type: ignore[return-value]
    return []


def set_key(plain: dict[str, Any], key: str, value: Any) -> None:  # noqa: ANN401 - plain data
    """Set a dotted key, everywhere it lies.

    Raises:
        UsageError: it lies nowhere.
    """
    for container, at in places(plain, key):
        container[at] = value


def _flat(node: Any, path: str = "") -> list[tuple[str, str]]:  # noqa: ANN401 - plain data
    if isinstance(node, dict):
        kept = [(key, value) for key, value in node.items() if key not in ("workload", "name")]
        return [pair for key, value in kept for pair in _flat(value, f"{path}.{key}" if path else str(key))]
    if isinstance(node, list) and all(isinstance(item, dict) for item in node):
        named = [(str(item.get("name", index)), item) for index, item in enumerate(node)]
        return [pair for name, item in named for pair in _flat(item, f"{path}.{name}")]
    return [(path, "none" if node is None else str(node))]
