"""Use case: configuration rules alone, over an inventory and facts; no recording is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from leadline.app.diagnose.diagnosing import diagnose, rule_modules
from leadline.core.contracts.rule import Rule

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.finding import Diagnosis, Finding
    from leadline.core.model.profile import Profile


def configuration_rules() -> list[str]:
    """Rules that settings alone can make run."""
    return [name for name, module in rule_modules().items() if is_configuration(cast("Rule", module))]


def is_configuration(rule: Rule) -> bool:
    """Whether settings alone can meet everything the rule needs."""
    return bool(rule.META.needs) and all(any("." in part for part in need.split("|")) for need in rule.META.needs)


def audit(capture: Capture, profile: Profile | None = None) -> Diagnosis:
    """Findings of the configuration rules, and which could not look for lack of which setting."""
    return diagnose(capture, profile, rules=configuration_rules())


def by_rule(findings: tuple[Finding, ...]) -> dict[str, list[Finding]]:
    """Findings by rule, the most severe rules first."""
    grouped: dict[str, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(finding.rule, []).append(finding)
    return dict(sorted(grouped.items(), key=lambda item: (-max(f.severity for f in item[1]), item[0])))
