"""Every entry of the researched catalogue is spoken of once, in words."""

from __future__ import annotations

from leadline.app.explain.explaining import coverage
from leadline.core.contracts.discovery import unit_modules
from leadline.core.contracts.rule import rule_metas


def test_what_is_covered_is_said_in_words() -> None:
    rules = set(unit_modules("rule"))
    for entry, (kind, text) in coverage().items():
        assert text.strip(), entry
        if kind == "rule":
            assert set(text.split(", ")) <= rules


def test_every_rule_covers_the_entry_of_its_name_without_saying_so() -> None:
    entries = coverage()
    for name, meta in rule_metas().items():
        assert entries[name] == ("rule", name)
        assert set(meta.catalogue).isdisjoint(rule_metas()), f"{name}: a rule covers its own entry by itself"
        assert {entries[entry][0] for entry in meta.catalogue} <= {"rule"}
