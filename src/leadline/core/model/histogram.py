"""Latency histograms that can be merged: percentiles of many are those of the pooled samples, never averages.

A histogram is a list of buckets with bounds and counts. Buckets come from the tool (fio json+ bins, vscsiStats limits,
HDR buckets); merging histograms of different buckets keeps every bucket as it is, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts of samples per bucket.

    Attributes:
        lower: float64 [k], inclusive lower bounds in ``unit``.
        upper: float64 [k], exclusive upper bounds; inf for an open last bucket.
        counts: int64 [k], samples in each bucket, all positive.
        unit: unit of the bounds.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    counts: NDArray[np.int64]
    unit: str

    @property
    def total(self) -> int:
        """How many samples there are."""
        return int(self.counts.sum())

    @classmethod
    def of(cls, lower: Iterable[float], upper: Iterable[float], counts: Iterable[int], unit: str) -> Histogram:
        """A histogram from plain lists; empty buckets are dropped, buckets are sorted by upper bound."""
        low, up = np.asarray(list(lower), dtype=np.float64), np.asarray(list(upper), dtype=np.float64)
        count = np.asarray(list(counts), dtype=np.int64)
        order = np.lexsort((low, up))
        keep = order[count[order] > 0]
        return cls(low[keep], up[keep], count[keep], unit)

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """The histogram of all samples together.

        Raises:
            ValueError: there is none, or their units differ.
        """
        parts = list(histograms)
        units = {part.unit for part in parts}
        if len(units) != 1:
            message = f"cannot merge histograms with units {sorted(units)}"
            raise ValueError(message)
        lower = np.concatenate([part.lower for part in parts])
        upper = np.concatenate([part.upper for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        bounds, where = np.unique(np.stack([upper, lower], axis=1), axis=0, return_inverse=True)
        total = np.zeros(len(bounds), dtype=np.int64)
        np.add.at(total, where.ravel(), counts)
        return cls(bounds[:, 1].copy(), bounds[:, 0].copy(), total, parts[0].unit)

    def minus(self, earlier: Histogram) -> Histogram:
        """What was counted since an earlier state of the same histogram.

        Raises:
            ValueError: the earlier one counts what this one does not.
        """
        bounds_before = zip(earlier.lower, earlier.upper, strict=True)
        earlier_counts = dict(zip(bounds_before, earlier.counts, strict=True))
        counts = self.counts.copy()
        for i, bounds in enumerate(zip(self.lower, self.upper, strict=True)):
            counts[i] -= earlier_counts.pop(bounds, 0)
        if earlier_counts or (counts < 0).any():
            message = "not an earlier state of this histogram"
            raise ValueError(message)
        return Histogram.of(self.lower, self.upper, counts, self.unit)

    def quantile_bounds(self, share: float) -> tuple[float, float]:
        """The bucket that holds the sample at rank ceil(share * total): its (lower, upper) bound.

        Raises:
            ValueError: the histogram is empty or ``share`` is outside [0, 1].

        >>> Histogram.of([0, 1], [1, 2], [9, 1], "ms").quantile_bounds(0.95)
        (1.0, 2.0)
        """
        if self.total == 0 or not 0.0 <= share <= 1.0:
            message = f"no quantile {share} of {self.total} samples"
            raise ValueError(message)
        rank = max(int(np.ceil(share * self.total)), 1)
        bucket = int(np.searchsorted(np.cumsum(self.counts), rank))
        return float(self.lower[bucket]), float(self.upper[bucket])

    def quantile(self, share: float) -> float:
        """The middle of the bucket that holds the quantile; its lower bound when the bucket is open."""
        low, up = self.quantile_bounds(share)
        return low if np.isinf(up) else (low + up) / 2.0
