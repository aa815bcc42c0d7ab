from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.contracts.importer import Request
from leadline.core.io.clock import assumed_date, rolled_over, synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.errors import UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.units import Quantity, factor, show
from leadline.faces.describing import describe, sparkline


def test_units_convert_exactly() -> None:
    assert factor("mib_per_s", "kib_per_s") == 1024.0
    assert Quantity(512, "sectors").to("kib").value == 256.0
    assert factor("mbit_per_s", "kbit_per_s") == 1000.0


@pytest.mark.parametrize(("one", "other"), [("ms", "mib"), ("ms", "parsec")])
def test_units_of_different_things_do_not_convert(one: str, other: str) -> None:
    with pytest.raises(UsageError, match="no conversion"):
        factor(one, other)


def test_not_measured_is_said() -> None:
    assert show(math.nan, "ms") == "not measured"
    assert show(1234.5, "per_s") == "1,234/s"
    assert show(0.5, "pct") == "0.5 %"


@given(st.lists(st.lists(st.integers(0, 4000), min_size=1, max_size=50), min_size=1, max_size=5), st.floats(0, 1))
def test_percentiles_of_merged_histograms_are_those_of_pooled_samples(parts: list[list[int]], share: float) -> None:
    width = 10
    histograms = []
    for part in parts:
        buckets, counts = np.unique(np.array(part) // width, return_counts=True)
        histograms.append(Histogram.of(buckets * width, (buckets + 1) * width, counts, "ms"))
    merged = Histogram.merged(histograms)
    pooled = sorted(value for part in parts for value in part)
    rank = max(math.ceil(share * len(pooled)), 1)
    low, high = merged.quantile_bounds(share)
    assert low <= pooled[rank - 1] < high
    assert merged.total == len(pooled)


def test_histograms_of_different_units_do_not_merge() -> None:
    with pytest.raises(ValueError, match="units"):
        Histogram.merged([Histogram.of([0], [1], [1], "ms"), Histogram.of([0], [1], [1], "bytes")])


def test_an_empty_histogram_has_no_quantile() -> None:
    with pytest.raises(ValueError, match="no quantile"):
        Histogram.of([], [], [], "ms").quantile(0.5)


def test_an_open_bucket_gives_its_lower_bound() -> None:
    assert Histogram.of([100], [math.inf], [5], "ms").quantile(0.99) == 100.0


def test_statistics_leave_out_what_was_not_measured() -> None:
    marks = describe(np.array([1.0, np.nan, 3.0]))
    assert (marks["count"], marks["mean"], marks["max"]) == (2.0, 2.0, 3.0)
    assert marks["measured_share"] == pytest.approx(2 / 3)
    assert math.isnan(describe(np.array([np.nan]))["mean"])


@given(st.lists(st.floats(allow_infinity=False, width=32), max_size=200))
def test_a_sparkline_never_fails_and_never_grows(values: list[float]) -> None:
    assert len(sparkline(np.array(values, dtype=np.float64), 20)) <= 20


def test_times_with_and_without_zone() -> None:
    naive = datetime(2026, 1, 1, 12, 0, 0)  # noqa: DTZ001 - the case under test
    assert to_ns(naive, Request()) == to_ns(naive.replace(tzinfo=UTC), Request())
    berlin = to_ns(naive, Request(timezone="Europe/Berlin"))
    assert berlin == to_ns(naive.replace(tzinfo=timezone(timedelta(hours=1))), Request())


def test_a_wrong_zone_or_date_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    with pytest.raises(UsageError, match="IANA"):
        to_ns(datetime(2026, 1, 1), Request(timezone="Mars/Base"))  # noqa: DTZ001 - the case under test
    with pytest.raises(UsageError, match="ISO date"):
        assumed_date(Source("a", path), Request(date="yesterday"))


def test_midnight_is_passed() -> None:
    hour = 3_600_000_000_000
    assert rolled_over([22 * hour, 23 * hour, 0, hour]).tolist() == [22 * hour, 23 * hour, 24 * hour, 25 * hour]


def test_synthetic_times_end_where_told() -> None:
    assert synthetic_times(3, 1.0, 10_000_000_000).tolist() == [8_000_000_000, 9_000_000_000, 10_000_000_000]
