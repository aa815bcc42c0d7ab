"""How many different contents there are in all data when a part of it was read at random.

Two copies of a content are both in a sample of a hundredth with a chance of one in ten thousand: a sample shows fewer
duplicates than there are. The counts of contents seen once, twice, ... bound from both sides how many contents there
can be: every true number of copies has known chances to be seen so often, and the smallest and the largest number of
contents whose expected counts fit the observed ones are two linear programs.

Source: Harnik, Khaitzin, Sotnikov, "Estimating unseen deduplication - from theory to practice" (FAST 2016); Valiant,
Valiant, "Estimating the unseen" (2011).
"""

from __future__ import annotations

from math import inf, lgamma, log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from leadline.app.reduction.blocks import PIECE_CELLS
from leadline.app.reduction.contents import ContentTable
from leadline.app.reduction.simplex import smallest

OFTEN = 30  # Judgement: contents seen more often are all known; few are seen so often whose number is doubtful
DEVIATIONS = 2.5  # standard errors that a count may be off. Judgement: both programs look for the worst of all counts
BEYOND = 3.0  # standard deviations: contents with more copies are seen more than `OFTEN` times
WIDER, TRIES = 1.5, 12
COUNTED_MIN = 30  # contents from which their own clustering is used. Judgement: fewer do not show it
_EXACT_COPIES, _GROWTH = 24, 1.12  # the grid of numbers of copies: each one, then by this factor


def contents_between(table: ContentTable, read_share: float) -> tuple[float, float]:
    """Return the fewest and the most cells that the different contents of all data may have.

    Args:
        table: contents of the pieces that were drawn.
        read_share: the share of all pieces that was drawn, each with the same chance.

    Both are of the contents that are kept, divided by their chance to be kept.
    """
    table.settle()
    if read_share >= 1.0:
        return _whole_between(table)
    counts, clusters = _counts(table)
    often = float(table.cells[table.pieces > OFTEN].sum())
    low, high = _seldom_between(table, np.r_[counts, often], np.r_[clusters, PIECE_CELLS], read_share)
    spread = DEVIATIONS * sqrt(float((table.cells[table.pieces > OFTEN] ** 2).sum()) * (1 - table.chance))
    seen = float(table.cells.sum())
    low, high = max(low + often - spread, seen - spread), high + often + spread
    return max(low, 0.0) / table.chance, high / table.chance


def _whole_between(table: ContentTable) -> tuple[float, float]:
    """All was read: only contents were drawn, each with a known chance."""
    cells = float(table.cells.sum())
    spread = 1.96 * sqrt(float((table.cells**2).sum()) * (1.0 - table.chance))
    return (cells - spread) / table.chance, (cells + spread) / table.chance


def _counts(table: ContentTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return cells of contents seen in 1, 2, ... pieces, and how many cells come and go together, float64 [times]."""
    counts, clusters = np.zeros(OFTEN), np.full(OFTEN, float(PIECE_CELLS))
    for times in range(1, OFTEN + 1):
        is_such = table.pieces == times
        counts[times - 1] = table.cells[is_such].sum()
        if np.count_nonzero(is_such) >= COUNTED_MIN:
            _, piece = np.unique(table.first[is_such], return_inverse=True)
            together = np.bincount(piece, table.cells[is_such])
            clusters[times - 1] = max((together**2).sum() / together.sum(), 1.0)
    return counts, clusters


def _seldom_between(
    table: ContentTable, counts: NDArray[np.float64], clusters: NDArray[np.float64], read_share: float
) -> tuple[float, float]:
    """Return the fewest and the most cells of contents seen `OFTEN` times or less, with those not seen.

    Args:
        table: contents.
        counts: cells of contents seen 1, 2, ... `OFTEN` times, and more often, float64 [times].
        clusters: cells that come and go together in each, float64 [times].
        read_share: the share of all pieces that was drawn.
    """
    copies = copies_grid((OFTEN + BEYOND * sqrt(OFTEN)) / read_share)
    times = np.arange(1, OFTEN + 1)
    chances = seen_chances(copies, read_share, OFTEN)
    unseen = np.exp(copies * log1p(-read_share))
    seldom = np.minimum(chances.sum(axis=0) + unseen, 1.0)
    expected = copies * read_share  # unknowns are expected cells in the sample: numbers of like size
    rows = np.vstack([chances, 1.0 - seldom, (times[:, None] * chances).sum(axis=0)]) / expected
    total = float((times * counts[:-1]).sum())
    error = _total_error(table, times) * sqrt(1.0 - read_share) + PIECE_CELLS
    objective = seldom / expected
    for attempt in range(TRIES):
        deviations = DEVIATIONS * WIDER**attempt
        low, high = count_bounds(counts, clusters, deviations)
        lows, highs = np.r_[low, total - deviations * error], np.r_[high, total + deviations * error]
        fewest = smallest(objective, rows, np.maximum(lows, 0.0), highs)
        most = smallest(-objective, rows, np.maximum(lows, 0.0), highs)
        if fewest is not None and most is not None:
            return fewest, -most
    return 0.0, total / read_share


def _total_error(table: ContentTable, times: NDArray[np.int64]) -> float:
    """Return the standard error of the cells seen, each content once in a piece."""
    spread = max(table.pair_squares - table.pair_cells**2 / max(table.piece_count, 1), 0.0) * table.chance**2
    is_seldom = table.pieces <= times[-1]
    drawn = float(((table.cells * table.pieces)[is_seldom] ** 2).sum()) * (1.0 - table.chance)
    return sqrt(spread + drawn)


def count_bounds(
    counts: NDArray[np.float64], clusters: NDArray[np.float64], deviations: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what the expectation of each count may be, when cells come and go in clusters of a size.

    Source: the score interval of a Poisson mean; Garwood (1936) compares it with the exact one.

    >>> low, high = count_bounds(np.array([0.0, 400.0]), np.array([1.0, 4.0]), 2.0)
    >>> low.round(0).tolist(), high.round(0).tolist()
    ([0.0, 328.0], [4.0, 488.0])
    """
    groups = counts / clusters
    middle, half = groups + deviations**2 / 2, deviations * np.sqrt(groups + deviations**2 / 4)
    return np.maximum(middle - half, 0.0) * clusters, (middle + half) * clusters


def copies_grid(most: float) -> NDArray[np.float64]:
    """Return numbers of copies from 1 to ``most``: each small one, then in growing steps, float64 [n]."""
    grid = [float(copies) for copies in range(1, _EXACT_COPIES + 1)]
    while grid[-1] < most:
        grid.append(float(round(grid[-1] * _GROWTH)))
    return np.array(grid)


def seen_chances(copies: NDArray[np.float64], read_share: float, often: int) -> NDArray[np.float64]:
    """Return the chance of so many copies to be seen 1, 2, ... ``often`` times: binomial, float64 [times, copies].

    >>> seen_chances(np.array([2.0]), 0.5, 2).round(3).tolist()
    [[0.5], [0.25]]
    """
    yes, no = log(read_share), log1p(-read_share)

    def chance(times: int, count: float) -> float:
        if times > count:
            return -inf
        ways = lgamma(count + 1) - lgamma(times + 1) - lgamma(count - times + 1)
        return ways + times * yes + (count - times) * no

    return np.exp([[chance(times, count) for count in copies] for times in range(1, often + 1)])
