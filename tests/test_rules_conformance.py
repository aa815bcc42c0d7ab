"""What every rule must keep: metadata, documentation, cases that fire, stay quiet and sit exactly at the limit."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from types import ModuleType

import pytest

from leadline.app.diagnose.diagnosing import rule_modules
from leadline.app.diagnose.findings import missing_needs
from leadline.core.contracts.docstrings import HEADINGS, sections
from leadline.core.contracts.rule import RuleContext
from leadline.core.model.metrics import metrics
from leadline.core.model.units import UNITS
from leadline.core.model.vocabulary import Severity
from leadline.estate.knowledge.settings import is_setting
from tests.rule_cases import KINDS, START_NS, RuleCase, capture_of, rule_cases, scope_of

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
    kinds = {case.kind for case in rule_cases().get(name, [])}
    assert {"fires", "quiet"} <= kinds
    if RULES[name].META.thresholds:
        assert "threshold" in kinds


def test_every_case_is_of_a_rule() -> None:
    assert set(rule_cases()) <= set(RULES)


@pytest.mark.parametrize("name", rule_cases())
def test_cases_have_names_that_say_what_the_rule_does(name: str) -> None:
    cases = rule_cases()[name]
    assert len({case.name for case in cases}) == len(cases)
    assert {case.kind for case in cases} <= KINDS
    for case in cases:
        fires = bool(case.document.get("expect"))
        assert case.kind == "threshold" or fires == (case.kind in {"fires", "warning"}), case.name
        assert case.document.get("skipped") or case.kind != "skipped", case.name


@pytest.mark.parametrize("case", [*chain(*rule_cases().values())], ids=lambda case: f"{case.rule}/{case.name}")
def test_case(case: RuleCase) -> None:
    module = RULES[case.rule]
    capture = capture_of(case.document)
    missing = missing_needs(capture, module.META.needs)
    if case.document.get("skipped"):
        assert missing
        return
    assert not missing
    findings = list(module.check(_context(case, module)))
    assert [_seen(f) for f in findings] == [_expected(e) for e in case.document["expect"]]
    for finding, expected in zip(findings, case.document["expect"], strict=True):
        assert expected.get("says", "") in f"{finding.summary} {finding.remedy}"
        assert finding.evidence
        assert finding.remedy
        assert finding.summary


def _context(case: RuleCase, module: ModuleType) -> RuleContext:
    limits = case.document.get("limits")
    scope = scope_of(case.document)
    return RuleContext(case.rule, module.META, module.__doc__ or "", capture_of(case.document), limits, scope)


def _seen(finding: object) -> tuple[object, ...]:
    window = finding.window  # type: ignore[attr-defined]
    span = None if window is None else ((window.start_ns - START_NS) / 1e9, (window.end_ns - START_NS) / 1e9)
    return (str(finding.entity), finding.severity.label, span)  # type: ignore[attr-defined]


def _expected(expected: dict[str, object]) -> tuple[object, ...]:
    span = None
    if "start_s" in expected:
        span = (float(str(expected["start_s"])), float(str(expected["end_s"])))
    return (expected["entity"], expected["severity"], span)
