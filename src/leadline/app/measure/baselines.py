"""Use case: runs kept as baselines, and every later run of the same load on the same target judged against them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leadline.app.measure.comparing_runs import RunComparison, compare_runs, history_of, subject
from leadline.core.model.errors import UsageError
from leadline.core.model.run import Run
from leadline.stores.runs import RunStore

_NAME = re.compile(r"[A-Za-z][\w.-]*")  # runs' ids begin with a digit
_LAST = re.compile(r"last(?::(\d+))?")
FEW_RUNS = "fewer than three runs: what changes from run to run is hardly known; keep more with --add"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Runs beside one baseline."""

    baseline: str
    comparison: RunComparison

    @property
    def sentence(self) -> str:
        """For people."""
        count = len(self.comparison.before)
        return f"against {self.baseline} ({count} run{'s' if count > 1 else ''}): {self.comparison.sentence}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"baseline": self.baseline, **self.comparison.to_dict()}


def side(store: RunStore, text: str) -> list[Run]:
    """The runs that a word names: ids with commas between, a baseline, ``last``, ``last:3`` for the last three.

    ``last:N`` are the last whole runs that measured what the last of all did.

    Raises:
        UsageError: there is no such run, or several begin so.
    """
    side_runs: list[Run] = []
    marks = store.marks()
    for word in text.split(","):
        last = _LAST.fullmatch(word)
        if word in marks:
            side_runs += [store.get(run) for run in marks[word]]
        elif last is not None and last[1] is not None:
            side_runs += _last(store, int(last[1]))
        else:
            side_runs.append(store.get(word))
    return list({run.id: run for run in side_runs}.values())


def _last(store: RunStore, count: int) -> list[Run]:
    latest = store.get("last")
    like = [run for run in store.alike(latest) if subject(run) == subject(latest)][-count:]
    if len(like) < count or count < 1:
        raise UsageError(
            f"last:{count}",
            found=f"{len(like)} whole runs like {latest.id}",
            expected=f"{count}" if count else "at least 1",
            advice="`leadline runs list` shows the runs.",
        )
    return like


def keep(store: RunStore, name: str, runs: Sequence[Run], *, add: bool = False) -> list[Run]:
    """Keep runs as the baseline of that name, instead of what it was or, with ``add``, besides; all it is now.

    Raises:
        UsageError: the name cannot be one, a run has no whole round, or they did not measure the same.
    """
    check_name(name)
    kept_before = [store.get(run) for run in store.marks().get(name, ())] if add else []
    kept = list({run.id: run for run in (*kept_before, *runs)}.values())
    for run in kept:
        if not run.rounds:
            raise UsageError(f"run {run.id}", found=run.state, expected="a run that was measured", advice="Another.")
        if subject(run) != subject(kept[0]):
            raise UsageError(
                f"run {run.id}",
                found=f"another load, target or machine than {kept[0].id}",
                expected="runs of one kind in a baseline",
                advice="Keep them under two names.",
            )
    store.mark(name, [run.id for run in kept])
    return kept


def baselines(store: RunStore) -> dict[str, list[Run]]:
    """Every baseline with its runs, oldest first."""
    return {name: [store.get(run) for run in runs] for name, runs in store.marks().items()}


def forget(store: RunStore, name: str) -> tuple[str, ...]:
    """Remove a baseline; its runs, whose ids are returned, stay.

    Raises:
        UsageError: there is no such baseline.
    """
    runs_by_name = store.marks()
    if name not in runs_by_name:
        raise UsageError(
            f"baseline {name}",
            found="no such baseline",
            expected=f"one of {', '.join(runs_by_name)}" if runs_by_name else "one that was kept; there is none",
            advice="`leadline runs baseline list` shows them.",
        )
    store.mark(name, [])
    return runs_by_name[name]


def check_name(name: str) -> None:
    """Refuse what cannot be told from a run.

    Raises:
        UsageError: it can be taken for a run's id, or for several.
    """
    if _NAME.fullmatch(name) is None or name == "last":
        raise UsageError(
            f"baseline {name}",
            found="not a name" if name != "last" else "the word for the last run",
            expected="a letter, then letters, digits, dots and dashes",
            advice="For example before-upgrade.",
        )


def judge(store: RunStore, runs: Sequence[Run]) -> list[Judgement]:
    """Runs just made beside every baseline of the same load, target and machine that does not hold them."""
    run_ids = {run.id for run in runs}
    judgements = []
    for name, ids in store.marks().items():
        baseline_runs = [store.get(run) for run in ids]
        if baseline_runs and subject(baseline_runs[0]) == subject(runs[0]) and not run_ids & set(ids):
            judgements.append(
                Judgement(name, compare_runs(baseline_runs, runs, history_of(store, baseline_runs, runs)))
            )
    return judgements
