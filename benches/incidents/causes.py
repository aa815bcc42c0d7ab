"""The cause a finding names, in the words of the truth; ``causes.yaml`` says which rules name which."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml

from leadline.core.contracts.rule import rule_metas
from leadline.core.model.finding import Finding

FILE = Path(__file__).with_name("causes.yaml")


def causes_of(finding: Finding) -> frozenset[str]:
    """The causes a finding may mean; none when it names no cause."""
    return causes_of_rule(finding.rule) | frozenset(rule_metas()[finding.rule].causes)


@cache
def causes_of_rule(rule: str) -> frozenset[str]:
    """The causes a rule names."""
    return frozenset(
        cause for cause, patterns in patterns_by_cause().items() if any(fnmatchcase(rule, one) for one in patterns)
    )


@cache
def patterns_by_cause() -> dict[str, list[str]]:
    """For each cause the patterns of the rules that name it."""
    patterns: dict[str, list[str]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return patterns
