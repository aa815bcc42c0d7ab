"""Roll-ups of the sample store: the numbers of the samples, whatever is kept of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from leadline.core.model.entities import EntityColumn
from leadline.core.model.errors import UsageError
from leadline.stores._samples.catalogue import Segment
from leadline.stores._samples.cells import cells_of, key_of, value_of
from leadline.stores._samples.pieces import StoredPiece
from leadline.stores.samples import Retention, SampleStore
from tests.stores.test_samples import EVER, START_NS, VMS, S, capture_of, series

DAY_S = 86_400
VALUES = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1.0, 7.25, float("nan")])


def day_of(seed: int, every_s: int = 5, days: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    times_s = np.arange(0, days * DAY_S, every_s)
    shape = (5, len(times_s))
    values = np.rint(np.exp(rng.normal(3, 1, shape)) * (rng.random(shape) < 0.7))
    values[1] = rng.normal(0, 5, len(times_s))
    values[2, 100:200] = np.nan
    values[3] = np.rint(values[3]) / 100
    values[4] = 0.0
    return times_s, values.astype(np.float32)


def filled(
    folder: Path, keep: Retention | None = None, *, days: int = 1, after_s: int = 4000, every_s: int = 5
) -> SampleStore:
    """A store with whole days of samples, and one sample that completes them."""
    store = SampleStore(folder, keep=keep)
    times_s, values = day_of(1, every_s, days)
    for part in np.array_split(np.arange(len(times_s)), 10 * days):
        store.append(capture_of(values[:, part], times_s[part]))
        store.maintain(whole=True)
    store.append(capture_of(np.ones((5, 1)), [days * DAY_S + after_s], "other"))
    store.maintain(whole=True)
    return store


def assert_rolled_up(store: SampleStore, step_s: int, times_s: np.ndarray, values: np.ndarray) -> None:
    rolled_up = store.rolled_up("cpu_ready_pct", START_NS, START_NS + (int(times_s[-1]) + 1) * S, step_s)
    rows = [list(rolled_up.entities).index(vm) for vm in VMS]
    p95, least = rolled_up.quantile(0.95), rolled_up.quantile(0.0)
    for column, start_ns in enumerate(rolled_up.times_ns.tolist()):
        inside = (START_NS // S + times_s) // step_s == start_ns // S // step_s
        for row, samples in zip(rows, values[:, inside].astype(np.float64), strict=True):
            measured = samples[~np.isnan(samples)]
            assert rolled_up.count[row, column] == len(measured)
            if not len(measured):
                assert np.isnan([rolled_up.mean[row, column], rolled_up.minimum[row, column], p95[row, column]]).all()
                continue
            assert rolled_up.minimum[row, column] == measured.min()
            assert rolled_up.maximum[row, column] == measured.max()
            assert rolled_up.mean[row, column] == pytest.approx(measured.mean(), rel=1e-6, abs=1e-6)
            for quantiles, share in ((p95, 0.95), (least, 0.0)):
                exact = np.quantile(measured, share, method="lower")
                assert quantiles[row, column] == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("step_s", [60, 600, 1800, 7200, DAY_S, 420])
def test_roll_ups_are_of_the_samples(tmp_path: Path, step_s: int) -> None:
    with filled(tmp_path) as store:
        assert {segment.step_s for segment in store._files.catalogue.segments()} == {0, 7200, DAY_S}
        assert_rolled_up(store, step_s, *day_of(1))


@pytest.mark.parametrize("step_s", [60, 600, 1800, 7200, DAY_S])
def test_roll_ups_stay_when_raw_samples_go(tmp_path: Path, step_s: int) -> None:
    with filled(tmp_path, Retention(raw_s=3600), after_s=2 * 3600) as store:
        assert series(store) == {}
        assert_rolled_up(store, step_s, *day_of(1))
        warnings = store.read(*EVER).sources[-1].warnings
        assert warnings[0].code == "rolled-up"
        with pytest.raises(UsageError, match="raw samples of 2026-09-21 are gone"):
            store.rolled_up("cpu_ready_pct", START_NS, START_NS + DAY_S * S, 20)


def test_samples_far_apart_stay_where_their_cells_would_take_more_room(tmp_path: Path) -> None:
    """Of a sample a minute, ten minutes have ten: their lowest, highest, sum and sketch are larger than they."""
    keep = Retention(raw_s=3600, minute_s=DAY_S, ten_minutes_s=2 * DAY_S)
    with filled(tmp_path, keep, after_s=2 * 3600, every_s=60) as store:
        assert sorted(segment.step_s for segment in _segments_of_day(store)) == [0, 7200, DAY_S]
        assert_rolled_up(store, 600, *day_of(1, 60))
        store.append(capture_of(np.ones((5, 1)), [3 * DAY_S + 4000], "other"))
        store.maintain(whole=True)
        assert sorted(segment.step_s for segment in _segments_of_day(store)) == [7200, DAY_S]


def _segments_of_day(store: SampleStore) -> list[Segment]:
    return [one for one in store._files.catalogue.segments(["cpu_ready_pct"]) if one.day == START_NS // (DAY_S * S)]


def test_late_samples_are_rolled_up_too(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        times_s, values = day_of(1)
        late_s, late = np.array([32, 47, 4000 * 20 + 7]), np.full((5, 3), 1e6, dtype=np.float32)
        store.append(capture_of(late, late_s))
        order = np.argsort(np.append(times_s, late_s), kind="stable")
        whole = np.append(times_s, late_s)[order], np.hstack([values, late])[:, order]
        for _ in range(2):
            for step_s in (600, 7200):
                assert_rolled_up(store, step_s, *whole)
            store.maintain(whole=True)


def test_samples_that_come_when_their_day_is_gone_are_refused_and_counted(tmp_path: Path) -> None:
    with filled(tmp_path, Retention(raw_s=3600), after_s=2 * 3600) as store:
        store.append(capture_of(np.ones((5, 2)), [30, 90]))
        store.maintain(whole=True)
        assert store.status().refusals == 10
        assert_rolled_up(store, 600, *day_of(1))


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize(("start_s", "end_s"), [(0, DAY_S), (1000, 40_000), (0, 2 * DAY_S), (50_000, DAY_S + 30_000)])
def test_top_is_of_the_samples(tmp_path: Path, start_s: int, end_s: int, drop: bool) -> None:
    keep = Retention(raw_s=3600) if drop else Retention()
    with filled(tmp_path, keep, days=2, after_s=2 * 3600) as store:
        times_s, values = day_of(1, days=2)
        edges_s = (start_s // 600 * 600, -(-end_s // 600) * 600) if drop else (start_s, end_s)
        inside = values[:, (times_s >= edges_s[0]) & (times_s < edges_s[1])].astype(np.float64)
        span = START_NS + start_s * S, START_NS + end_s * S
        exact = {
            "p95": np.nanquantile(inside, 0.95, axis=1, method="lower"),
            "p50": np.nanquantile(inside, 0.5, axis=1, method="lower"),
            "max": np.nanmax(inside, axis=1),
            "min": np.nanmin(inside, axis=1),
            "mean": np.nanmean(inside, axis=1),
        }
        for statistic, expected in exact.items():
            ranked = store.top("cpu_ready_pct", *span, statistic=statistic, count=3)
            assert len(ranked) == 3
            assert [value for _, value in ranked] == pytest.approx(sorted(expected, reverse=True)[:3], rel=0.01)
            for vm, value in ranked:
                assert value == pytest.approx(expected[VMS.index(vm)], rel=0.01, abs=1e-5)
        with pytest.raises(UsageError, match="no such statistic"):
            store.top("cpu_ready_pct", *span, statistic="p999x")
        assert store.top("nothing", *span) == []


def test_all_is_dropped_in_time(tmp_path: Path) -> None:
    keep = Retention(raw_s=3600, minute_s=DAY_S, ten_minutes_s=2 * DAY_S, two_hours_s=3 * DAY_S)
    with filled(tmp_path, keep) as store:
        kept = []
        for days in (2, 3, 4, 5):
            store.append(capture_of(np.ones((5, 1)), [days * DAY_S + 4000], "other"))
            store.maintain(whole=True)
            segments = store._files.catalogue.segments(["cpu_ready_pct"])
            kept.append(sorted(segment.step_s for segment in segments))
        assert kept == [[600, 7200, DAY_S], [7200, DAY_S], [], []]
        assert len(list((tmp_path / "segments").iterdir())) == store.status().segment_count


def test_the_quota_drops_the_oldest_raw_samples_first(tmp_path: Path) -> None:
    with filled(tmp_path, days=3) as store:
        sizes = [s.size_bytes for s in store._files.catalogue.segments() if s.step_s == 0]
        whole = sum(s.size_bytes for s in store._files.catalogue.segments())
        store.keep = Retention(bytes_max=whole - sizes[0])
        store.maintain(whole=True)
        segments = store._files.catalogue.segments(["cpu_ready_pct"])
        first_day = {s.step_s for s in segments if s.start_ns == START_NS}
        assert first_day == {600, 7200, DAY_S}
        last_days = [s for s in segments if s.start_ns == START_NS + 2 * DAY_S * S]
        assert {s.step_s for s in last_days} == {0, 7200, DAY_S}
        assert sum(s.size_bytes for s in store._files.catalogue.segments()) <= store.keep.bytes_max
        assert_rolled_up(store, 600, *day_of(1, days=3))


def test_roll_ups_do_not_drive_out_the_samples_of_the_last_days(tmp_path: Path) -> None:
    """Noise is hardly smaller in cells: of a quota for two days, the last one is not what goes."""
    with filled(tmp_path, days=5) as store:
        sizes = {s.start_ns: s.size_bytes for s in store._files.catalogue.segments() if s.step_s == 0}
        store.keep = Retention(bytes_max=round(2.6 * max(sizes.values())))
        store.maintain(whole=True)
        segments = store._files.catalogue.segments()
        assert sum(segment.size_bytes for segment in segments) <= store.keep.bytes_max
        kept = {segment.start_ns: segment.step_s for segment in segments if 0 < segment.step_s <= 600}
        raw = {segment.start_ns for segment in segments if segment.step_s == 0}
        assert (START_NS + 3 * DAY_S * S, START_NS + 4 * DAY_S * S) == (max(kept), min(raw))
        times_s, values = day_of(1, days=5)
        assert_rolled_up(store, DAY_S, times_s, values)
        last = times_s >= 4 * DAY_S
        ranked = store.top("cpu_ready_pct", START_NS + 4 * DAY_S * S, START_NS + 5 * DAY_S * S, count=3)
        exact = np.nanquantile(values[:, last].astype(np.float64), 0.95, axis=1, method="lower")
        assert [value for _, value in ranked] == pytest.approx(sorted(exact, reverse=True)[:3], rel=0.01)
        assert store.top("cpu_ready_pct", START_NS + 5000 * S, START_NS + 9000 * S, statistic="max", count=3)


@given(values=hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12), elements=VALUES))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_cells_equal_numpy(values: np.ndarray) -> None:
    times_ns = np.arange(values.shape[1], dtype=np.int64) * 20 * S
    numbers = np.arange(len(values), dtype=np.int32)
    fine = cells_of(StoredPiece("m", numbers, times_ns, values, 20.0, "{}"), 60 * S)
    for cells, width in ((fine, 3), (fine.coarser(120 * S), 6), (fine.coarser(1 << 62), 100)):
        for column in range(len(cells.starts_ns)):
            for row in range(len(values)):
                inside = values[row, width * column : width * (column + 1)].astype(np.float64)
                inside = inside[~np.isnan(inside)]
                assert cells.count[row, column] == len(inside)
                if len(inside):
                    assert cells.lowest[row, column] == inside.min()
                    assert cells.highest[row, column] == inside.max()
                    assert cells.total[row, column] == pytest.approx(inside.sum())
                    for share in (0.0, 0.5, 0.95, 1.0):
                        exact = np.quantile(inside, share, method="lower")
                        assert cells.quantile(share)[row, column] == pytest.approx(exact, rel=0.01)


@given(st.floats(width=32, allow_nan=False))
def test_a_bucket_is_within_one_percent(value: float) -> None:
    middle = value_of(key_of(np.array([value], dtype=np.float32)))[0]
    assert middle == pytest.approx(value, rel=0.01, abs=0) or middle == value


def test_entities_of_one_column_are_one_object(tmp_path: Path) -> None:
    """So that rules see at once that metrics are of the same entities."""
    with SampleStore(tmp_path) as store:
        for metric in ("cpu_ready_pct", "cpu_costop_pct"):
            store.append(capture_of(np.ones((5, 3)), [0, 20, 40], metric))
        store.maintain(whole=True)
        first, second = store.read(*EVER).groups
        assert first.entities is second.entities
        assert isinstance(first.entities, EntityColumn)
