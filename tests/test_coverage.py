"""Every entry of the researched catalogue is a rule, advice, or has its reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from leadline.app.diagnose.explaining import coverage
from leadline.core.contracts.discovery import unit_modules
from tests.conftest import SAMPLES

CATALOGUE = SAMPLES.parent / "catalogue" / "catalogue.yaml"


def test_what_is_covered_is_said_in_words() -> None:
    rules = set(unit_modules("rule"))
    for entry, (kind, text) in coverage().items():
        assert text.strip(), entry
        if kind == "rule":
            assert set(text.split(", ")) <= rules


def test_every_entry_is_covered() -> None:
    path = Path(CATALOGUE)
    if not path.is_file():
        pytest.skip("the researched catalogue is not beside this checkout")
    ids = {entry["id"] for entry in yaml.safe_load(path.read_text())["rules"]}
    known = coverage()
    assert ids - set(known) == set()
    assert set(known) - ids == set(), "an entry the catalogue does not have"
