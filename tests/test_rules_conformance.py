"""What every rule must keep: metadata, documentation, cases that fire, stay quiet and sit exactly at the limit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from leadline.app.diagnose.diagnosing import missing_needs, rule_modules
from leadline.core.contracts.docstrings import HEADINGS, sections
from leadline.core.contracts.rule import RuleContext
from leadline.core.model.metrics import metrics
from leadline.core.model.units import UNITS
from leadline.core.model.vocabulary import Severity
from leadline.estate.settings import is_setting
from tests.rule_cases import CASES, START_NS, capture_of, case_files, load_case

RULES = rule_modules()


@pytest.mark.parametrize("name", RULES)
def test_docstring_has_every_heading(name: str) -> None:
    parts = sections(RULES[name].__doc__)
    assert [heading for heading in HEADINGS["rule"] if not parts.get(heading)] == []
    assert parts[""].endswith(".")


@pytest.mark.parametrize("name", RULES)
def test_metadata_is_sound(name: str) -> None:
    meta = RULES[name].META
    unknown = {m for m in meta.metrics() if m not in metrics()}
    assert not unknown
    for need in meta.needs:
        for part in need.split("|"):
            assert "." not in part or is_setting(part), part
    for threshold in meta.thresholds.values():
        assert threshold.unit in UNITS
        assert threshold.source
    assert set(meta.explains) <= set(RULES), "explains a rule that does not exist"
    assert name not in meta.explains
    assert RULES[name].__name__.split(".")[-2].replace("_", "-") == meta.layer.value
    if meta.judgement:
        assert meta.severity <= Severity.MEDIUM
        assert "Judgement" in sections(RULES[name].__doc__)["Sources"]


def test_codes_are_unique() -> None:
    codes = Counter(module.META.code for module in RULES.values())
    assert [code for code, count in codes.items() if count > 1] == []


@pytest.mark.parametrize("name", RULES)
def test_has_cases_that_fire_stay_quiet_and_sit_at_the_limit(name: str) -> None:
    names = {path.stem.split("_")[0] for path in (CASES / name).glob("*.yaml")}
    assert {"fires", "quiet"} <= names
    if RULES[name].META.thresholds:
        assert "threshold" in names


@pytest.mark.parametrize("path", case_files(), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_case(path: Path) -> None:
    module = RULES[path.parent.name]
    case = load_case(path)
    capture = capture_of(case)
    missing = missing_needs(capture, module.META.needs)
    if case.get("skipped"):
        assert missing
        return
    assert not missing
    found = list(module.check(_context(path.parent.name, module, case)))
    assert [_found(f) for f in found] == [_expected(e) for e in case["expect"]]
    for finding in found:
        assert finding.evidence
        assert finding.remedy
        assert finding.summary


def _context(name: str, module: ModuleType, case: dict[str, object]) -> RuleContext:
    limits = case.get("limits")
    overrides = limits if isinstance(limits, dict) else None
    return RuleContext(name, module.META, module.__doc__ or "", capture_of(case), overrides)


def _found(finding: object) -> tuple[object, ...]:
    window = finding.window  # type: ignore[attr-defined]
    span = None if window is None else ((window.start_ns - START_NS) / 1e9, (window.end_ns - START_NS) / 1e9)
    return (str(finding.entity), finding.severity.label, span)  # type: ignore[attr-defined]


def _expected(expected: dict[str, object]) -> tuple[object, ...]:
    span = None
    if "start_s" in expected:
        span = (float(str(expected["start_s"])), float(str(expected["end_s"])))
    return (expected["entity"], expected["severity"], span)
