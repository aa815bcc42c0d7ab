"""The list of verbs: what they answer, and lines that end where a clause does."""

from __future__ import annotations

import pytest

from leadline.faces.cli.lazy_verbs import QUESTIONS, question_of, short_line, verb_stems
from leadline.faces.cli.main import VERBS
from tests.command_line import leadline


def test_without_a_verb_six_things_are_named() -> None:
    done = leadline()
    assert (done.returncode, done.stderr) == (0, "")
    named = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  leadline ")}
    assert named == {"diagnose", "recorder", "bench", "simulate", "plan", "audit"}
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_every_verb_stands_under_a_question() -> None:
    stems = verb_stems(VERBS).values()
    assert [stem for stem in stems if not question_of(VERBS, stem)] == []
    lines = leadline("--help").stdout.splitlines()
    headings = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings[1:] == [heading for key, heading in QUESTIONS.items() if key]


@pytest.mark.parametrize(
    ("summary", "line"),
    [
        ("What was measured: list them.", "What was measured: list them."),
        ("Show series by entity: statistics, a picture over time.", "Show series by entity"),
        ("Is it the disk? Watch the workload, then pulse the disk.", "Is it the disk?"),
        ("Boot guests with virtual hardware, load them and measure.", "Boot guests with virtual hardware"),
        ("One clause that is longer than the line of the list is.", "One clause that is longer than the..."),
        ("The first paragraph.\n\nThe second one, which is long enough to matter.", "The first paragraph."),
    ],
)
def test_a_line_ends_where_a_clause_does(summary: str, line: str) -> None:
    assert short_line(summary, 40) == line
