"""sysbench recorded with 1.0.20; 0.4, 0.5 and 1.1 after what their sources print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.model.errors import InputError
from leadline.importers import sysbench
from tests.conftest import FIXTURES
from tests.importers.load_tools import (
    chosen,
    entities,
    operation,
    read,
    read_text,
    sample_files,
    seed,
    times_s,
    values,
    warned,
)

OURS = FIXTURES / "sysbench"
RECORDED = sorted(OURS.glob("*.txt"))
OLTP_0_5 = seed("sysbench-0.5-oltp.txt")
FILEIO_0_4 = seed("sysbench-0.4-fileio.txt")
FILEIO_1_1 = """sysbench 1.1.0 (using bundled LuaJIT 2.1.0-beta3)

Throughput:
         read:  IOPS=1500.00 23.44 MiB/s (24.58 MB/s)
         write: IOPS=1000.00 15.62 MiB/s (16.38 MB/s)
         fsync: IOPS=50.00

Latency (ms):
         min:                                    0.01
         avg:                                    0.40
         max:                                   30.00
         99th percentile:                        2.50
         sum:                                10000.00
General statistics:
    total time:                          10.0000s
    total number of events:              25500
"""


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_our_recordings_are_recognised(path: Path) -> None:
    assert chosen(path) == "sysbench"


def test_oltp_intervals() -> None:
    path = OURS / "oltp-read-write.txt"
    capture = read(sysbench, path)
    assert entities(capture) == {"guest:guest/database:database"}
    assert values(capture, "db_tps") == [2389.26, 2261.51, 2242.29, 2294.83, 2009.90]
    assert values(capture, "db_qps")[0] == 48069.91
    assert values(capture, "db_failed_per_s") == [12.99, 10.0, 7.0, 11.0, 7.96]
    assert values(capture, "db_client_count") == [4] * 5
    assert values(capture, "db_latency_ms_p95")[4] == 2.76
    end = path.stat().st_mtime_ns / 1e9
    assert times_s(capture, "db_tps")[-1] == pytest.approx(end - 0.0074, abs=1e-5), "statistics end 7.4 ms later"
    assert not capture.sources[0].clock_known
    assert capture.sources[0].tool_version == "1.0.20"


def test_oltp_result() -> None:
    (result,) = read(sysbench, OURS / "oltp-read-write.txt").results
    whole = operation(result, "transaction")
    assert (result.job, result.duration_s, result.error_count) == ("oltp", 5.0074, 49)
    assert (whole.per_s, whole.count) == (2238.59, 11211)
    assert whole.latency_ms == {"mean": 1.78, "min": 0.68, "max": 7.80, "p95": 2.71}
    assert operation(result, "query").count == 225102


def test_histogram_agrees_with_the_percentile_sysbench_prints() -> None:
    capture = read(sysbench, OURS / "oltp-read-only-p99-histogram.txt")
    assert values(capture, "db_latency_ms_p99") == [0.58, 0.54, 1.16, 0.61]
    whole = operation(capture.results[0], "transaction")
    assert whole.histogram is not None
    assert whole.histogram.total == whole.count == 17158
    low, high = whole.histogram.quantile_bounds(0.99)
    assert low <= whole.latency_ms["p99"] + 0.005
    assert high >= whole.latency_ms["p99"] - 0.005
    assert (whole.histogram.upper / whole.histogram.lower).max() == pytest.approx(1.0182, abs=1e-3)
    steps = whole.histogram.lower[1:] / whole.histogram.upper[:-1]
    assert steps.min() == pytest.approx(1.0, abs=2e-3), "buckets side by side do not overlap"


def test_rate_limited_run() -> None:
    capture = read(sysbench, OURS / "oltp-rate.txt")
    assert values(capture, "db_tps") == [38.96, 43.01, 44.00, 49.00, 65.00]
    assert capture.results[0].workload == {"client_count": 4, "rate_per_s": 50}


def test_fileio() -> None:
    capture = read(sysbench, OURS / "fileio-rndrw.txt")
    assert entities(capture) == {"guest:guest/job:sysbench"}
    assert values(capture, "job_mib_per_s_read") == [131.12, 150.02, 137.15, 140.24]
    assert values(capture, "job_latency_ms_p95") == [0.097, 0.087, 0.093, 0.089]
    (result,) = capture.results
    assert (result.job, operation(result, "read").per_s) == ("fileio", 17868.93)
    assert operation(result, "write").bytes_per_s == pytest.approx(93.07 * 1024**2)
    assert operation(result, "fsync").per_s == 1192.51
    assert result.workload == {"client_count": 2, "block_size": "8KiB", "pattern": "random r/w"}


def test_runs_without_reports_have_results_only() -> None:
    cpu, files = read(sysbench, OURS / "cpu.txt"), read(sysbench, OURS / "fileio-no-report.txt")
    assert cpu.groups == files.groups == []
    assert cpu.results[0].job == "cpu"
    assert operation(cpu.results[0], "event").count == 10430
    assert cpu.sources[0].clock_known, "nothing in it has a time to be unsure of"


def test_output_of_0_5(tmp_path: Path) -> None:
    capture = read_text(sysbench, tmp_path, OLTP_0_5)
    assert values(capture, "db_tps") == [269.67, 0]
    assert values(capture, "db_latency_ms_p95")[0] == 51.94
    assert np.isnan(values(capture, "db_latency_ms_p95")[1])
    assert values(capture, "db_failed_per_s") == [0.1, 0.0]
    (result,) = capture.results
    assert (result.error_count, result.tool_version) == (3, "0.5")
    assert operation(result, "transaction").latency_ms == {"mean": 36.0, "min": 5.91, "max": 137.83, "p95": 62.19}


def test_fileio_of_0_4_and_1_1(tmp_path: Path) -> None:
    (old,) = read_text(sysbench, tmp_path, FILEIO_0_4).results
    assert (old.job, operation(old, "read").per_s, operation(old, "write").per_s) == ("fileio", 600, 400)
    (new,) = read_text(sysbench, tmp_path, FILEIO_1_1).results
    assert operation(new, "read").per_s == 1500
    assert operation(new, "write").bytes_per_s == pytest.approx(15.62 * 1024**2)
    assert operation(new, "io").latency_ms["p99"] == 2.5


def test_checkpoints_are_results_of_their_own(tmp_path: Path) -> None:
    text = (OURS / "oltp-read-write.txt").read_text()
    block = text[text.index("SQL statistics:") :]
    assert len(read_text(sysbench, tmp_path, text + "[ 6s ] Checkpoint report:\n" + block).results) == 2


def test_several_runs_follow_each_other(tmp_path: Path) -> None:
    text = (OURS / "oltp-read-write.txt").read_text()
    capture = read_text(sysbench, tmp_path, text * 2)
    first, second = (group for group in capture.groups if group.metric == "db_tps")
    assert (second.times_ns[0] - first.times_ns[0]) / 1e9 == pytest.approx(5.0074)
    assert len(capture.results) == 2


def test_stopped_run_has_no_result(tmp_path: Path) -> None:
    text = (OURS / "oltp-read-write.txt").read_text()
    capture = read_text(sysbench, tmp_path, text[: text.index("[ 4s ]") + 30])
    assert len(values(capture, "db_tps")) == 3
    assert warned(capture) == ["cut", "no-times", "no-summary"]


def test_fatal_errors_are_said(tmp_path: Path) -> None:
    text = (OURS / "oltp-read-write.txt").read_text()
    assert "fatal" in warned(read_text(sysbench, tmp_path, text + "FATAL: mysql_drv_query() returned error 1213\n"))


@pytest.mark.parametrize(
    ("old", "new"), [("tps: 2242.29", "tps: 22x2.29"), ("[ 3s ]", "[ 1s ]"), ("[ 3s ]", "[ 9999999999s ]")]
)
def test_damage_in_the_middle_is_an_error(tmp_path: Path, old: str, new: str) -> None:
    text = (OURS / "oltp-read-write.txt").read_text()
    with pytest.raises(InputError) as caught:
        read_text(sysbench, tmp_path, text.replace(old, new))
    assert caught.value.where.endswith(":15")


def test_a_line_called_histogram_is_no_histogram(tmp_path: Path) -> None:
    capture = read_text(sysbench, tmp_path, "General statistics:\ntotal time: 9s\nhistogram: 4\n")
    assert [one.histogram for one in capture.results[0].operations] == [None]


def test_something_else_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither an interval report nor statistics"):
        read_text(sysbench, tmp_path, "sysbench 1.0.20\nhello\n")


@pytest.mark.parametrize("path", sample_files("sysbench/*"))
def test_samples(path: Path) -> None:
    assert chosen(path) == "sysbench"
    capture = read(sysbench, path)
    assert [result.workload["client_count"] for result in capture.results] == [8, 16, 32, 64]
    assert values(capture, "db_tps")[:2] == [269.67, 233.42]
    assert len(values(capture, "db_tps")) == 240
    last = operation(capture.results[3], "transaction")
    assert (last.per_s, last.latency_ms["p95"]) == (267.64, 376.49)
    assert last.histogram is not None
    low, high = last.histogram.quantile_bounds(0.95)
    assert low <= 376.49 <= high
