"""The other way to do it, for comparison: a list of limits, and every entity with a sample beyond one is accused.

The limits are those of the rules themselves, so the comparison is of method, not of numbers: no duration, no least
load, no cause and symptom, no role of a disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from leadline.app.diagnose.diagnosing import rule_modules
from leadline.core.contracts.rule import Rule
from leadline.core.model.metrics import metric
from leadline.core.model.vocabulary import Better

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity


def limits() -> dict[str, tuple[str, float]]:
    """Rule -> metric and warning limit, for rules that need a metric and have such a limit."""
    found = {}
    for name, module in rule_modules().items():
        meta = cast("Rule", module).META
        first = meta.needs[0].split("|")[0] if meta.needs else ""
        if "warn" in meta.thresholds and first and "." not in first and metric(first).better is Better.LOW:
            found[name] = (first, meta.thresholds["warn"].value)
    return found


def accusations(capture: Capture) -> set[tuple[str, Entity]]:
    """(rule, entity) of every entity with a sample beyond a limit."""
    accused = set()
    for rule, (name, limit) in limits().items():
        for group in capture.of(name):
            with np.errstate(invalid="ignore"):
                rows = np.flatnonzero((group.values > limit).any(axis=1))
            accused |= {(rule, group.entities[int(row)]) for row in rows}
    return accused


def names_the_fault(rule: str, entity: Entity, rules: tuple[str, ...], wanted: Entity) -> bool:
    """Whether an accusation is of the injected fault: its rule, on its entity or a part of it."""
    return rule in rules and wanted in entity.lineage()
