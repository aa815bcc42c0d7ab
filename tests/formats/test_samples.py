"""Samples in any order become series; parts make one metric."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.formats.samples import Samples, epoch_ns, iso_ns

HOST = Entity.parse("host:esx01")
SUM, MAX = "vsan_client_iops", "vsan_congestion_count"


def built(samples: Samples) -> Capture:
    builder = CaptureBuilder("x", "test", "test")
    samples.into(builder)
    return builder.build()


def row(samples: Samples, metric: str) -> list[float]:
    (group,) = built(samples).of(metric)
    found = group.row(HOST)
    assert found is not None
    return [float(value) for value in found]


def test_a_sum_is_known_where_every_part_is() -> None:
    samples = Samples(frozenset({SUM}))
    samples.extend(SUM, HOST, [10, 20, 30], [1, 2, 3], "read")
    samples.extend(SUM, HOST, [20, 30, 40], [10, float("nan"), 30], "write")
    np.testing.assert_array_equal(row(samples, SUM), [np.nan, 12, np.nan, np.nan])


def test_of_other_parts_the_highest_counts() -> None:
    samples = Samples()
    samples.extend(MAX, HOST, [10, 20], [1, 9], "read")
    samples.extend(MAX, HOST, [10, 20], [float("nan"), 4], "write")
    assert row(samples, MAX) == [1, 9]


def test_a_moment_that_is_there_twice_keeps_its_last_value() -> None:
    samples = Samples()
    for time_ns, value in ((20, 1.0), (10, 2.0), (20, 3.0)):
        samples.put(MAX, HOST, time_ns, value)
    assert row(samples, MAX) == [2.0, 3.0]
    assert [(w.code, w.count) for w in built(samples).sources[0].warnings] == [("twice", 1)]


def test_no_samples_are_no_series() -> None:
    assert built(Samples()).groups == []


@given(st.dictionaries(st.integers(0, 10**18), st.floats(0, 1e9), min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(held: dict[int, float], random: object) -> None:
    shuffled = list(held.items())
    getattr(random, "shuffle")(shuffled)  # noqa: B009 - Hypothesis gives it no type
    samples = Samples()
    for time_ns, value in shuffled:
        samples.put(MAX, HOST, time_ns, value)
    assert row(samples, MAX) == [held[time_ns] for time_ns in sorted(held)]


def test_times() -> None:
    assert iso_ns("2026-11-20T08:30:00.000001Z") == 1795163400_000001_000
    assert iso_ns("0001-01-01") is None
    assert epoch_ns(float("nan"), 1) is None
    assert epoch_ns(1e300, 1) is None
    assert epoch_ns(1795163400, 10**9) == 1795163400 * 10**9
