"""Arithmetic on rows against NumPy and, for windows of time, against integrals in plain Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from leadline.core.statistics.rows import (
    Fold,
    row_extents,
    row_means,
    row_quantile,
    row_quantiles,
    row_span_means,
    row_window_means,
    rows_by_owner,
)

S = 1_000_000_000
SINGLE = st.floats(-(2.0**30), 2.0**30, width=32)
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
Matrix = NDArray[np.floating[Any]]


@contextmanager
def of_nothing() -> Iterator[None]:
    """NumPy warns of rows that were never measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def matrices(dtype: type[np.floating[Any]]) -> st.SearchStrategy[Matrix]:
    measured = st.floats(-1e9, 1e9) if dtype is np.float64 else SINGLE
    shape = array_shapes(min_dims=2, max_dims=2, max_side=12)
    whole = arrays(dtype, shape, elements=measured | st.just(np.nan))
    return st.builds(laid_out, whole, st.sampled_from(["rows", "columns", "part", "every other"]))


def laid_out(values: Matrix, order: str) -> Matrix:
    """The same numbers as they may lie in memory."""
    if order == "columns":
        return np.asfortranarray(values)
    if order == "part":
        return np.pad(values, ((1, 1), (2, 1)))[1:-1, 2:-1]
    if order == "every other":
        return np.repeat(values, 2, axis=1)[:, ::2]
    return values


@DTYPES
@given(data=st.data())
def test_a_quantile_is_to_the_bit_that_of_numpy(dtype: type, data: st.DataObject) -> None:
    values = data.draw(matrices(dtype))
    share = data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0]))
    with of_nothing():
        expected = np.nanquantile(values, share, axis=1)
    assert row_quantile(values, share).tobytes() == expected.astype(dtype).tobytes()


@DTYPES
@given(data=st.data())
def test_several_quantiles_are_those_of_numpy(dtype: type, data: st.DataObject) -> None:
    values = data.draw(matrices(dtype))
    shares = data.draw(st.lists(st.floats(0.0, 1.0), max_size=4))
    several = row_quantiles(values, shares)
    assert several.shape == (len(values), len(shares))
    assert several.dtype == dtype
    for at, share in enumerate(shares):
        with of_nothing():
            np.testing.assert_array_equal(several[:, at], np.nanquantile(values, share, axis=1).astype(dtype))


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(ValueError, match="expected numbers from 0 to 1"):
        row_quantiles(np.zeros((1, 1)), [0.5, 50.0])


def test_numbers_of_samples_that_differ_are_refused() -> None:
    three, two = np.zeros((1, 3)), np.zeros(2, dtype=np.int64)
    with pytest.raises(TypeError, match="differ in number"):
        row_means(three, np.ones(2, dtype=bool))
    with pytest.raises(TypeError, match="differ in number"):
        row_window_means(three, (two, two), (two, two))
    with pytest.raises(TypeError, match="differ in number"):
        rows_by_owner(three, two, 1, "sum")


@DTYPES
@given(data=st.data())
def test_means_are_those_of_numpy(dtype: type, data: st.DataObject) -> None:
    values = data.draw(matrices(dtype))
    count = values.shape[1]
    flags = data.draw(arrays(bool, count))
    first = data.draw(st.integers(0, count))
    spans = [(0, count), (first, count), (first, first)]
    wide = values.astype(float)
    with of_nothing():
        whole, flagged = np.nanmean(wide, axis=1), np.nanmean(wide[:, flags], axis=1)
        spanned = np.stack([np.nanmean(wide[:, begin:end], axis=1) for begin, end in spans], axis=1)
    np.testing.assert_allclose(row_means(values), whole, rtol=1e-12, atol=1e-5)
    np.testing.assert_allclose(row_means(values, flags), flagged, rtol=1e-12, atol=1e-5)
    np.testing.assert_allclose(row_span_means(values, spans), spanned, rtol=1e-12, atol=1e-5)


