"""Step five of a verdict, in part: a finding explains an incident when it holds in it, and did not hold as much before.

A level that was the same in the healthy minutes explains nothing by itself, however far above a limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.incident import Change, Incident
from leadline.core.model.metrics import metric
from leadline.core.model.vocabulary import Better, Severity
from leadline.core.statistics.changes import change_in, is_same

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity

COVER_MIN = 0.3  # Judgement: of the incident; what held for less of it did not make it


def placed(finding: Finding, incidents: tuple[Incident, ...], capture: Capture) -> Finding:
    """A finding as it is where it explains one of the incidents; else of low severity, with the reason as evidence."""
    if not finding.windows or finding.severity < Severity.MEDIUM:
        return finding
    reasons = [_reason(finding, incident, capture) for incident in incidents]
    return finding if None in reasons else _lowered(finding, next(reason for reason in reasons if reason is not None))


def _reason(finding: Finding, incident: Incident, capture: Capture) -> Evidence | None:
    """Why a finding does not explain an incident; None where it may."""
    if finding.windows == (incident.window,):
        return None  # a rule that looked at the incident itself compared it
    if cover(finding.windows, incident.window) < COVER_MIN:
        return Evidence("it did not hold during the incident")
    measured = next((e for e in finding.evidence if e.metric is not None and e.entity is not None), None)
    if measured is None or measured.metric is None or measured.entity is None:
        return None
    change = change_of(capture, measured.metric, measured.entity, incident)
    if change is None:
        return None
    if is_same(change):
        statement = f"it was so before and after the incident as well: {change.normal:.4g} and {change.during:.4g}"
    elif change.during < change.normal and metric(change.metric).better is Better.LOW:
        statement = f"there was less of it in the incident: {change.during:.4g}, normally {change.normal:.4g}"
    else:
        return None
    return Evidence(statement, change.metric, change.entity, "median", change.during, unit=change.unit)


def unfelt(finding: Finding, sentence: str) -> Finding:
    """A finding as it is, or of low severity where it was measured while users felt nothing."""
    if not finding.windows or finding.severity < Severity.MEDIUM:
        return finding
    return _lowered(finding, Evidence(f"but nobody felt it: {sentence}"))


def cover(windows: tuple[Window, ...], whole: Window) -> float:
    """The share of a span that windows cover; they are in order of time and do not overlap."""
    covered = sum(max(min(w.end_ns, whole.end_ns) - max(w.start_ns, whole.start_ns), 0) for w in windows)
    return covered / max(whole.end_ns - whole.start_ns, 1)


def change_of(capture: Capture, metric: str, entity: Entity, incident: Incident) -> Change | None:
    """What a series did inside and outside an incident; None where it was not recorded in both."""
    for group in capture.of(metric, entity.kind):
        if entity in group.entities:
            change = change_in(group, list(group.entities).index(entity), incident)
            if change is not None:
                return change
    return None


def _lowered(finding: Finding, reason: Evidence) -> Finding:
    return replace(finding, severity=Severity.LOW, evidence=(*finding.evidence, reason))
