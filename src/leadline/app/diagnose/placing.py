"""Step five of a verdict, in part: a finding explains an incident when it holds in it, and did not hold as much before.

A level that was the same in the healthy minutes explains nothing by itself, however far above a limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.core.model.finding import Finding, Lowered, LoweredBecause, Window
from leadline.core.model.metrics import metric
from leadline.core.model.vocabulary import Better, Severity
from leadline.core.statistics.changes import change_of, is_same

if TYPE_CHECKING:
    from leadline.core.model.answer import Feeling
    from leadline.core.model.capture import Capture
    from leadline.core.model.incident import Incident

COVER_MIN = 0.3  # Judgement: of the incident; what was there for less of it is not its cause


def lowered_in(finding: Finding, incident: Incident, capture: Capture) -> Lowered | None:
    """Why a finding does not explain an incident; None where it may."""
    if not finding.windows or finding.windows == (incident.window,):
        return None  # a rule that looked at the incident itself compared it
    if cover(finding.windows, incident.window) < COVER_MIN:
        return Lowered(LoweredBecause.NOT_DURING)
    measured = next((e for e in finding.evidence if e.metric is not None and e.entity is not None), None)
    if measured is None or measured.metric is None or measured.entity is None:
        return None
    change = change_of(capture, measured.metric, incident, measured.entity)
    if change is None:
        return None
    if is_same(change):
        return Lowered(LoweredBecause.AS_ALWAYS, change)
    if change.during < change.normal and metric(change.metric).better is Better.LOW:
        return Lowered(LoweredBecause.LESS, change)
    return None


def unfelt(finding: Finding, feeling: Feeling) -> Finding:
    """A finding as it is, or of low severity where it was measured while users felt nothing."""
    return finding if not has_weight(finding) else lowered(finding, Lowered(LoweredBecause.UNFELT, feeling=feeling))


def lowered(finding: Finding, reason: Lowered) -> Finding:
    """A finding of low severity, with why."""
    return replace(finding, severity=Severity.LOW, lowered=reason)


def has_weight(finding: Finding) -> bool:
    """Whether something of weight was measured: no setting, and of medium severity at least."""
    return bool(finding.windows) and finding.severity >= Severity.MEDIUM


def cover(windows: tuple[Window, ...], whole: Window) -> float:
    """The share of a span that windows cover; they are in order of time and do not overlap."""
    covered = sum(max(min(w.end_ns, whole.end_ns) - max(w.start_ns, whole.start_ns), 0) for w in windows)
    return covered / max(whole.end_ns - whole.start_ns, 1)
