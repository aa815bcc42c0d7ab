"""Confidence intervals by resampling, for series whose neighbours resemble each other.

Source: Politis and Romano, The Stationary Bootstrap (1994); blocks keep the dependence of neighbouring seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLE_COUNT = 2000
SAMPLE_COUNT_MIN = 10  # Judgement: fewer seconds say nothing of a spread


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % interval and coefficient of variation; low and high are NaN with too few samples."""

    mean: float
    low: float
    high: float
    cv_pct: float
    sample_count: int

    @property
    def too_few(self) -> bool:
        """Whether there were too few samples for an interval."""
        return self.sample_count < SAMPLE_COUNT_MIN

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def mean_interval(rounds: Sequence[Sequence[float]], seed: int) -> Interval:
    """The mean of all samples of several rounds, with a bootstrap interval of blocks within rounds.

    ``rounds`` are samples in order, one sequence per round; blocks have the mean length n ** (1/3) but at least 2.
    """
    parts = [np.asarray(part, dtype=np.float64) for part in rounds]
    parts = [part[np.isfinite(part)] for part in parts]
    parts = [part for part in parts if len(part)]
    nan = float("nan")
    if not parts:
        return Interval(nan, nan, nan, nan, 0)
    whole = np.concatenate(parts)
    mean = float(whole.mean())
    cv = 100.0 * float(whole.std(ddof=1)) / mean if len(whole) > 1 and mean else nan
    if len(whole) < SAMPLE_COUNT_MIN:
        return Interval(mean, nan, nan, cv, len(whole))
    means = _resampled_means(parts, seed)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(mean, float(low), float(high), cv, len(whole))


def _resampled_means(parts: list[NDArray[np.float64]], seed: int) -> NDArray[np.float64]:
    """Means [r] of resampled series: circular blocks of random length, round by round."""
    generator = np.random.default_rng(seed)
    total = np.zeros(RESAMPLE_COUNT)
    for part in parts:
        total += part[block_index(len(part), generator)].sum(axis=1)
    means: NDArray[np.float64] = total / sum(len(part) for part in parts)
    return means


def block_index(count: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Which of ``count`` samples in order are drawn: int [r, count], circular blocks of mean length count ** (1/3).

    Source: Politis and Romano, The Stationary Bootstrap (1994); blocks have at least 2 samples on average.
    """
    restart = generator.random((RESAMPLE_COUNT, count)) < 1.0 / max(count ** (1 / 3), 2.0)
    restart[:, 0] = True
    starts = generator.integers(0, count, (RESAMPLE_COUNT, count))
    columns = np.arange(count)
    # Where the current block began, and with which sample: the index runs on from there.
    begun = np.maximum.accumulate(np.where(restart, columns, 0), axis=1)
    index: NDArray[np.intp] = (np.take_along_axis(starts, begun, axis=1) + columns - begun) % count
    return index


def difference_interval(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], seed: int
) -> tuple[float, float, float]:
    """After less before as a share of before, and its 95 % interval; NaN where either has too few samples."""
    first, second = mean_interval(before, seed), mean_interval(after, seed + 1)
    nan = float("nan")
    if first.too_few or second.too_few or first.mean == 0.0:
        return nan, nan, nan
    clean = [[np.asarray(p, dtype=np.float64) for p in side] for side in (before, after)]
    old, new = (
        _resampled_means([p[np.isfinite(p)] for p in side if np.isfinite(p).any()], seed + index)
        for index, side in enumerate(clean)
    )
    shares = new / old - 1.0
    low, high = np.quantile(shares, [0.025, 0.975])
    return second.mean / first.mean - 1.0, float(low), float(high)
