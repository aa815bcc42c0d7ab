"""fio's logs: every column layout, the inferred unit of latencies, merged jobs, single I/Os, histograms, damage."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.fio.results import bucket_bounds, bucket_index
from leadline.importers import fio_log
from tests.conftest import FIXTURES, SAMPLES
from tests.importers.damage import chosen, imported, row, warned

OWN = FIXTURES / "fio" / "logs"
LOGS = sorted(p.name for p in OWN.glob("*.log"))
REAL = sorted(p.name for p in (SAMPLES / "fio").glob("*.log"))
MODIFIED_S = 1_600_000_000


def log(folder: Path, name: str, *rows: str, end: str = "\n") -> Path:
    path = folder / name
    path.write_text("\n".join(rows) + end)
    os.utime(path, (MODIFIED_S, MODIFIED_S))
    return path


def times_s(capture: Capture) -> list[float]:
    return [round(float(t) / 1e9 - MODIFIED_S, 3) for t in capture.groups[0].times_ns]


def reason(capture: Capture) -> str:
    (warning,) = [w for w in capture.sources[0].warnings if w.code == "unit-inferred"]
    return warning.message


def test_windowed_bandwidth_is_kib_per_second() -> None:
    capture = imported(fio_log, OWN / "averaged_bw.1.log")
    assert row(capture, "job_mib_per_s_read", "job:averaged.1")[:2] == [2008 / 1024, 2000 / 1024]
    assert row(capture, "job_mib_per_s_write", "job:averaged.1")[0] == 808 / 1024
    assert capture.groups[0].interval_s == 0.5
    assert warned(capture) == {"no-times"}


def test_rows_further_apart_than_any_run_are_refused(tmp_path: Path) -> None:
    path = log(tmp_path, "x_clat.1.log", "1,400,0,4096", "1795215216281,400,0,4096")
    with pytest.raises(InputError, match="more than 100 days apart"):
        imported(fio_log, path)


def test_windowed_iops() -> None:
    capture = imported(fio_log, OWN / "averaged_iops.1.log")
    assert row(capture, "job_iops_read", "job:averaged.1")[:2] == [502, 500]
    assert row(capture, "job_iops_write", "job:averaged.1")[-1] == 200


def test_the_three_latencies_are_kept_apart_and_nanoseconds() -> None:
    values = {"lat": ("job_latency_ms_read", 0.062531), "clat": ("job_completion_latency_ms_read", 0.046182)}
    values["slat"] = ("job_submission_latency_ms_read", 0.016348)
    for kind, (metric, first) in values.items():
        capture = imported(fio_log, OWN / f"averaged_{kind}.1.log")
        assert row(capture, metric, "job:averaged.1")[0] == pytest.approx(first)
        assert {group.metric.removesuffix("_read").removesuffix("_write") for group in capture.groups} == {metric[:-5]}
        assert "nanoseconds: the priority column" in reason(capture)


def test_the_last_row_is_at_the_files_last_change(tmp_path: Path) -> None:
    capture = imported(fio_log, log(tmp_path, "a_iops.log", "500, 10, 0, 0", "1000, 20, 0, 0", "1500, 30, 1, 0"))
    assert times_s(capture) == [-1.0, -0.5]
    assert not capture.sources[0].clock_known


def test_times_since_1970_are_known() -> None:
    capture = imported(fio_log, OWN / "unixepoch_clat.1.log")
    assert capture.groups[0].times_ns[0] == 1_795_215_213_781 * 10**6
    assert capture.sources[0].clock_known
    assert row(capture, "job_completion_latency_ms_read", "job:unixepoch.1")[0] == pytest.approx(0.051639)


def test_single_ios_become_rates_by_the_second() -> None:
    iops = imported(fio_log, OWN / "each_iops.1.log")
    assert row(iops, "job_iops_read", "job:each.1") == pytest.approx([200 / 0.996])
    bandwidth = imported(fio_log, OWN / "each_bw.1.log")
    assert row(bandwidth, "job_mib_per_s_write", "job:each.1") == pytest.approx([200 * 4096 / 0.996 / 2**20])
    assert "single-ios" in warned(iops) & warned(bandwidth)


def test_seconds_without_completions_are_zero_and_a_short_rest_has_no_rate(tmp_path: Path) -> None:
    rows = ["100, 1, 0, 4096", "900, 1, 0, 4096", "2500, 1, 0, 4096", "3200, 1, 0, 4096"]
    capture = imported(fio_log, log(tmp_path, "a_iops.log", *rows))
    assert row(capture, "job_iops_read", "job:a") == [2.0, 0.0, 1.0]
    assert times_s(capture) == [-2.2, -1.2, -0.2]


def test_single_latencies_give_mean_maximum_and_the_pooled_histogram() -> None:
    capture = imported(fio_log, OWN / "each_lat.1.log")
    numbers = np.loadtxt(OWN / "each_lat.1.log", delimiter=",", dtype=np.int64)
    reads = numbers[numbers[:, 2] == 0, 1]
    assert row(capture, "job_latency_ms_read", "job:each.1") == pytest.approx([reads.mean() / 1e6])
    assert row(capture, "job_latency_ms_max", "job:each.1") == pytest.approx([numbers[:, 1].max() / 1e6])
    (result,) = capture.results
    read, write = result.operations
    assert (read.name, read.count, write.count) == ("read", 200, 200)
    assert read.latency_ms["p99"] == pytest.approx(np.sort(reads)[197] / 1e6)
    assert read.histogram is not None
    low, high = read.histogram.quantile_bounds(0.99)
    assert low <= read.latency_ms["p99"] < high
    assert read.per_s == pytest.approx(200 / 0.995)


@pytest.mark.parametrize(
    ("row_text", "layout"),
    [
        ("{t}, 2000000, 0, 4096", "4 columns"),
        ("{t}, 2000000, 0, 4096, 8192", "offset"),
        ("{t}, 2000000, 0, 4096, 0", "priority"),
        ("{t}, 2000000, 0, 4096, 0x4004", "hexadecimal priority"),
        ("{t}, 2000000, 0, 4096, 8192, 0", "offset and priority"),
        ("{t}, 2000000, 0, 4096, 0, 123456789", "priority and issue time"),
        ("{t}, 2000000, 0, 4096, 8192, 0x4004, 123456789", "all"),
        ("{t},2000000,0,4096,", "trailing comma, no spaces"),
    ],
)
def test_every_column_layout_reads_the_same(tmp_path: Path, row_text: str, layout: str) -> None:
    rows = [row_text.format(t=t) for t in (10, 20, 30)]
    capture = imported(fio_log, log(tmp_path, "a_lat.7.log", *rows))
    assert row(capture, "job_latency_ms_read", "job:a.7") == [2.0], layout


def test_mean_and_maximum_in_one_log(tmp_path: Path) -> None:
    rows = ["1000, 50000, 900000, 0, 0, 0", "1000, 60000, 950000, 1, 0, 0", "2000, 55000, 80000, 0, 0, 0"]
    capture = imported(fio_log, log(tmp_path, "a_lat.1.log", *rows))
    assert row(capture, "job_latency_ms_read", "job:a.1") == pytest.approx([0.05, 0.055])
    assert row(capture, "job_latency_ms_max", "job:a.1") == pytest.approx([0.95, 0.08])


@pytest.mark.parametrize(
    ("kind", "rows", "expected_ms", "why"),
    [
        ("lat", ["500, 900, 0, 0", "1000, 950, 0, 0"], 0.9, "the median is 925"),
        ("lat", ["500, 60000, 0, 0", "1000, 70000, 0, 0"], 0.06, "the median is 65000"),
        ("lat", ["250, 2000000, 0, 0", "500, 2500000, 0, 0"], 2.0, "longer than the job had run"),
        ("slat", ["500, 12, 0, 0", "1000, 13, 0, 0"], 0.012, "the median is 12.5"),
        ("slat", ["500, 3000, 0, 0", "1000, 3100, 0, 0"], 0.003, "the median is 3050"),
        (
            "clat",
            [
                "297, 106319, 0, 0",
                "879, 242540, 0, 0",
                "1062, 300000, 0, 0",
                "1330, 350000, 0, 0",
                "1791, 400000, 0, 0",
            ],
            106.319,
            "too irregularly",
        ),
    ],
)
def test_the_unit_of_old_logs_is_inferred_by_the_stated_rules(
    tmp_path: Path, kind: str, rows: list[str], expected_ms: float, why: str
) -> None:
    capture = imported(fio_log, log(tmp_path, f"a_{kind}.log", *rows))
    assert capture.groups[0].values[0, 0] == pytest.approx(expected_ms)
    assert why in reason(capture)


def test_jobs_in_one_log_are_kept_apart(tmp_path: Path) -> None:
    rows = ["500, 10, 0, 0", "1000, 20, 0, 0", "995, 5, 1, 0", "500, 30, 0, 0", "1000, 40, 0, 0"]
    capture = imported(fio_log, log(tmp_path, "both_iops.log", *rows))
    assert row(capture, "job_iops_read", "job:both#1") == [10, 20]
    assert row(capture, "job_iops_read", "job:both#2") == [30, 40]
    assert row(capture, "job_iops_write", "job:both#1") == [5]
    assert "merged-jobs" in warned(capture)


def test_rows_of_the_same_time_become_their_mean(tmp_path: Path) -> None:
    rows = ["500, 10, 0, 0", "500, 30, 0, 0", "1000, 20, 0, 0", "1500, 20, 0, 0"]
    capture = imported(fio_log, log(tmp_path, "a_bw.log", *rows))
    assert row(capture, "job_mib_per_s_read", "job:a") == [20 / 1024, 20 / 1024, 20 / 1024]
    assert "same-time" in warned(capture)


def test_trims_have_their_own_series(tmp_path: Path) -> None:
    capture = imported(fio_log, log(tmp_path, "a_iops.log", "500, 10, 2, 0", "1000, 20, 2, 0"))
    assert row(capture, "job_iops_trim", "job:a") == [10, 20]


def test_a_histogram_log_is_the_sum_of_its_rows() -> None:
    (result,) = imported(fio_log, OWN / "hist_clat_hist.1.log").results
    read, write = result.operations
    assert read.histogram is not None
    assert write.histogram is not None
    assert (read.count, write.count, read.histogram.total) == (1002, 402, 1002)
    low, high = read.histogram.quantile_bounds(0.5)
    assert 0.03 < low < high < 0.2


def test_a_histogram_log_of_fio_2_is_microseconds(tmp_path: Path) -> None:
    bins = ["0"] * 1216
    bins[100], bins[200] = "3", "1"
    (result,) = imported(fio_log, log(tmp_path, "a_clat_hist.1.log", "1000, 1, 4096, " + ", ".join(bins))).results
    histogram = result.operations[0].histogram
    assert histogram is not None
    assert histogram.lower.tolist() == pytest.approx([0.100, bucket_bounds(np.array([200]))[0][0] / 1e3])
    assert histogram.counts.tolist() == [3, 1]


@given(st.integers(0, 1 << 50))
def test_a_value_lies_in_its_bucket(value: int) -> None:
    low, high = bucket_bounds(bucket_index(np.array([value])))
    assert low[0] <= value < high[0]


def test_an_empty_log_says_what_that_means() -> None:
    capture = imported(fio_log, OWN / "psync_slat.1.log")
    assert warned(capture) == {"empty"}
    assert capture.groups == []


def test_only_what_is_asked_for_is_given() -> None:
    request = Request(metrics=frozenset({"job_iops_write"}))
    assert [g.metric for g in imported(fio_log, OWN / "averaged_iops.1.log", request).groups] == ["job_iops_write"]


def test_a_cut_last_line_is_dropped_and_said(tmp_path: Path) -> None:
    capture = imported(fio_log, log(tmp_path, "a_iops.log", "500, 10, 0, 0", "1000, 20, 0, 0", "1500, 30", end=""))
    assert row(capture, "job_iops_read", "job:a") == [10, 20]
    assert "cut" in warned(capture)


@pytest.mark.parametrize(
    ("rows", "line", "found"),
    [
        (["500, 10, 0, 0", "1000, x, 0, 0", "1500, 30, 0, 0"], 2, "'1000, x, 0, 0'"),
        (["500, 10, 0, 0", "1000, 20, 0, 0", "1500, 30, 0"], 3, "'1500, 30, 0'"),
        (["500, 10, 0, 0", "", "1500, 30, 0, 0, 0"], 3, "'1500, 30, 0, 0, 0'"),
        (["500, 10, 0, 0", "1000, 20, 0, 0, 1", "1500, 30, 0"], 2, "'1000, 20, 0, 0, 1'"),
        (["500, 10, 0, 0", "1000, -20, 0, 0"], 2, "'1000, -20, 0, 0'"),
        (["500, 10, 0, 0", "1000, 20, 7, 0"], 2, "direction 7"),
        (["500, 10, 0, 0", "1000, 99999999999999999999, 0, 0"], 2, "99999999999999999999"),
    ],
)
def test_a_damaged_line_is_an_error_with_its_number(tmp_path: Path, rows: list[str], line: int, found: str) -> None:
    path = log(tmp_path, "a_iops.log", *rows)
    with pytest.raises(InputError) as caught:
        imported(fio_log, path)
    assert caught.value.where == f"{path}:{line}"
    assert found in caught.value.found


def test_three_columns_and_odd_histograms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3 columns"):
        imported(fio_log, log(tmp_path, "a_bw.log", "500, 10, 0"))
    with pytest.raises(InputError, match="no number of latency buckets"):
        imported(fio_log, log(tmp_path, "a_clat_hist.log", "500, 0, 4096, 1, 2"))
    with pytest.raises(InputError, match="does not tell what is logged"):
        imported(fio_log, log(tmp_path, "a.txt", "500, 10, 0, 0"))


@pytest.mark.parametrize("name", LOGS)
def test_own_recordings_are_recognised(name: str) -> None:
    assert chosen(OWN / name) == "fio-log"
    imported(fio_log, OWN / name)


@pytest.mark.parametrize("name", ["job.fio", "a_lat.csv", "a_lat.1.log.gz", "postgresql.log", "vmstat_bw.txt"])
def test_other_names_are_not_taken(tmp_path: Path, name: str) -> None:
    path = log(tmp_path, name, "500, 10, 0, 0")
    assert fio_log.sniff(Source(str(path), path)) == 0


def test_other_contents_are_not_taken(tmp_path: Path) -> None:
    path = log(tmp_path, "check_lat.log", "2026-11-20 12:00:00 latency is fine, 10 ms, 3, 4")
    assert fio_log.sniff(Source(str(path), path)) == 0


@pytest.mark.parametrize("name", REAL or ["none"])
def test_real_logs_import(samples: Path, name: str) -> None:
    path = samples / "fio" / name
    assert chosen(path) == "fio-log"
    capture = imported(fio_log, path)
    assert capture.series_count >= 1
    for group in capture.groups:
        assert float(np.nanmin(group.values)) >= 0


@pytest.mark.parametrize(
    ("name", "metric", "first"),
    [
        ("SamYaple__fio-plot-results__randread-iodepth-8-numjobs-64_lat.64.log", "job_latency_ms_read", 0.767264),
        ("SamYaple__fio-plot-results__randread-iodepth-8-numjobs-64_bw.64.log", "job_mib_per_s_read", 41216 / 1024),
        ("chris-sanders__ceph-fio-results__rw-4k-KERNEL_lat.log", "job_latency_ms_read", 106.319),
        ("louwrentius__fio-plot__test-ceph-ssd_random-read-depth-16_iops.1.log", "job_iops_write", 42.0),
    ],
)
def test_real_values_read_by_eye(samples: Path, name: str, metric: str, first: float) -> None:
    capture = imported(fio_log, samples / "fio" / name)
    (group, *_) = [g for g in capture.groups if g.metric == metric]
    assert group.values[0, 0] == pytest.approx(first)


def test_the_merged_ceph_log_holds_twelve_jobs_in_microseconds(samples: Path) -> None:
    capture = imported(fio_log, samples / "fio" / "chris-sanders__ceph-fio-results__rw-4k-KERNEL_lat.log")
    assert "microseconds" in reason(capture)
    assert {e.name.rsplit("#")[-1] for g in capture.groups for e in g.entities} == {str(i) for i in range(1, 13)}


def test_the_2013_archive_imports_log_by_log(samples: Path) -> None:
    found = import_paths([samples / "fio" / "axboe__fio__fio-logs.tar.gz"])
    assert found.unrecognised == []
    assert {source.importer for source in found.capture.sources} == {"fio-log"}
    name = "m2sw1-128k-sdb-randwrite-para.results"
    assert row(found.capture, "job_mib_per_s_write", f"job:{name}#1")[1] == 16449 / 1024
    assert row(found.capture, "job_iops_write", f"job:{name}#1")[1] == 128
