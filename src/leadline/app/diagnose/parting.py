"""Where to part a recording in two, inside and outside one span, so that the parts differ most.

Series are compared by the ranks of their samples, so that neither outliers nor units matter. The share of a series'
variance that a span explains (the squared correlation with "inside or not") is its vote; -log(1 - share) adds votes up
as the likelihood of two levels instead of one does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]

POINT_COUNT_MAX = 360  # 65,000 spans; longer recordings are parted in coarser steps
SHARE_MAX = 0.98  # a vote has an end: one series that parts perfectly does not outvote all others
LENGTH_SHARE_MAX = 0.75  # Judgement: what holds for most of a recording is its normal, not its incident


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """All spans [s] of points: from ``firsts`` to before ``ends``."""

    firsts: Indices
    ends: Indices
    count: int

    @classmethod
    def of(cls, count: int, least: int, pieces: Indices) -> Spans:
        """Spans of at least so many of ``count`` points, not most of them, and none across two ``pieces`` [count]."""
        firsts, ends = np.triu_indices(count + 1, least)
        kept = (ends - firsts <= LENGTH_SHARE_MAX * count) & (pieces[firsts % count] == pieces[ends - 1])
        return cls(firsts[kept], ends[kept], count)

    def shares(self, values: Floats) -> Floats:
        """The share [s] of the variance of ``values`` [count] each span explains; negative where it is lower inside."""
        ranked = ranks(values)
        deviation = float(ranked.std())
        if deviation == 0.0:
            return np.zeros(len(self.firsts))
        sums = np.concatenate(([0.0], np.cumsum((ranked - ranked.mean()) / deviation)))
        inside = sums[self.ends] - sums[self.firsts]
        lengths = (self.ends - self.firsts).astype(np.float64)
        shares: Floats = np.sign(inside) * inside**2 / (lengths * (self.count - lengths))
        return shares


def votes(shares: Floats) -> Floats:
    """What shares count for."""
    counted: Floats = -np.log(1.0 - np.clip(shares, 0.0, SHARE_MAX))
    return counted


def ranks(values: Floats) -> Floats:
    """Rank [n] of each value from 0 to 1, the mean rank where several are equal."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    upto = np.cumsum(counts)
    ranked: Floats = (upto - (counts + 1) / 2.0)[which] / max(len(values) - 1, 1)
    return ranked


def smoothed(values: Floats, width: int = 3) -> Floats:
    """Running median [n] of an odd width."""
    half = width // 2
    padded = np.pad(values, half, mode="edge")
    middle: Floats = np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)
    return middle
