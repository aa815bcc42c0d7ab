"""What every guide must keep: its docstring, rules and advice that exist, and no advice that is shown nowhere."""

from __future__ import annotations

import csv
from typing import cast

import pytest

from leadline.app.explain.explaining import advice_text
from leadline.core.contracts.discovery import load_units, unit_modules
from leadline.core.contracts.docstrings import HEADINGS, sections, title
from leadline.core.contracts.guide import Guide
from tests.conftest import ROOT

GUIDES = load_units("guide")
RULES = unit_modules("rule")


@pytest.mark.parametrize("name", GUIDES)
def test_guide_keeps_the_contract(name: str) -> None:
    module = GUIDES[name]
    assert [heading for heading in HEADINGS["guide"] if not sections(module.__doc__).get(heading)] == []
    assert title(module.__doc__).endswith(".")
    meta = cast("Guide", module).META
    assert meta.about.endswith("?")
    assert len({step.title for step in meta.steps}) == len(meta.steps)
    for step in meta.steps:
        assert step.look.endswith((".", "?")), step.title
        assert [rule for rule in step.rules if rule not in RULES] == [], step.title
        assert len(set(step.rules)) == len(step.rules), step.title
        assert step.record or step.by_hand, f"{step.title}: nobody learns how to answer it"
        assert all(map(advice_text, step.advice))


def test_advice_that_no_rule_shows_stands_in_a_guide() -> None:
    rows = list(csv.DictReader((ROOT / "src/leadline/app/explain/advice.csv").read_text().splitlines()))
    walked = {name for module in GUIDES.values() for step in cast("Guide", module).META.steps for name in step.advice}
    assert [row["catalogue"] for row in rows if not row["rules"].strip() and row["catalogue"] not in walked] == []
