"""The other way to do it, for comparison: limits as a spreadsheet would have them, each for one sample in ten.

An area is accused when any of its limits is exceeded, and cleared when something of it was recorded and none is.
Nothing is said of an area that was not recorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.incidents.recordings import Truth
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.vocabulary import EntityKind

SAMPLE_SHARE_MIN = 0.1
_RUN_QUEUE, _RETRANSMITS, _SEGMENTS = "guest_run_queue_count", "net_tcp_retransmits_per_s", "net_tcp_segments_per_s"
# Judgement: rules of thumb as they stand in runbooks. Area -> metric -> limit in the metric's unit.
LIMITS: dict[str, dict[str, float]] = {
    "disk": {
        "guest_disk_util_pct": 90.0,
        "guest_disk_await_ms": 20.0,
        "guest_disk_await_ms_read": 20.0,
        "guest_disk_await_ms_write": 20.0,
        "guest_cpu_iowait_pct": 20.0,
    },
    "cpu": {"guest_cpu_busy_pct": 90.0, _RUN_QUEUE: 2.0},  # the latter for each CPU
    "memory": {
        "guest_swap_in_kib_per_s": 0.0,
        "guest_swap_out_kib_per_s": 0.0,
        "guest_pressure_memory_some_pct": 10.0,
    },
    "network": {_RETRANSMITS: 1.0},  # percent of the segments sent
}
# What I/O wait alone says of the disk clears it in no spreadsheet.
_CLEARS_NOTHING = frozenset({"guest_cpu_iowait_pct"})
# Areas a list may rightly accuse, by cause; the disk is judged by the truth's own word. Others: none.
AREAS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("cpu-taken", "cpu-busy", "cpu-capped", "connections", "statement"), frozenset({"cpu"})),
    **dict.fromkeys(("memory-short", "swapping"), frozenset({"memory"})),
    **dict.fromkeys(("network-latency", "network-loss", "network-narrow"), frozenset({"network"})),
    "more-work": frozenset({"cpu", "network"}),
}


def judge_areas(capture: Capture) -> dict[str, bool]:
    """Areas of which something was recorded, and whether they are accused."""
    areas = {}
    for area, limits in LIMITS.items():
        judged = {
            metric: is_over for metric in limits if (is_over := _is_over(capture, metric, limits[metric])) is not None
        }
        if any(judged.values()) or judged.keys() - _CLEARS_NOTHING:
            areas[area] = any(judged.values())
    return areas


def threshold_errors(truth: Truth, capture: Capture) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the limits clear wrongly, which can be the disk only, and what they accuse wrongly."""
    areas = judge_areas(capture)
    cleared = ("disk",) if truth.disk == "yes" and areas.get("disk") is False else ()
    accused = [area for area, is_accused in areas.items() if is_accused]
    if truth.fault is None:
        return cleared, tuple(accused)
    allowed = AREAS.get(truth.fault.cause, frozenset()) | ({"disk"} if truth.disk != "no" else set())
    return cleared, tuple(area for area in accused if area not in allowed)


def _is_over(capture: Capture, metric: str, limit: float) -> bool | None:
    """Whether one sample in ten of any entity is over a limit; None when nothing was measured."""
    measured = False
    kinds = (EntityKind.GUEST,) if metric.startswith("guest_cpu_") else ()  # the machine, not each processor
    for group in capture.of(metric, *kinds):
        values = _values(capture, group)
        known = np.isfinite(values)
        counts = known.sum(axis=1)
        if not counts.any():
            continue
        measured = True
        over = (known & (np.nan_to_num(values) > limit)).sum(axis=1)
        if bool((over[counts > 0] >= SAMPLE_SHARE_MIN * counts[counts > 0]).any()):
            return True
    return False if measured else None


def _values(capture: Capture, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """The values [k, n] a limit is for: the run queue for each CPU, retransmits in percent of the segments sent."""
    if group.metric == _RUN_QUEUE:
        counts = [capture.inventory.get(entity, "cpu_count") or np.nan for entity in group.entities]
        return group.values / np.array(counts, dtype=np.float64)[:, None]
    if group.metric == _RETRANSMITS:
        segments = capture.aligned(group, _SEGMENTS)
        sent = np.full(group.values.shape, np.nan) if segments is None else np.where(segments > 0, segments, np.nan)
        return 100.0 * group.values / sent
    return group.values
