"""Step five of a verdict, in part: a finding explains an incident when it holds in it, and did not hold as much before.

A level that was the same in the healthy minutes explains nothing by itself, however far above a limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.incident import Change, Incident
from leadline.core.model.vocabulary import Severity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.entities import Entity

COVER_MIN = 0.3  # Judgement: of the incident; what held for less of it did not make it
SAME_RATIO = 1.3  # Judgement: a level within 30 % of the normal one is the normal one
SAME_SHARE = 0.1  # of the variance; what parts a series by less is chance


def placed(finding: Finding, incident: Incident, capture: Capture) -> Finding:
    """A finding as it is, or of low severity where it does not explain the incident, with the reason as evidence."""
    if not finding.windows or finding.severity < Severity.MEDIUM:
        return finding
    if cover(finding.windows, incident.window) < COVER_MIN:
        return _lowered(finding, Evidence("it did not hold during the incident"))
    measured = next((e for e in finding.evidence if e.metric is not None and e.entity is not None), None)
    if measured is None or measured.metric is None or measured.entity is None:
        return finding
    change = change_of(capture, measured.metric, measured.entity, incident)
    if change is None or not is_same(change):
        return finding
    statement = f"it was so before and after the incident as well: {change.normal:.4g} and {change.during:.4g}"
    return _lowered(
        finding, Evidence(statement, change.metric, change.entity, "median", change.during, unit=change.unit)
    )


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


def change_in(group: SeriesGroup, row: int, incident: Incident) -> Change | None:
    """What one series of a group did inside and outside an incident; None where it was not recorded in both."""
    values = group.values[row].astype(np.float64)
    inside = _within(group.times_ns, (incident.window,)) & np.isfinite(values)
    outside = _within(group.times_ns, incident.normal) & np.isfinite(values)
    if np.count_nonzero(inside) < 2 or np.count_nonzero(outside) < 2:
        return None
    during, normal = values[inside], values[outside]
    middle = float(np.median(normal))
    noise = 1.4826 * float(np.median(np.abs(normal - middle)))
    return Change(
        group.entities[row], group.metric, group.unit, middle, float(np.median(during)), noise, _share(during, normal)
    )


def is_same(change: Change) -> bool:
    """Whether the level inside is that outside: as high within its noise, or parted no more than by chance."""
    if change.share < SAME_SHARE:
        return True
    low, high = sorted((abs(change.normal), abs(change.during)))
    return high <= SAME_RATIO * low


def _lowered(finding: Finding, reason: Evidence) -> Finding:
    return replace(finding, severity=Severity.LOW, evidence=(*finding.evidence, reason))


def _within(times_ns: NDArray[np.int64], windows: tuple[Window, ...]) -> NDArray[np.bool_]:
    inside = np.zeros(len(times_ns), dtype=bool)
    for window in windows:
        inside |= (times_ns > window.start_ns) & (times_ns <= window.end_ns)
    return inside


def _share(during: NDArray[np.floating[Any]], normal: NDArray[np.floating[Any]]) -> float:
    """The share of the variance of ranks that parting the two explains."""
    whole = np.concatenate((during, normal))
    order = np.argsort(np.argsort(whole, kind="stable"), kind="stable").astype(np.float64)
    deviation = float(order.std())
    if deviation == 0.0 or np.ptp(whole) == 0.0:
        return 0.0
    inside = (order[: len(during)] - order.mean()).sum() / deviation
    return float(inside**2 / (len(during) * len(normal)))
