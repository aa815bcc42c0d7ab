"""What keeps a "no" from being said though no limit was passed: disks near a limit, or busy with requests waiting.

An average over a sample hides the slow half of it, and Linux counts an empty flush as a write of its own, so that the
await of writes may be half of what each takes. Half of a limit, or a disk that is busy nearly all the time, clears
nothing. A disk that is always busy at a low latency serves many requests at once, and has room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.placing import COVER_MIN, cover
from leadline.core.model.finding import Finding, Window
from leadline.core.model.units import factor, show
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.incident import Incident

READS = frozenset(
    {
        *("guest_disk_util_pct", "guest_disk_queue_count"),
        *("guest_disk_await_ms", "guest_disk_await_ms_read", "guest_disk_await_ms_write"),
    }
)
BUSY_PCT, WAITING_COUNT = 80.0, 0.3  # Judgement: requests that wait beside the one in service
FULL_PCT = 95.0  # Judgement: busy for nearly all of the time, whatever waits
BRIEF_COVER_MIN = 0.1  # Judgement: what is slow for a tenth of the time is felt, though never for long
FELT_MS = 4.0  # Judgement: of a quick disk near its strict limit nobody feels a request
LOW_MS = 2.0  # Judgement: a device that answers quicker serves many at once


def near_sentence(
    near: tuple[Finding, ...], brief: tuple[Finding, ...], capture: Capture, incidents: tuple[Incident, ...]
) -> str:
    """What is near a limit for a good part of the incident, or of the recording; empty where nothing is.

    Args:
        near: findings of rules on disks at a part of their limits.
        brief: their findings of single samples beyond their limits.
        capture: with the disks' utilisation.
        incidents: the first is looked at; none: all of the recording.
    """
    span = capture.span_ns()
    if span is None:
        return ""
    window = incidents[0].window if incidents else Window(*span)
    for some, least in ((near, COVER_MIN), (brief, BRIEF_COVER_MIN)):
        for finding in some:
            evidence = finding.evidence[0] if finding.evidence else None
            if evidence is None or evidence.value is None or evidence.threshold is None or evidence.unit is None:
                continue
            share = cover(finding.windows, window)
            if share < least or evidence.value * factor(evidence.unit, "ms") < FELT_MS:
                continue
            value, limit = show(evidence.value, evidence.unit), show(evidence.threshold, evidence.unit)
            if some is near:
                return f"{finding.entity.label()} takes {value} per request, near the limit of {limit}"
            return (
                f"{finding.entity.label()} takes {value} per request in {100 * share:.0f} % of the time (limit {limit})"
            )
    return next(filter(None, (_busy(group, capture, window) for group in _utilisations(capture))), "")


def _utilisations(capture: Capture) -> list[SeriesGroup]:
    return capture.of("guest_disk_util_pct", EntityKind.BLOCK_DEVICE)


def _busy(group: SeriesGroup, capture: Capture, window: Window) -> str:
    """The busiest disk of a recording that is busy with requests waiting; empty where none is."""
    inside = (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
    if not inside.any():
        return ""
    util = group.values[:, inside].astype(np.float64)
    queue = _aligned(capture, group, "guest_disk_queue_count", inside)
    ways = [_aligned(capture, group, f"guest_disk_await_ms{way}", inside) for way in ("", "_read", "_write")]
    await_ms = np.fmax(np.fmax(ways[0], ways[1]), ways[2])
    with np.errstate(invalid="ignore"):
        waits = (util >= FULL_PCT) | ((util >= BUSY_PCT) & (queue - util / 100.0 >= WAITING_COUNT))
        slow = waits & ~(await_ms < LOW_MS)
    shares = slow.mean(axis=1)
    row = int(np.argmax(shares))
    if shares[row] < COVER_MIN:
        return ""
    at = slow[row]
    under_way = queue[row][at]
    known = under_way[np.isfinite(under_way)]
    waiting = f" with {float(np.median(known)):.2g} requests under way" if len(known) else ""
    return f"{group.entities[row].label()} is {show(float(np.median(util[row][at])), 'pct')} busy{waiting}"


def _aligned(capture: Capture, group: SeriesGroup, metric: str, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    values = capture.aligned(group, metric)
    shape = (len(group.entities), int(np.count_nonzero(inside)))
    return np.full(shape, np.nan) if values is None else values[:, inside].astype(np.float64)
