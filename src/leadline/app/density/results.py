"""Density runs as they are kept: a summary beside the runs of their counts, whole after every count."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from leadline.app.density.model import CountLevel, level_of
from leadline.app.density.steps import FitRange, StepRule, answer
from leadline.core.io.outputs import keep as keep_file
from leadline.core.io.private import PRIVATE
from leadline.core.model.errors import InputError, UsageError
from leadline.core.system.cgroups import InstanceLimits
from leadline.stores.runs import RunStore

VERSION = 1
SUMMARY = "density.json"


@dataclass(frozen=True, slots=True)
class Density:
    """A density run.

    Attributes:
        workload: the workload as plain data, `hosts` the machines as (address, target); none for local instances.
        rule: how counts were chosen; its ``most`` is what fits where the instances work.
        offered_per_s: what one instance asks for; NaN for a closed loop.
        limits: what each instance was limited to; `are_limited` is False where control groups could not be made.
        process: the process that works on it, None when none does.
    """

    id: str
    state: str
    workload: dict[str, Any]
    target: str
    hosts: tuple[tuple[str, str], ...]
    started: str
    seed: int
    clauses: tuple[str, ...]
    rule: StepRule
    offered_per_s: float
    limits: InstanceLimits
    are_limited: bool
    process: int | None = None
    levels: tuple[CountLevel, ...] = ()
    notes: tuple[str, ...] = ()
    host: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the workload."""
        return str(self.workload["name"])

    @property
    def is_done(self) -> bool:
        """Whether the search came to its end."""
        return self.state == "done"

    @property
    def is_running(self) -> bool:
        """Whether a process works on it now."""
        return self.process is not None and Path(f"/proc/{self.process}").exists()

    @property
    def answer(self) -> FitRange:
        """How many fit."""
        return answer(self.levels, self.rule, whole=self.is_done)

    @property
    def by_count(self) -> list[CountLevel]:
        """The levels, fewest instances first."""
        return sorted(self.levels, key=lambda level: level.count)

    @property
    def where(self) -> str:
        """What the instances work on, for people."""
        return f"{len(self.hosts)} machines" if self.hosts else self.target

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as kept and for ``--json``."""
        return {"version": VERSION, **asdict(self), "answer": self.answer.to_dict()}


def keep(density: Density, store: RunStore) -> None:
    """Write the summary aside, then over the old one; NaN becomes null."""
    keep_file(store.files_of(density.id) / SUMMARY, json.dumps(_without_nan(density.to_dict())).encode(), mode=PRIVATE)


def _without_nan(value: Any) -> Any:  # noqa: ANN401 - plain data
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def stored(store: RunStore, name: str) -> Density:
    """The density run whose name begins so, or ``last``.

    Raises:
        UsageError: there is none, or several begin so.
        InputError: its summary is damaged.
    """
    names = sorted(path.parent.name for path in (store.folder / "runs").glob(f"*/{SUMMARY}"))
    wanted = names[-1:] if name == "last" else [run_id for run_id in names if run_id.startswith(name)]
    if len(wanted) != 1:
        raise UsageError(
            f"density run {name}",
            found="no such run" if not wanted else f"{len(wanted)} runs begin so",
            expected=f"one of {', '.join(names[-3:])}" if names else "a density run; none was kept yet",
            advice="The name is in what `leadline bench density` printed, and begins the runs of `leadline runs list`.",
        )
    path = store.files_of(wanted[0]) / SUMMARY
    try:
        return _density(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            str(path),
            found=f"damaged ({error})",
            expected="the summary of a density run",
            advice="Measure again; its counts are still in `leadline runs list`.",
        ) from error


def _density(plain: dict[str, Any]) -> Density:
    names = ("id", "state", "workload", "target", "started", "seed", "are_limited", "process", "host")
    return Density(
        **{key: plain[key] for key in names},
        hosts=tuple((address, path) for address, path in plain["hosts"]),
        clauses=tuple(plain["clauses"]),
        rule=StepRule(**plain["rule"]),
        offered_per_s=float("nan") if plain["offered_per_s"] is None else plain["offered_per_s"],
        limits=InstanceLimits(**plain["limits"]),
        levels=tuple(level_of(part) for part in plain["levels"]),
        notes=tuple(plain["notes"]),
    )
