"""Findings as SARIF 2.1.0, which code-scanning pages and CI systems show.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, sections 3.13 to 3.28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from leadline import __version__
from leadline.core.contracts.docstrings import flowed, sections, title
from leadline.core.model.vocabulary import Severity

if TYPE_CHECKING:
    from types import ModuleType

    from leadline.core.contracts.rule import Rule
    from leadline.core.model.finding import Finding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
    Severity.INFO: "note",
}


def sarif_document(findings: tuple[Finding, ...], modules: dict[str, ModuleType]) -> dict[str, Any]:
    """One run with the rules that found something and a result per finding."""
    names = list(dict.fromkeys(finding.rule for finding in findings))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Leadline",
                        "semanticVersion": __version__,
                        "rules": [_rule(name, modules[name]) for name in names],
                    }
                },
                "results": [_result(finding, names) for finding in findings],
            }
        ],
    }


def _rule(name: str, module: ModuleType) -> dict[str, Any]:
    meta = cast("Rule", module).META
    parts = sections(module.__doc__)
    return {
        "id": meta.code,
        "name": name,
        "shortDescription": {"text": title(module.__doc__)},
        "fullDescription": {"text": flowed(parts.get("Why", ""))},
        "help": {"text": flowed(parts.get("Do", ""))},
        "defaultConfiguration": {"level": _LEVELS[meta.severity]},
        "properties": {"layer": meta.layer.value, "sources": flowed(parts.get("Sources", ""))},
    }


def _result(finding: Finding, names: list[str]) -> dict[str, Any]:
    sources = list(dict.fromkeys(e.source for e in finding.evidence if e.source is not None))
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": str(finding.entity), "kind": finding.entity.kind.value}]
    }
    if sources:
        location["physicalLocation"] = {"artifactLocation": {"uri": sources[0].replace("\\", "/")}}
    return {
        "ruleId": finding.code,
        "ruleIndex": names.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.summary}. {finding.remedy}"},
        "locations": [location],
        "partialFingerprints": {"ruleAndEntity/v1": f"{finding.rule}:{finding.entity}"},
        "properties": {
            "severity": finding.severity.label,
            "evidence": [evidence.statement for evidence in finding.evidence],
            "guessed": list(finding.guessed),
        },
    }
