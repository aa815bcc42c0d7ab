"""Use case: configuration rules alone, over an inventory and facts; no recording is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from leadline.app.diagnosing import diagnose, rule_modules
from leadline.core.rule import Rule

if TYPE_CHECKING:
    from leadline.core.capture import Capture
    from leadline.core.finding import Diagnosis, Finding
    from leadline.core.profile import Profile


def configuration_rules() -> list[str]:
    """Rules that need settings and no metric."""
    return [name for name, module in rule_modules().items() if is_configuration(cast("Rule", module))]


def is_configuration(rule: Rule) -> bool:
    """Whether everything the rule needs are settings."""
    return bool(rule.META.needs) and all("." in part for need in rule.META.needs for part in need.split("|"))


def audit(capture: Capture, profile: Profile | None = None) -> Diagnosis:
    """Findings of the configuration rules, and which could not look for lack of which setting."""
    return diagnose(capture, profile, rules=configuration_rules())


def by_rule(findings: tuple[Finding, ...]) -> dict[str, list[Finding]]:
    """Findings by rule, the most severe rules first."""
    grouped: dict[str, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(finding.rule, []).append(finding)
    return dict(sorted(grouped.items(), key=lambda item: (-max(f.severity for f in item[1]), item[0])))