@DTYPES
@given(data=st.data())
def test_extents_are_those_of_numpy(dtype: type, data: st.DataObject) -> None:
    values = data.draw(matrices(dtype))
    low, high = row_extents(values)
    assert low.dtype == high.dtype == dtype
    with of_nothing():
        np.testing.assert_array_equal(low, np.nanmin(values, axis=1))
        np.testing.assert_array_equal(high, np.nanmax(values, axis=1))


@DTYPES
@pytest.mark.parametrize(
    ("fold", "combine"), [("sum", np.nansum), ("mean", np.nanmean), ("lowest", np.nanmin), ("highest", np.nanmax)]
)
@given(data=st.data())
def test_rows_of_an_owner_are_combined_at_each_time(
    dtype: type, fold: Fold, combine: Callable[..., Any], data: st.DataObject
) -> None:
    values = data.draw(matrices(dtype))
    owner_count = data.draw(st.integers(1, 4))
    owners = data.draw(arrays(np.int64, len(values), elements=st.integers(-1, owner_count - 1)))
    expected = np.full((owner_count, values.shape[1]), np.nan)
    for owner in range(owner_count):
        parts = values[owners == owner].astype(float)
        some = ~np.isnan(parts).all(axis=0) if len(parts) else np.zeros(values.shape[1], dtype=bool)
        if some.any():
            expected[owner, some] = combine(parts[:, some], axis=0)
    np.testing.assert_allclose(rows_by_owner(values, owners, owner_count, fold), expected, rtol=1e-12, atol=1e-5)


def mean_within(series: list[float], bounds: list[tuple[int, int]], window: tuple[int, int]) -> float:
    """The mean of a series over a window, sample by sample; NaN where less than half of it was measured."""
    area = measured = 0.0
    for value, (start, end) in zip(series, bounds, strict=True):
        overlap = max(min(end, window[1]) - max(start, window[0]), 0) / S
        if np.isfinite(value):
            area += value * overlap
            measured += overlap
    enough = measured > 0.0 and measured >= 0.5 * (window[1] - window[0]) / S
    return area / measured if enough else float("nan")


@DTYPES
@given(data=st.data())
def test_means_over_windows_are_weighted_by_time(dtype: type, data: st.DataObject) -> None:
    values = data.draw(matrices(dtype)) % 1000.0
    count = values.shape[1]
    steps = data.draw(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=count, max_size=count))
    moments = np.cumsum(np.ravel(steps)) * S
    starts, ends = moments[0::2], moments[1::2]
    spans = data.draw(st.lists(st.tuples(st.integers(-20, 250), st.integers(1, 40)), max_size=5))
    begins = np.array([begin * S for begin, _ in spans], dtype=np.int64)
    stops = begins + np.array([length * S for _, length in spans], dtype=np.int64)
    bounds = list(zip(starts.tolist(), ends.tolist(), strict=True))
    windows = list(zip(begins.tolist(), stops.tolist(), strict=True))
    expected = [[mean_within(row.tolist(), bounds, window) for window in windows] for row in values]
    means = row_window_means(values, (starts, ends), (begins, stops))
    assert means.shape == (len(values), len(spans))
    np.testing.assert_allclose(means, np.reshape(expected, means.shape), rtol=1e-9, atol=1e-6)


def test_what_was_never_measured_has_no_number() -> None:
    nothing = np.full((2, 3), np.nan, dtype=np.float32)
    assert np.isnan(row_quantile(nothing, 0.5)).all()
    assert np.isnan(row_means(nothing)).all()
    assert np.isnan(row_extents(nothing)[1]).all()
    assert np.isnan(rows_by_owner(nothing, np.array([0, -1]), 2, "sum")).all()
    none = np.array([], dtype=np.int64)
    assert np.isnan(row_window_means(np.empty((2, 0)), (none, none), (np.array([0]), np.array([S])))).all()
    assert row_quantiles(np.empty((0, 3)), [0.5]).shape == (0, 1)
