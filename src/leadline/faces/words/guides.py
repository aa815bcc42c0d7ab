"""Guides as text: a line for each step, what it shows, what is missing and how to record it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from leadline.app.explain.explaining import advice_text
from leadline.app.guide.walking import StepState
from leadline.core.model.units import several

if TYPE_CHECKING:
    from leadline.app.guide.walking import Walk, WalkedStep

FINDINGS_SHOWN = 4


def headline(walk: Walk) -> str:
    """What came of a walk, in a sentence."""
    if all(one.state in {StepState.NOT_RECORDED, StepState.BY_HAND} for one in walk.steps):
        return "Nothing is recorded yet: each step says what to record."
    problems = [one for one in walk.steps if one.state is StepState.PROBLEM]
    if walk.first is not None:
        place = walk.steps.index(walk.first) + 1
        before = [one.step.title.lower() for one in walk.steps[: place - 1] if not one.is_answered]
        blind = f" (not wholly recorded before it: {', '.join(before)})" if before else ""
        return f"Begin at step {place}, {walk.first.step.title.lower()}{blind}."
    if problems:
        return f"{several(len(problems), 'step')} of {len(walk.steps)} with something to mend."
    minor = sum(1 for one in walk.steps if one.state is StepState.MINOR)
    unknown = sum(1 for one in walk.steps if not one.is_answered)
    rest = f"; {several(unknown, 'step')} not wholly recorded" if unknown else ""
    if minor:
        return f"Only minor things found in what is recorded, at {several(minor, 'step')}{rest}."
    return f"Nothing found in what is recorded{rest}."


def state_words(one: WalkedStep) -> str:
    """The state of a step: "problem: 2 findings", "nothing found in 7 checks, 3 could not be made"."""
    left = f", {several(len(one.missing), 'check')} could not be made" if one.missing else ""
    if one.state is StepState.PROBLEM:
        return f"problem: {several(len(one.findings), 'finding')}{left}"
    if one.state is StepState.MINOR:
        return f"minor: {several(len(one.findings), 'finding')}{left}"
    if one.state is StepState.NOTHING:
        return f"nothing found in {several(len(one.checked), 'check')}{left}"
    return str(one.state)


def listed_lines(one: WalkedStep) -> Iterator[tuple[str, str]]:
    """What a step lists of the inventory: the name of an entity, and its value."""
    for entity, value in one.listed:
        yield entity.label(), "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def needs_record(one: WalkedStep) -> bool:
    """Whether anything of a step is still to be recorded."""
    return bool(one.step.record) and not one.is_answered


def document(walk: Walk) -> dict[str, Any]:
    """A walk as plain data."""
    first = None if walk.first is None else walk.steps.index(walk.first) + 1
    return {
        "guide": walk.name,
        "about": walk.meta.about,
        "headline": headline(walk),
        "begin_at_step": first,
        "steps": list(_steps(walk)),
    }


def _steps(walk: Walk) -> Iterator[dict[str, Any]]:
    for one in walk.steps:
        yield {
            "title": one.step.title,
            "look": one.step.look,
            "state": str(one.state),
            "findings": [
                {"rule": finding.rule, "severity": finding.severity.label, "summary": finding.summary}
                for finding in one.findings
            ],
            "checked": list(one.checked),
            "missing": [{"rule": skipped.rule, "needs": list(skipped.needs)} for skipped in one.missing],
            "listed": [{"entity": str(entity), "value": value} for entity, value in one.listed],
            "record": list(one.step.record),
            "by_hand": list(one.step.by_hand),
            "advice": [advice_text(name) for name in one.step.advice],
        }
