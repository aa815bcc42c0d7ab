"""A guide walked: its steps, each with what the recordings at hand show of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from leadline.core.contracts.discovery import load_unit
from leadline.core.model.vocabulary import EntityKind, Severity

if TYPE_CHECKING:
    from leadline.core.contracts.guide import Guide, GuideMeta, GuideStep
    from leadline.core.model.entities import Entity, Inventory
    from leadline.core.model.finding import Diagnosis, Finding, Skipped


class StepState(StrEnum):
    """What is known of a step."""

    PROBLEM = "problem"  # at least one of its rules has a finding that weighs
    MINOR = "minor"  # what was found is of low severity, or was there before and after what users felt as well
    NOTHING = "nothing found"  # by none of the rules that could be asked
    NOT_RECORDED = "not recorded"  # none of its rules could be asked
    BY_HAND = "by hand"  # no rule answers it


@dataclass(frozen=True, slots=True)
class WalkedStep:
    """A step with what is known of it.

    Attributes:
        step: of the guide.
        state: in a word.
        findings: of its rules, the gravest first; information is none.
        checked: names of rules that ran and found nothing.
        missing: its rules that could not run, with what they need; empty where nothing was recorded at all.
        listed: what the inventory says of the settings that the step shows: entity and value, by label.
    """

    step: GuideStep
    state: StepState
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    missing: tuple[Skipped, ...]
    listed: tuple[tuple[Entity, Any], ...] = ()

    @property
    def is_answered(self) -> bool:
        """Whether every rule of the step could be asked."""
        return bool(self.findings or self.checked) and not self.missing


@dataclass(frozen=True, slots=True)
class Walk:
    """A guide with the state of each step.

    Attributes:
        name: of the guide.
        meta: of the guide.
        steps: in their order.
        first: where to begin: of a ladder the first step with a problem; None elsewhere, or where there is none.
    """

    name: str
    meta: GuideMeta
    steps: tuple[WalkedStep, ...]
    first: WalkedStep | None


def walk(name: str, diagnosis: Diagnosis | None, inventory: Inventory | None = None) -> Walk:
    """A guide with what a diagnosis and an inventory say of each step; None where nothing was recorded.

    Raises:
        UsageError: there is no such guide.
    """
    meta = cast("Guide", load_unit("guide", name)).META
    steps = tuple(replace(_walked(step, diagnosis), listed=_listed(step, inventory)) for step in meta.steps)
    first = next((one for one in steps if one.state is StepState.PROBLEM), None) if meta.is_ladder else None
    return Walk(name, meta, steps, first)


def _listed(step: GuideStep, inventory: Inventory | None) -> tuple[tuple[Entity, Any], ...]:
    """The settings that a step shows, entity by entity in the order of their labels."""
    if inventory is None:
        return ()
    rows = []
    for setting in step.shows:
        kind, _, name = setting.partition(".")
        rows += [(one, value) for one in inventory.of_kind(EntityKind(kind)) if (value := inventory.get(one, name))]
    return tuple(sorted(rows, key=lambda row: row[0].label()))


def _walked(step: GuideStep, diagnosis: Diagnosis | None) -> WalkedStep:
    if diagnosis is None:
        state = StepState.NOT_RECORDED if step.rules else StepState.BY_HAND
        return WalkedStep(step, state, (), (), ())
    asked = set(step.rules)
    findings = [one for one in diagnosis.findings if one.rule in asked and one.severity > Severity.INFO]
    with_findings = {one.rule for one in findings}
    checked = tuple(rule for rule in step.rules if rule in diagnosis.rules_run and rule not in with_findings)
    missing = tuple(one for one in diagnosis.skipped if one.rule in asked)
    if not step.rules:
        state = StepState.BY_HAND
    elif any(one.severity > Severity.LOW and one.lowered is None for one in findings):
        state = StepState.PROBLEM
    elif findings:
        state = StepState.MINOR
    else:
        state = StepState.NOTHING if checked else StepState.NOT_RECORDED
    return WalkedStep(step, state, tuple(findings), checked, missing)
