"""Public problems with a known answer, given as people posted them: what Leadline says of each, and how good that is.

Each folder of `tests/field/problems` holds what was posted (the numbers of the thread, written anew) and a `case.yaml`:
where the thread stands, the cause that was found, what must and must not be said. `python -m tests.field.test_problems`
prints the table; with `half a` or `half b` as arguments, one half of it.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.answer import Disk
from leadline.core.model.errors import LeadlineError
from leadline.core.model.finding import Diagnosis
from leadline.faces.words.answers import disk_sentence, headline
from leadline.faces.words.findings import Quotes

PROBLEMS = Path(__file__).parent / "problems"
NAMES: Final = sorted(path.parent.name for path in PROBLEMS.glob("*/case.yaml"))
SEED: Final = 32

# From best to worst. "missed" says nothing false and does not explain what the posted numbers show.
OUTCOMES: Final = ("right", "honest", "missed", "refused", "wrong")
_KEYS = {"thread", "answer", "disk", "must_say", "must_not_say", "record_is_fine", "half", "expected_outcome"}


@dataclass(frozen=True)
class Problem:
    """One public problem and its known answer."""

    name: str
    answer: str
    disk: tuple[str, ...]
    must_say: tuple[str, ...]
    must_not_say: tuple[str, ...]
    record_is_fine: bool
    half: str
    expected_outcome: str

    @property
    def paths(self) -> list[Path]:
        return sorted(path for path in (PROBLEMS / self.name).iterdir() if path.name != "case.yaml")


@dataclass(frozen=True)
class Said:
    """What was answered: how good it is, and the first line of it."""

    outcome: str
    first_line: str
    disk_line: str = ""


def fields_of(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((PROBLEMS / name / "case.yaml").read_text(encoding="utf-8"))
    return loaded


def problem_of(name: str) -> Problem:
    fields = fields_of(name)
    return Problem(
        name=name,
        answer=fields["answer"],
        disk=tuple(fields["disk"]),
        must_say=tuple(fields["must_say"]),
        must_not_say=tuple(fields["must_not_say"]),
        record_is_fine=fields["record_is_fine"],
        half=fields["half"],
        expected_outcome=fields["expected_outcome"],
    )


def drawn_halves() -> dict[str, str]:
    """Return the half of each problem: the first half of the shuffled names is a."""
    shuffled = list(NAMES)
    random.Random(SEED).shuffle(shuffled)
    middle = (len(shuffled) + 1) // 2
    return {name: "a" if index < middle else "b" for index, name in enumerate(shuffled)}


def said_of(problem: Problem) -> Said:
    """Read what was posted and judge the answer; a traceback counts as refused."""
    try:
        diagnosis = diagnose(import_paths(problem.paths, Request(metrics=metrics_read())).capture)
        first_line, disk_line = headline(diagnosis, Quotes()), disk_sentence(diagnosis.answer, Quotes())
    except LeadlineError as error:
        return Said("refused", str(error).splitlines()[0])
    except Exception as error:
        return Said("refused", f"traceback: {error!r}")
    return Said(judged(problem, diagnosis, f"{first_line} {disk_line}".lower()), first_line, disk_line)


def judged(problem: Problem, diagnosis: Diagnosis, text: str) -> str:
    """Return how good an answer is.

    Wrong is a "yes" or "no" that the thread refutes, a sentence that is known to be false, or a cause that is told as
    the answer and is not the thread's. What a guest sees of a disk is no cause: the answer asks for what is below it.
    """
    names_cause = any(words in text for words in problem.must_say)
    disk = _plain(diagnosis.answer.disk)
    fits = disk in problem.disk
    cause = diagnosis.answer.cause
    asks_below = diagnosis.answer.disk is Disk.YES_AS_SEEN_BY_GUEST
    tells_cause = cause is not None and not cause.finding.is_wait and not asks_below
    if any(words in text for words in problem.must_not_say) or (disk in ("yes", "no") and not fits):
        return "wrong"
    if tells_cause and not names_cause:
        return "wrong"
    if names_cause and fits:
        return "right"
    return "honest" if problem.record_is_fine else "missed"


def _plain(disk: Disk) -> str:
    """Return what was answered as yes, no or not-known; a disk that is not the first cause is a "no" here."""
    if disk is Disk.NOT_FIRST:
        return "no"
    return "yes" if disk.accuses else "no" if disk is Disk.NO else "not-known"


def table_of(names: list[str]) -> str:
    """Return the outcomes as text: a row for each problem, then the counts of each half."""
    rows, counts = [], {"a": Counter[str](), "b": Counter[str]()}
    for name in names:
        problem = problem_of(name)
        said = said_of(problem)
        counts[problem.half][said.outcome] += 1
        rows.append(f"{problem.half} {said.outcome:<8}{name:<46}{said.first_line[:110]}")
    for half, outcomes in counts.items():
        if outcomes:
            figures = ", ".join(f"{outcome} {outcomes[outcome]}" for outcome in OUTCOMES)
            rows.append(f"half {half}: {figures} of {outcomes.total()}")
    return "\n".join(rows)


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_is_described_in_full(name: str) -> None:
    fields = fields_of(name)
    assert set(fields) == _KEYS
    assert set(fields["thread"]) == {"title", "site", "address"}
    assert set(fields["disk"]) <= {"yes", "no", "not-known"}
    assert fields["disk"]
    assert fields["must_say"]
    assert all(words == words.lower() for words in [*fields["must_say"], *fields["must_not_say"]])
    assert fields["expected_outcome"] in OUTCOMES
    assert problem_of(name).paths


def test_halves_are_drawn_by_the_seed() -> None:
    assert {name: problem_of(name).half for name in NAMES} == drawn_halves()


@pytest.mark.parametrize("name", NAMES)
def test_no_outcome_gets_worse(name: str) -> None:
    problem = problem_of(name)
    said = said_of(problem)
    told = f"{said.outcome}: {said.first_line} / {said.disk_line} (found in the thread: {problem.answer})"
    assert OUTCOMES.index(said.outcome) <= OUTCOMES.index(problem.expected_outcome), told


if __name__ == "__main__":
    asked = sys.argv[2] if sys.argv[1:2] == ["half"] else "ab"
    sys.stdout.write(table_of([name for name in NAMES if problem_of(name).half in asked]) + "\n")
