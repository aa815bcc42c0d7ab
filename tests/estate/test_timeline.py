"""Recordings with different sample times are compared over the same windows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.capture import Capture, CaptureBuilder, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.timeline import ever_above, host_groups, on_same_windows, whole_of_parts, window_mean
from tests.estate import oracle_timeline

GUEST = Entity(EntityKind.GUEST, "db01")
HOST = Entity(EntityKind.HOST, "esx01")
NAN = float("nan")
NUMBERS = st.one_of(st.just(NAN), st.floats(-1e6, 1e6, width=32))


def group_of(values: list[float], step_s: float, first_s: float | None = None) -> SeriesGroup:
    first = step_s if first_s is None else first_s
    times = (np.array([first + step_s * i if i else first for i in range(len(values))]) * 1e9).astype(np.int64)
    return SeriesGroup("guest_cpu_busy_pct", [GUEST], times, np.array([values]), step_s)


def means(group: SeriesGroup, *windows: tuple[float, float]) -> list[float]:
    starts, ends = ((np.array(side) * 1e9).astype(np.int64) for side in zip(*windows, strict=True))
    return [float(value) for value in window_mean(group, starts, ends)[0]]


@given(
    st.lists(st.integers(1, 10), min_size=1, max_size=12),
    st.data(),
    st.lists(st.tuples(st.integers(-5, 60), st.integers(0, 30)), max_size=5),
    st.sampled_from([np.float32, np.float64]),
)
def test_means_over_windows_are_those_of_the_oracle(
    steps: list[int], data: st.DataObject, windows: list[tuple[int, int]], dtype: type[np.floating[Any]]
) -> None:
    size = 2 * len(steps)
    values = np.array(data.draw(st.lists(NUMBERS, min_size=size, max_size=size)), dtype=dtype).reshape(2, -1)
    times = np.cumsum(steps) * 1_000_000_000
    group = SeriesGroup("guest_cpu_busy_pct", [GUEST, HOST], times, values, float(min(steps)))
    starts = np.array([start for start, _ in windows], dtype=np.int64) * 1_000_000_000
    ends = starts + np.array([length for _, length in windows], dtype=np.int64) * 1_000_000_000
    np.testing.assert_allclose(
        window_mean(group, starts, ends), oracle_timeline.window_mean(group, starts, ends), rtol=1e-9, atol=1e-6
    )


def test_mean_over_whole_samples() -> None:
    assert means(group_of([10, 20, 30, 40], 1), (0, 2), (2, 4)) == pytest.approx([15, 35])


def test_mean_weighs_a_sample_by_the_part_of_it_within_the_window() -> None:
    # 0.5 s of 10 and 1 s of 20 and 0.5 s of 30
    assert means(group_of([10, 20, 30], 1), (0.5, 2.5)) == pytest.approx([20])
    # 0.5 s of 10, then 1 s of 40
    assert means(group_of([10, 40], 1), (0.5, 2)) == pytest.approx([30])


def test_not_measured_does_not_count_as_zero() -> None:
    assert means(group_of([10, NAN, 30, NAN], 1), (0, 4)) == pytest.approx([20])


def test_window_measured_for_less_than_half_is_not_measured() -> None:
    shown = means(group_of([10, NAN, NAN], 1), (0, 2), (0, 3))
    assert shown[0] == pytest.approx(10)
    assert np.isnan(shown[1])


def test_window_outside_the_recording_is_not_measured() -> None:
    assert np.isnan(means(group_of([10, 20], 1), (5, 9), (-9, -1))).all()


def test_gap_in_the_recording_is_not_bridged() -> None:
    group = group_of([10, 20, 90], 1)
    times = group.times_ns.copy()
    times[2] = 60_000_000_000
    gapped = SeriesGroup(group.metric, group.entities, times, group.values, 1)
    assert np.isnan(means(gapped, (10, 50))).all()
    assert means(gapped, (59, 60)) == pytest.approx([90])


def test_single_sample_of_unknown_interval_covers_nothing() -> None:
    assert np.isnan(means(group_of([10], NAN, first_s=5), (0, 10))).all()


def test_the_coarser_recording_gives_the_windows() -> None:
    fine, coarse = group_of([10, 20, 30, 40], 1), group_of([7, 8], 2)
    for one, other in ((fine, coarse), (coarse, fine)):
        grid, of_one, of_other = on_same_windows(one, other)
        assert grid is coarse
        by_step = {one.interval_s: of_one[0], other.interval_s: of_other[0]}
        assert by_step[1] == pytest.approx([15, 35])
        assert by_step[2] == pytest.approx([7, 8])


def test_one_sample_of_unknown_interval_is_comparable_with_nothing() -> None:
    single, many = group_of([50], NAN, first_s=2), group_of([1, 2, 3], 1)
    for one, other in ((single, many), (many, single)):
        grid, of_one, of_other = on_same_windows(one, other)
        assert grid is many
        assert np.isnan(of_one if one is single else of_other).all()


def test_host_recorded_per_cpu_has_the_mean_of_its_cpus() -> None:
    builder = CaptureBuilder("x", "x", "x")
    times = np.array([1, 2], dtype=np.int64) * 10**9
    for name, values in (("0", [10, 90]), ("1", [30, NAN])):
        builder.add_series("host_cpu_util_pct", Entity(EntityKind.PCPU, name, HOST), times, np.array(values))
    meta = RuleMeta("CPU000", Layer.HYPERVISOR_CPU, Severity.LOW, (), ())
    groups = host_groups(RuleContext("x", meta, "", builder.build()), "host_cpu_util_pct")
    assert [list(group.entities) for group in groups] == [[HOST]]
    assert list(groups[0].values[0]) == [20, 90]


def test_host_value_of_the_recording_wins_over_the_mean_of_cpus() -> None:
    builder = CaptureBuilder("x", "x", "x")
    times = np.array([1, 2], dtype=np.int64) * 10**9
    builder.add_series("host_cpu_util_pct", Entity(EntityKind.PCPU, "0", HOST), times, np.array([1, 1]))
    builder.add_series("host_cpu_util_pct", HOST, times, np.array([70, 71]))
    meta = RuleMeta("CPU000", Layer.HYPERVISOR_CPU, Severity.LOW, (), ())
    groups = host_groups(RuleContext("x", meta, "", builder.build()), "host_cpu_util_pct")
    assert [list(group.values[0]) for group in groups] == [[70, 71]]


def test_whole_of_parts_without_any_measured_part_is_not_measured() -> None:
    group = group_of([NAN, 5], 1)
    whole = whole_of_parts(group, EntityKind.GUEST, "highest")
    assert np.isnan(whole.values[0, 0])
    assert whole.values[0, 1] == 5


@given(
    values=st.lists(st.floats(0, 100), min_size=2, max_size=30),
    step_s=st.sampled_from([1.0, 5.0, 20.0]),
    cuts=st.lists(st.integers(1, 99).map(lambda percent: percent / 100), min_size=1, max_size=5, unique=True),
)
def test_means_of_a_partition_weigh_up_to_the_mean_of_the_whole(
    values: list[float], step_s: float, cuts: list[float]
) -> None:
    group = group_of(values, step_s)
    length = step_s * len(values)
    edges = [0.0, *(length * cut for cut in sorted(cuts)), length]
    parts = list(pairwise(edges))
    weighed = sum(mean * (end - start) for mean, (start, end) in zip(means(group, *parts), parts, strict=True))
    assert weighed / length == pytest.approx(float(np.mean(values)), abs=1e-4)


def two_recordings(guest_start_s: float, clock_known: bool = True) -> Capture:
    """A guest recorded every second for 40 s at 60 %, and its VM every 5 s for two minutes at 20 % ready."""
    guest = CaptureBuilder("vmstat.txt", "vmstat", "vmstat")
    times = ((guest_start_s + 1 + np.arange(40)) * 1e9).astype(np.int64)
    guest.add_series("guest_cpu_busy_pct", GUEST, times, np.full(40, 60.0))
    host = CaptureBuilder("esxtop.csv", "esxtop", "esxtop")
    vm = Entity(EntityKind.VM, "db01", HOST)
    host.add_series("cpu_ready_pct", vm, ((5 + 5 * np.arange(24)) * 1e9).astype(np.int64), np.full(24, 20.0))
    return Capture.merged([guest.build(clock_known=clock_known), host.build()])


def contention_seen(capture: Capture) -> list[Finding]:
    return list(diagnose(capture, rules=["guest-cpu-looks-idle-host-saturated"]).findings)


def test_guest_and_hypervisor_are_compared_where_their_recordings_overlap() -> None:
    (finding,) = contention_seen(two_recordings(guest_start_s=30))
    assert str(finding.entity) == "host:esx01/vm:db01"
    assert [(w.start_ns / 1e9, w.end_ns / 1e9) for w in finding.windows] == [(30, 70)]
    assert [(e.metric, e.value, e.source) for e in finding.evidence] == [
        ("guest_cpu_busy_pct", 60.0, "vmstat.txt"),
        ("cpu_ready_pct", 20.0, "esxtop.csv"),
    ]
    assert finding.guessed == ()


def test_recordings_of_different_times_are_not_compared() -> None:
    assert contention_seen(two_recordings(guest_start_s=500)) == []


def test_an_assumed_clock_is_said() -> None:
    (finding,) = contention_seen(two_recordings(guest_start_s=30, clock_known=False))
    assert finding.guessed == ("the clock of vmstat.txt",)


def test_series_that_never_exceed_a_limit_are_left_out() -> None:
    times = np.array([1, 2], dtype=np.int64)
    entities = [Entity(EntityKind.VCPU, name) for name in ("at", "above", "unknown")]
    group = SeriesGroup("cpu_ready_pct", entities, times, np.array([[5, 5], [1, 5.1], [NAN, NAN]]), 5)
    above = ever_above(group, 5)
    assert above is not None
    assert [entity.name for entity in above.entities] == ["above"]
    assert ever_above(group, 6) is None
