"""Means over windows of time as they were computed before Rust did: what the tests compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.model.capture import SeriesGroup
from leadline.estate.arithmetic.episodes import sample_bounds

COVERED_SHARE_MIN = 0.5


def window_mean(
    group: SeriesGroup, starts_ns: NDArray[np.int64], ends_ns: NDArray[np.int64]
) -> NDArray[np.floating[Any]]:
    """Means [k, m] of every series over windows, weighted by time; NaN where less than half of one was measured."""
    if not len(group.times_ns) or not len(starts_ns):
        return np.full((len(group.entities), len(starts_ns)), np.nan)
    lower, upper = sample_bounds(group)
    origin = lower[0]
    edges = np.column_stack((lower - origin, upper - origin)).ravel() / 1e9
    lengths = (upper - lower) / 1e9
    measured = np.isfinite(group.values)
    weighted = np.where(measured, group.values, 0.0) * lengths
    start_s, end_s = (starts_ns - origin) / 1e9, (ends_ns - origin) / 1e9
    total = _integral(edges, weighted, end_s) - _integral(edges, weighted, start_s)
    covered = _integral(edges, measured * lengths, end_s) - _integral(edges, measured * lengths, start_s)
    enough = (covered >= COVERED_SHARE_MIN * (end_s - start_s)) & (covered > 0.0)
    return np.where(enough, total / np.where(enough, covered, 1.0), np.nan)


def _integral(
    edges: NDArray[np.floating[Any]], areas: NDArray[np.floating[Any]], at_s: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """The integral [k, m] from the first edge to each moment of series that are constant within their intervals.

    ``edges`` [2n] are start and end of each interval in ascending order, ``areas`` [k, n] value times length of each.
    """
    sums = np.zeros((areas.shape[0], len(edges)))
    sums[:, 1::2] = np.cumsum(areas, axis=1)
    sums[:, 2::2] = sums[:, 1:-1:2]
    left = np.clip(np.searchsorted(edges, at_s, side="right") - 1, 0, len(edges) - 2)
    width = edges[left + 1] - edges[left]
    share = np.clip((at_s - edges[left]) / np.where(width > 0.0, width, 1.0), 0.0, 1.0)
    result: NDArray[np.floating[Any]] = sums[:, left] + share * (sums[:, left + 1] - sums[:, left])
    return result
