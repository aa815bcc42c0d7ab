"""What keeps a "no" from being said though no limit was passed: disks near a limit, or busy with requests waiting.

Two averages hide half of a latency. A sample of which half is slow shows half the latency of the slow requests, and
Linux counts an empty flush as a write, so the await of writes may be half of what a write takes. So a disk above half
of its limit is not cleared, nor is one that is busy nearly all the time. A disk that is always busy at a low latency
serves many requests at once and has room for more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.placing import COVER_MIN, cover
from leadline.core.model.answer import DiskLevel, Reason
from leadline.core.model.finding import Window
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.app.diagnose.findings import RulesRun
    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.incident import Incident

_AWAITS = ("guest_disk_await_ms", "guest_disk_await_ms_read", "guest_disk_await_ms_write")
READS = frozenset({"guest_disk_util_pct", "guest_disk_queue_count", *_AWAITS})
BUSY_PCT, WAITING_COUNT = 80.0, 0.3  # Judgement: requests that wait beside the one in service
FULL_PCT = 95.0  # Judgement: busy for nearly all of the time, whatever waits
BRIEF_COVER_MIN = 0.1  # Judgement: what is slow for a tenth of the time is felt, though never for long
FELT_MS = 4.0  # Judgement: of a quick disk near its strict limit nobody feels a request
SLOW_MS = 20.0  # the limit of guest-disk-await-high
LOW_MS = 2.0  # Judgement: a device that answers quicker serves many at once


def near_disk(
    run: RulesRun, capture: Capture, incident: Incident | None, uninvolved: frozenset[Entity] = frozenset()
) -> tuple[Reason, DiskLevel] | None:
    """The disk that is near a limit for a good part of an incident, or of the recording; None where none is.

    Args:
        run: what rules on disks find at a part of their limits, and in single samples.
        capture: with the disks' utilisation.
        incident: None: all of the recording is looked at.
        uninvolved: disks that no database uses.
    """
    span = capture.span_ns()
    if span is None:
        return None
    window = Window(*span) if incident is None else incident.window
    for reason, findings, least in (
        (Reason.NEAR_LIMIT, run.near, COVER_MIN),
        (Reason.BRIEFLY_SLOW, run.brief, BRIEF_COVER_MIN),
    ):
        for finding in findings:
            evidence = finding.evidence[0] if finding.evidence else None
            if evidence is None or evidence.value is None or evidence.threshold is None or evidence.unit is None:
                continue
            share = cover(finding.windows, window)
            if (
                finding.entity not in uninvolved
                and share >= least
                and evidence.value * factor(evidence.unit, "ms") >= FELT_MS
            ):
                return reason, DiskLevel(finding.entity, evidence.value, evidence.unit, evidence.threshold, share)
    busy = next(filter(None, (_busy(group, capture, window) for group in _utilisations(capture, uninvolved))), None)
    if busy is not None:
        return Reason.BUSY, busy
    levels = (_slow_at_times(group, capture, window) for name in _AWAITS for group in capture.of(name))
    seldom = next((level for level in levels if level is not None and level.entity not in uninvolved), None)
    return None if seldom is None else (Reason.BRIEFLY_SLOW, seldom)


def requests_per_s(capture: Capture, group: SeriesGroup, unknown: float = 1.0) -> NDArray[np.float64]:
    """The rate of the requests that a latency is the mean of, [disk, sample]; where none was recorded, ``unknown``."""
    parts = {"_read": ("disk_reads_per_s",), "_write": ("disk_writes_per_s",)}
    names = parts.get(group.metric.removeprefix("guest_disk_await_ms"), ("disk_reads_per_s", "disk_writes_per_s"))
    rates = [capture.aligned(group, name) for name in names]
    if len(names) > 1 and (total := capture.aligned(group, "disk_iops")) is not None:
        rates = [total]
    known = [rate.astype(np.float64) for rate in rates if rate is not None]
    if not known:
        return np.full(group.stored.shape, unknown)
    every = np.nansum(known, axis=0)
    return np.where(np.isnan(known).all(axis=0), unknown, every)


def _utilisations(capture: Capture, uninvolved: frozenset[Entity]) -> Iterator[SeriesGroup]:
    for group in capture.of("guest_disk_util_pct", EntityKind.BLOCK_DEVICE):
        rows = [row for row, disk in enumerate(group.entities) if disk not in uninvolved]
        if rows:
            yield group if len(rows) == len(group.entities) else group.take(rows)


def _busy(group: SeriesGroup, capture: Capture, window: Window) -> DiskLevel | None:
    """The busiest disk of a recording that is busy with requests waiting; None where none is."""
    inside = (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
    if not inside.any():
        return None
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
        return None
    at = slow[row]
    under_way = queue[row][at]
    known = under_way[np.isfinite(under_way)]
    waiting = float(np.median(known)) if len(known) else float("nan")
    level = float(np.median(util[row][at]))
    return DiskLevel(group.entities[row], level, "pct", float("nan"), float(shares[row]), waiting)


def _slow_at_times(group: SeriesGroup, capture: Capture, window: Window) -> DiskLevel | None:
    """A disk with too few requests for a rule, of which so many are so slow that much waits for them; else None."""
    inside = (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
    latency_ms = group.values[:, inside].astype(np.float64)
    if not inside.any() or not np.isfinite(latency_ms).any():
        return None
    per_s = requests_per_s(capture, group, unknown=0.0)[:, inside]
    slow = (np.nan_to_num(latency_ms) >= SLOW_MS) & (per_s > 0)
    under_way = np.where(slow, np.nan_to_num(latency_ms) * per_s / 1e3, 0.0)  # Little's law
    shares = slow.mean(axis=1)
    waiting = np.where(shares >= BRIEF_COVER_MIN, under_way.mean(axis=1), 0.0)
    row = int(np.argmax(waiting))
    if waiting[row] < WAITING_COUNT:
        return None
    level_ms = float(np.average(latency_ms[row][slow[row]], weights=per_s[row][slow[row]]))
    return DiskLevel(group.entities[row], level_ms, "ms", SLOW_MS, float(shares[row]))


def _aligned(capture: Capture, group: SeriesGroup, metric: str, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    values = capture.aligned(group, metric)
    shape = (len(group.entities), int(np.count_nonzero(inside)))
    return np.full(shape, np.nan) if values is None else values[:, inside].astype(np.float64)
