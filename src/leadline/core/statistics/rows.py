"""Arithmetic on matrices of series, one series a row: quantiles, means, extents, and rows of one owner as one.

NaN is "not measured" and is left out; a row, span or window without a measured sample has NaN. Matrices are of single
or double precision, sums are always double. NumPy goes row by row in Python for most of this, which takes a hundred
times as long for a host's thousands of series.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from leadline._core import (
    rows_extents,
    rows_folded,
    rows_means,
    rows_quantiles,
    rows_span_means,
    rows_window_means,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Fold = Literal["sum", "mean", "lowest", "highest"]


def row_quantile(values: NDArray[np.floating[Any]], share: float) -> NDArray[np.floating[Any]]:
    """Return the quantile of every row, exactly as ``numpy.nanquantile(values, share, axis=1)`` has it.

    Args:
        values: float [k, n].
        share: 0 for the lowest sample, 1 for the highest.

    Returns:
        [k] in the unit and the precision of the values.
    """
    return row_quantiles(values, (share,))[:, 0]


def row_quantiles(values: NDArray[np.floating[Any]], shares: Sequence[float]) -> NDArray[np.floating[Any]]:
    """Return several quantiles of every row; for more than one this is faster than one call of `row_quantile` each.

    Args:
        values: float [k, n].
        shares: m of them; 0 for the lowest sample, 1 for the highest.

    Returns:
        [k, m] in the unit and the precision of the values.

    Raises:
        ValueError: a share is not from 0 to 1.
    """
    if not all(0.0 <= share <= 1.0 for share in shares):
        message = f"shares are {list(shares)}, expected numbers from 0 to 1"
        raise ValueError(message)
    return rows_quantiles(with_whole_rows(values), list(shares))


def row_means(values: NDArray[np.floating[Any]], flags: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return the mean of every row.

    Args:
        values: float [k, n].
        flags: bool [n], the samples that count; all when None.

    Returns:
        [k] in the unit of the values.
    """
    chosen = None if flags is None else np.ascontiguousarray(flags)
    return rows_means(with_whole_rows(values), chosen)


def row_span_means(values: NDArray[np.floating[Any]], spans: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Return the mean of every row over spans of samples.

    Args:
        values: float [k, n].
        spans: m pairs of the first sample of a span and the first one after it, from 0 to n.

    Returns:
        [k, m] in the unit of the values.
    """
    return rows_span_means(with_whole_rows(values), list(spans))


def row_window_means(
    values: NDArray[np.floating[Any]],
    bounds: tuple[NDArray[np.int64], NDArray[np.int64]],
    windows: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> NDArray[np.float64]:
    """Return the mean of every row over windows of time, weighted by time.

    Args:
        values: float [k, n].
        bounds: start and end, int64 [n] each, of the interval that each sample stands for, nanoseconds; ascending.
        windows: start and end, int64 [m] each, of the windows, nanoseconds; they may overlap or leave gaps.

    Returns:
        [k, m] in the unit of the values; NaN where less than half of a window was measured.
    """
    starts, ends = (np.ascontiguousarray(moments) for moments in bounds)
    begins, stops = (np.ascontiguousarray(moments) for moments in windows)
    return rows_window_means(with_whole_rows(values), (starts, ends), (begins, stops))


def row_extents(values: NDArray[np.floating[Any]]) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Return the lowest and the highest sample of every row, [k] each, in the precision of the values [k, n]."""
    return rows_extents(with_whole_rows(values))


def rows_by_owner(
    values: NDArray[np.floating[Any]], owners: NDArray[np.integer[Any]], owner_count: int, fold: Fold
) -> NDArray[np.float64]:
    """Return the rows of each owner as one row: at each time their sum, mean, lowest or highest.

    Args:
        values: float [k, n].
        owners: int [k], from 0 to ``owner_count``; rows with a negative owner are left out.
        owner_count: how many owners there are.
        fold: the worst of several parts is "highest" where high is bad and "lowest" where low is bad.

    Returns:
        [owners, n] in the unit of the values; NaN where no row of an owner was measured.
    """
    whole = np.ascontiguousarray(owners, dtype=np.int64)
    return rows_folded(with_whole_rows(values), whole, owner_count, fold)


def with_whole_rows(values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return a matrix of single or double precision whose samples of a row lie side by side; itself where it is one."""
    values = values[:]  # a meter that looks on counts this
    known = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    is_whole = known.strides[1] == known.itemsize or known.shape[1] <= 1
    return known if is_whole and known.flags.aligned else np.ascontiguousarray(known)


def median_of_sorted(ordered: NDArray[Any]) -> float:
    """The median of samples [n] in ascending order, n at least 1; ``numpy.median`` takes five times as long for few."""
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)
