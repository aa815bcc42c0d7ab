from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leadline.core.io.parquet import KEY, load, save
from leadline.core.model.capture import Capture, CaptureBuilder, SeriesGroup, usual_interval_s
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind

GUEST = Entity(EntityKind.GUEST, "db01")
TIMES = np.array([10, 20, 30], dtype=np.int64) * 1_000_000_000


def sample(name: str = "a.txt") -> Capture:
    builder = CaptureBuilder(name, "iostat", "iostat")
    for device, level in (("sda", 1.0), ("sdb", 2.0)):
        entity = Entity(EntityKind.BLOCK_DEVICE, device, GUEST)
        builder.add_series("guest_disk_await_ms", entity, TIMES, np.array([level, np.nan, 3.0]), since_boot=True)
    builder.inventory.add(GUEST, name, cpu_count=4)
    builder.warn("cut", "the last row was cut off")
    histogram = Histogram.of([0.0, 1.0], [1.0, 2.0], [3, 4], "ms")
    operation = Operation("read", per_s=100.0, latency_ms={"mean": 1.5}, histogram=histogram)
    builder.results.append(Result("fio", "job1", (operation,), duration_s=3.0, workload={"bs": "4k"}))
    return builder.build(host="db01")


def test_series_of_the_same_times_are_stacked() -> None:
    capture = sample()
    assert [group.values.shape for group in capture.groups] == [(2, 3)]
    assert capture.series_count == 2


def test_rules_do_not_see_the_since_boot_sample() -> None:
    (group,) = sample().of("guest_disk_await_ms")
    assert group.times_ns.tolist() == TIMES[1:].tolist()
    assert group.values[:, -1].tolist() == [3.0, 3.0]


def test_of_restricts_to_kinds() -> None:
    assert sample().of("guest_disk_await_ms", EntityKind.VM) == []


def test_shape_mismatch_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="shape"):
        SeriesGroup("guest_disk_await_ms", [GUEST], TIMES, np.zeros((2, 3)), 10.0)


def timed(since_boot: bool = False, interval_s: float = 10.0) -> SeriesGroup:
    values = np.arange(3.0).reshape(1, 3)
    return SeriesGroup("guest_disk_await_ms", [GUEST], TIMES, values, interval_s, since_boot=since_boot)


@pytest.mark.parametrize(
    ("start_s", "end_s", "kept_s"),
    [(0, 30, [10, 20, 30]), (10, 30, [20, 30]), (11, 30, [30]), (10, 29.9, [20]), (10, 19, []), (40, 50, [])],
)
def test_a_sample_lies_in_a_span_with_its_whole_interval(start_s: float, end_s: float, kept_s: list[int]) -> None:
    kept = timed().between(round(start_s * 1e9), round(end_s * 1e9))
    assert (kept.times_ns // 10**9).tolist() == kept_s
    assert kept.values.shape == (1, len(kept_s))


def test_a_sample_without_an_interval_lies_in_a_span_by_its_moment() -> None:
    kept = timed(interval_s=float("nan")).between(10 * 10**9, 20 * 10**9)
    assert kept.times_ns.tolist() == [20 * 10**9]


def test_the_mark_of_the_since_boot_sample_goes_with_it() -> None:
    assert timed(since_boot=True).between(0, 20 * 10**9).since_boot
    assert not timed(since_boot=True).between(10 * 10**9, 30 * 10**9).since_boot


def test_a_capture_is_cut_by_time_and_keeps_what_is_known_of_the_machine() -> None:
    capture = sample()
    run = capture.results[0]
    capture.results = [replace(run, start_ns=start_s * 10**9) for start_s in (17, 18)] + [run]
    cut = capture.between(10 * 10**9, 20 * 10**9)
    assert [(s.start_ns, s.end_ns, s.series_count) for s in cut.sources] == [(20 * 10**9, 20 * 10**9, 2)]
    assert [result.start_ns for result in cut.results] == [17 * 10**9]  # it ran for three seconds
    assert cut.inventory.get(GUEST, "cpu_count") == 4
    nothing = capture.between(0, 1)
    assert not nothing.groups
    assert [(s.start_ns, s.end_ns, s.series_count) for s in nothing.sources] == [(None, None, 0)]


def test_merging_keeps_each_clock_and_shifting_moves_one() -> None:
    late = sample("b.txt").shifted(2.5)
    whole = Capture.merged([sample(), late])
    assert [s.offset_s for s in whole.sources] == [0.0, 2.5]
    assert whole.groups[1].times_ns[0] - whole.groups[0].times_ns[0] == 2_500_000_000
    assert whole.groups[1].source == 1
    assert whole.span_ns() == (10_000_000_000, 32_500_000_000)


def test_parquet_keeps_everything(tmp_path: Path) -> None:
    capture = Capture.merged([sample(), sample("b.txt").shifted(1.0)])
    path = tmp_path / "c.parquet"
    save(capture, path)
    again = load(path, "c.parquet")
    assert again.sources == capture.sources
    assert again.inventory.facts == capture.inventory.facts
    assert [g.metric for g in again.groups] == [g.metric for g in capture.groups]
    for one, other in zip(again.groups, capture.groups, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.times_ns, other.times_ns)
        assert (list(one.entities), one.source, one.since_boot) == (list(other.entities), other.source, True)
    restored, kept = again.results[0].operations[0].histogram, capture.results[0].operations[0].histogram
    assert restored is not None
    assert kept is not None
    assert restored.counts.tolist() == kept.counts.tolist()
    assert list(tmp_path.iterdir()) == [path]


def test_parquet_is_read_by_polars_without_leadline(tmp_path: Path) -> None:
    save(sample(), tmp_path / "c.parquet")
    frame = pl.read_parquet(tmp_path / "c.parquet")
    assert frame["entity"].to_list() == ["guest:db01/block-device:sda", "guest:db01/block-device:sdb"]
    assert frame["values"].list.len().to_list() == [3, 3]
    assert frame["unit"].unique().to_list() == ["ms"]


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1" + b"\x00" * 64 + b"PAR1"])
def test_damaged_parquet_is_one_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match="Parquet"):
        load(path, "c.parquet")


@pytest.mark.parametrize("change", ["guest:", '"facts"', '"sources"', '"results"', '"links"'])
def test_parquet_whose_metadata_are_damaged_is_one_error(tmp_path: Path, change: str) -> None:
    path = tmp_path / "c.parquet"
    save(sample(), path)
    table = pq.read_table(path)
    head = table.schema.metadata[KEY].decode()
    assert change in head
    broken = {**table.schema.metadata, KEY: head.replace(change, change[:-2] + "?" + change[-1:]).encode()}
    pq.write_table(table.replace_schema_metadata(broken), path)
    with pytest.raises(InputError, match="damaged Parquet"):
        load(path, "c.parquet")


def test_parquet_whose_times_go_back_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    save(sample(), path)
    table = pq.read_table(path)
    back = pa.array([times.as_py()[::-1] for times in table["times"]], table.schema.field("times").type)
    pq.write_table(table.set_column(table.schema.get_field_index("times"), table.schema.field("times"), back), path)
    with pytest.raises(InputError, match="times that go back"):
        load(path, "c.parquet")


def test_foreign_parquet_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(InputError, match="without Leadline's metadata"):
        load(tmp_path / "c.parquet", "c.parquet")


def test_interval_of_one_sample_is_not_known() -> None:
    assert np.isnan(usual_interval_s(TIMES[:1]))
    assert usual_interval_s(TIMES) == 10.0
