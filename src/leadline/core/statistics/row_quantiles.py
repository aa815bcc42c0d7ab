"""Quantiles that are asked for so often that NumPy's own are too slow: of each row of a matrix, of few samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def row_quantiles(values: NDArray[np.floating[Any]], share: float) -> NDArray[np.floating[Any]]:
    """The quantile of every row, exactly as ``numpy.nanquantile(values, share, axis=1)`` has it.

    NumPy goes row by row in Python there, which takes a hundred times as long for a host's thousands of series.

    Args:
        values: float [k, n]; NaN is "not measured".
        share: 0 for the lowest sample, 1 for the highest.

    Returns:
        float [k] in the unit of the values; NaN for a row without any measured sample.
    """
    counts = np.count_nonzero(~np.isnan(values), axis=1)
    quantiles = np.full(len(values), np.nan, dtype=values.dtype)
    # NaN sorts to the end: rows with as many samples are a matrix without gaps.
    ordered = np.sort(values, axis=1) if (counts < values.shape[1]).any() else values
    for count in np.unique(counts[counts > 0]).tolist():
        rows = counts == count
        quantiles[rows] = np.quantile(ordered[rows, :count], share, axis=1)
    return quantiles


def median_of_sorted(ordered: NDArray[np.floating[Any]]) -> float:
    """The median of samples [n] in ascending order, n at least 1; ``numpy.median`` takes five times as long for few."""
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)
