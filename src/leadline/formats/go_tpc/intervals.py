"""Latencies that go-tpc prints as ranks: what the lines of many short intervals tell of each operation.

go-tpc prints no histogram. A line of an interval has the latencies at six ranks, and the sum. When an interval holds
few operations, these ranks are most of them, so that short intervals give the distribution.

Source: go-tpc, pkg/measurement/hist.go; hdrhistogram-go, ValueAtQuantile (rank ``int(q / 100 * n + 0.5)``, the highest
value of its bucket) and New (buckets of 2**19 ns up to 2**24 ns for 1 ms and one digit).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from leadline.core.model.histogram import Histogram

FIRST_WIDTH_MS = 2**19 / 1e6
WIDE_FROM_MS = 2**24 / 1e6  # 32 buckets of the first width; above, 16 in every doubling
LEAST_MS = 1.0  # what is shorter counts as that long
DIGIT_MS = 0.05  # half of the last digit printed
_RANKS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}


@dataclass(frozen=True, slots=True)
class IntervalLine:
    """One printed line: how many operations, the sum of their latencies in ms, latencies in ms by statistic."""

    count: int
    sum_ms: float
    printed_ms: dict[str, float]
    takes_s: float = math.nan
    mean_ms: float = math.nan


def bucket_of(printed_ms: float) -> tuple[float, float]:
    """The bounds in ms of the bucket whose highest value is printed.

    >>> [round(bound, 2) for bound in bucket_of(18.9)]
    [17.8, 18.95]
    """
    if printed_ms <= LEAST_MS + DIGIT_MS:
        return 0.0, printed_ms + DIGIT_MS
    doublings = max(math.ceil(math.log2(max(printed_ms - DIGIT_MS, 1e-9) / WIDE_FROM_MS)), 0)
    return max(printed_ms - FIRST_WIDTH_MS * 2**doublings - DIGIT_MS, 0.0), printed_ms + DIGIT_MS


def interval_histogram(lines: Iterable[IntervalLine], whole: IntervalLine) -> Histogram | None:
    """The histogram of a run from its intervals; what ended after the last interval is below the run's maximum.

    Returns:
        As many samples as ``whole`` counts; None when the lines hold more, or have no ranks.
    """
    rows: list[tuple[float, float, int]] = []
    count = 0
    for line in lines:
        if "p50" not in line.printed_ms or "max" not in line.printed_ms:
            return None
        rows += _rows(line)
        count += line.count
    if count > whole.count or "max" not in whole.printed_ms:
        return None
    rows.append((0.0, whole.printed_ms["max"] + DIGIT_MS, whole.count - count))
    lower, upper, counts = zip(*rows, strict=True)
    return Histogram.of(lower, upper, counts, "ms")


def _rows(line: IntervalLine) -> list[tuple[float, float, int]]:
    """Buckets (lower, upper, count) of one interval: a sample at each printed rank, the others between them."""
    if line.count == 1:
        return [(max(line.sum_ms - DIGIT_MS, 0.0), line.sum_ms + DIGIT_MS, 1)]
    ranks = {min(max(int(q / 100.0 * line.count + 0.5), 1), line.count): name for name, q in _RANKS.items()}
    ranks[line.count] = "max"
    rows, before, low = [], 0, 0.0
    for rank, name in sorted(ranks.items()):
        if name not in line.printed_ms:
            continue
        bounds = bucket_of(line.printed_ms[name])
        rows.append((low, bounds[1], rank - before - 1))
        rows.append((*bounds, 1))
        before, low = rank, bounds[0]
    return rows
