"""Fewer points that draw the same line: M4 keeps of every bucket its first, lowest, highest and last sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

POINTS_PER_BUCKET = 4


def m4_indices(values: NDArray[np.floating[Any]], bucket_count: int) -> NDArray[np.int64]:
    """Which samples to keep so that a line over ``bucket_count`` pixels looks as it does with all of them.

    A bucket without any measured value keeps two of its samples, so that the gap stays; a gap inside a bucket that
    has measured values is narrower than a pixel and is lost.

    Args:
        values: [k, n] in any unit; NaN is "not measured".
        bucket_count: buckets of equal length, at least 1; the last may be shorter.

    Returns:
        int64 [k, m], ascending along each row, with repetitions where one sample is several of the four; all n
        samples where that is not more.

    Source: U. Jugel, Z. Jerzak, G. Hackenbroich, V. Markl, "M4: A Visualization-Oriented Time Series Data
    Aggregation", PVLDB 7(10), 2014, section 4.
    """
    rows, count = values.shape
    if count <= bucket_count * POINTS_PER_BUCKET:
        return np.broadcast_to(np.arange(count), (rows, count))
    width = -(-count // bucket_count)
    buckets = -(-count // width)
    padded = np.full((rows, buckets * width), np.nan)
    padded[:, :count] = values
    cells = padded.reshape(rows, buckets, width)
    known = np.isfinite(cells)
    lowest = np.where(known, cells, np.inf).argmin(axis=2)
    highest = np.where(known, cells, -np.inf).argmax(axis=2)
    first = known.argmax(axis=2)
    last = width - 1 - known[:, :, ::-1].argmax(axis=2)
    kept = np.stack((first, lowest, highest, last), axis=2)
    kept += (np.arange(buckets) * width)[np.newaxis, :, np.newaxis]
    indices: NDArray[np.int64] = np.sort(np.minimum(kept, count - 1).reshape(rows, -1), axis=1)
    return indices


def thinned(values: NDArray[np.floating[Any]], bucket_count: int) -> list[NDArray[np.int64]]:
    """`m4_indices` of values [k, n] without the repetitions: k arrays of int64, of different lengths."""
    indices = m4_indices(values, bucket_count)
    fresh = np.ones(indices.shape, dtype=bool)
    fresh[:, 1:] = indices[:, 1:] != indices[:, :-1]
    return [row[keep] for row, keep in zip(indices, fresh, strict=True)]
