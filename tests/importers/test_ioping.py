"""ioping: text of all versions, raw periods and batches, JSON, times, and damage."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import ioping
from tests.conftest import FIXTURES
from tests.importers.damage import chosen, imported, row, warned

OWN = FIXTURES / "ioping"
ALL = sorted(p.name for p in OWN.iterdir())
MODIFIED_S = 1_600_000_000


def text(folder: Path, *lines: str, end: str = "\n") -> Path:
    path = folder / "ioping.txt"
    path.write_text("\n".join(lines) + end)
    os.utime(path, (MODIFIED_S, MODIFIED_S))
    return path


def asked(number: int, time: str, when: str = "", note: str = "") -> str:
    return f"{when}4 KiB <<< /data (ext4 /dev/sdb 2 TiB): request={number} time={time}{note}"


def test_requests_are_a_series_without_the_warm_up() -> None:
    capture = imported(ioping, OWN / "read.txt")
    values = row(capture, "job_latency_ms_read", "job:.")
    assert values == pytest.approx([0.1806, 0.2058, 0.2888, 0.1533, 0.1754, 0.1903, 0.2190, 0.1800, 0.2476])
    assert capture.groups[0].interval_s == pytest.approx(0.2)
    assert np.diff(capture.groups[0].times_ns).tolist() == [200_000_000] * 8
    assert warned(capture) == {"no-times", "warmup"}


def test_the_summary_is_the_result() -> None:
    (result,) = imported(ioping, OWN / "write-sync.txt").results
    (write,) = result.operations
    assert (write.name, write.count, write.per_s, write.bytes_per_s) == ("write", 9, 5.0, 44.4 * 1024)
    spread = {"min": 0.2697, "mean": 0.3094, "max": 0.3414, "stddev": 0.0294}
    assert write.latency_ms == pytest.approx(spread)
    assert result.duration_s == 1.8
    assert result.workload == {"target": ".", "size": "8 KiB", "busy_iops": 3230.0}


def test_a_seek_rate_test_has_a_result_only() -> None:
    capture = imported(ioping, OWN / "seek-rate.txt")
    (result,) = capture.results
    (read,) = result.operations
    assert (read.name, read.count, read.per_s, result.workload["busy_iops"]) == ("read", 38500, 19200, 19400)
    assert capture.groups == []
    assert not capture.sources[0].clock_known


def test_requests_left_out_as_too_slow_were_measured() -> None:
    capture = imported(ioping, OWN / "slow-mark.txt")
    values = row(capture, "job_latency_ms_read", "job:.")
    assert len(values) == 19
    assert max(values) == pytest.approx(0.4158)
    (operation,) = capture.results[0].operations
    assert operation.latency_ms["max"] == pytest.approx(0.4158)
    assert (operation.count, operation.per_s) == (19, 10.0)


def test_printed_times_are_used_and_their_year_assumed() -> None:
    capture = imported(ioping, OWN / "timestamps.txt", Request(date="2026-11-21"))
    assert [int(t) // 10**9 - 1_795_215_226 for t in capture.groups[0].times_ns] == [0, 1, 1, 1]
    assert warned(capture) == {"no-date", "warmup"}


def test_december_in_a_file_changed_in_january_is_of_the_year_before(tmp_path: Path) -> None:
    path = text(tmp_path, asked(1, "1 ms", "Dec 31 23:59:59 "), asked(2, "2 ms", "Jan  1 00:00:00 "))
    capture = imported(ioping, path, Request(date="2021-01-01"))
    assert [int(t) // 10**9 for t in capture.groups[0].times_ns] == [1_609_459_199, 1_609_459_200]


@pytest.mark.parametrize(
    ("when", "code", "first_s"),
    [
        ("2021-03-04 05:06:07 ", "no-zone", 1_614_834_367),
        ("2021-03-04T05:06:07+01:00 ", None, 1_614_830_767),
        ("1614834367 ", None, 1_614_834_367),
        ("five past six ", "no-times", MODIFIED_S),
    ],
)
def test_other_time_formats(tmp_path: Path, when: str, code: str | None, first_s: int) -> None:
    capture = imported(ioping, text(tmp_path, asked(1, "250 us", when)))
    assert int(capture.groups[0].times_ns[0]) // 10**9 == first_s
    assert warned(capture) == ({code} if code else set())
    assert capture.sources[0].clock_known is (code is None)


@pytest.mark.parametrize(
    ("time", "expected_ms"),
    [("900 ns", 0.0009), ("89.6 us", 0.0896), ("1.6 ms", 1.6), ("2.5 s", 2500.0), ("1.5 min", 90_000.0)],
)
def test_every_time_unit(tmp_path: Path, time: str, expected_ms: float) -> None:
    capture = imported(ioping, text(tmp_path, asked(1, time)))
    assert row(capture, "job_latency_ms_read", "job:/data") == pytest.approx([expected_ms])


def test_old_versions_print_the_time_of_the_run(tmp_path: Path) -> None:
    lines = [
        "4.0 KiB from /x (ext4 /dev/vda1): request=1 time=422 us",
        "4.0 KiB from /x (ext4 /dev/vda1): request=2 time=1.2 ms",
    ]
    lines += [
        "",
        "--- /x (ext4 /dev/vda1) ioping statistics ---",
        "2 requests completed in 2.0 s, 1.2 k iops, 4.8 MiB/s",
    ]
    lines += ["min/avg/max/mdev = 422 us / 811 us / 1.2 ms / 389 us"]
    (result,) = imported(ioping, text(tmp_path, *lines)).results
    (read,) = result.operations
    assert (read.per_s, read.bytes_per_s, result.duration_s) == (1.0, 4096.0, 2.0)
    assert [result.workload["busy_iops"], read.latency_ms["max"]] == pytest.approx([1200.0, 1.2])


def test_raw_periods_are_nanoseconds_and_as_long_as_they_say() -> None:
    capture = imported(ioping, OWN / "raw-period.txt")
    assert row(capture, "job_latency_ms", "job:ioping") == pytest.approx([0.219534, 0.232549, 0.226847])
    assert row(capture, "job_latency_ms_max", "job:ioping") == pytest.approx([0.244074, 0.263243, 0.238175])
    assert row(capture, "job_iops", "job:ioping")[0] == pytest.approx(6 / 0.500384835)
    assert row(capture, "job_mib_per_s", "job:ioping")[0] == pytest.approx(6 / 0.500384835 * 4096 / 2**20, rel=1e-3)
    assert np.diff(capture.groups[0].times_ns).tolist() == [499978318, 500011428]
    (operation,) = capture.results[0].operations
    assert operation.count == 15
    assert operation.latency_ms["mean"] == pytest.approx((1097668 + 1162745 + 1134233) / 15 / 1e6)


def test_raw_lines_of_eight_numbers_have_no_rate_of_the_run(tmp_path: Path) -> None:
    capture = imported(ioping, text(tmp_path, "100 40000000 2500 10240000 300000 400000 900000 50000"))
    assert {g.metric for g in capture.groups} == {"job_latency_ms", "job_latency_ms_max", "job_latency_ms_stddev"}
    assert row(capture, "job_latency_ms", "job:ioping") == [pytest.approx(0.4)]


def test_a_period_without_requests_has_no_latency(tmp_path: Path) -> None:
    lines = ["5 1000000 5000 20480000 150000 200000 250000 10 5 500000000", "0 0 0 0 0 0 0 0 0 500000000"]
    capture = imported(ioping, text(tmp_path, *lines))
    values = row(capture, "job_latency_ms", "job:ioping")
    assert values[0] == pytest.approx(0.2)
    assert math.isnan(values[1])
    assert row(capture, "job_iops", "job:ioping") == [10.0, 0.0]


def test_a_batch_line_is_one_period() -> None:
    capture = imported(ioping, OWN / "raw-batch.txt")
    assert row(capture, "job_latency_ms", "job:ioping") == pytest.approx([0.214674])
    assert chosen(OWN / "raw-batch.txt") == "ioping"


def test_requests_win_over_periods_in_one_file() -> None:
    capture = imported(ioping, OWN / "raw-period-requests.txt")
    assert len(row(capture, "job_latency_ms_read", "job:.")) == 19
    assert [g.metric for g in capture.groups] == ["job_latency_ms_read"]


def test_json_requests_have_utc_times() -> None:
    capture = imported(ioping, OWN / "read.json")
    assert row(capture, "job_latency_ms_read", "job:.")[:2] == pytest.approx([0.24827, 0.24117])
    assert capture.groups[0].times_ns[0] == 1_795_215_232_453_968_000
    assert capture.sources[0].clock_known
    (operation,) = capture.results[0].operations
    assert (operation.count, operation.per_s) == (9, 5.554182)
    assert operation.latency_ms["max"] == pytest.approx(0.317834)


def test_json_periods_are_series_and_the_last_entry_the_whole() -> None:
    capture = imported(ioping, OWN / "period.json")
    assert row(capture, "job_latency_ms", "job:.") == pytest.approx([0.233943, 0.212243, 0.220535])
    assert row(capture, "job_iops", "job:.") == pytest.approx([11.991105, 9.999901, 10.000296])
    (operation,) = capture.results[0].operations
    assert [operation.count, operation.latency_ms["mean"]] == pytest.approx([19, 0.211240])


def test_cut_json_loses_its_last_entry(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes((OWN / "read.json").read_bytes()[:1200])
    capture = imported(ioping, path)
    assert "cut" in warned(capture)
    assert len(row(capture, "job_latency_ms_read", "job:.")) == 2


def test_a_cut_last_line_is_dropped_and_said(tmp_path: Path) -> None:
    cut = asked(3, "1.0 ms")[:-4]
    capture = imported(ioping, text(tmp_path, asked(1, "1 ms"), asked(2, "2 ms"), cut, end=""))
    assert row(capture, "job_latency_ms_read", "job:/data") == [1.0, 2.0]
    assert "cut" in warned(capture)


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        (asked(2, "soon"), "time=soon"),
        ("5 1097668 4555 18657736 195261 999999999 244074 19153 6 500384835", "5 1097668"),
        ("min/avg/max/mdev = often", "often"),
        (asked(2, "9" * 400 + " ms"), "request=2"),
    ],
)
def test_a_damaged_line_is_an_error_with_its_number(tmp_path: Path, bad: str, found: str) -> None:
    path = text(tmp_path, asked(1, "1 ms"), bad, asked(3, "1 ms"))
    with pytest.raises(InputError) as caught:
        imported(ioping, path)
    assert caught.value.where == f"{path}:2"
    assert found in caught.value.found


def test_a_json_request_without_its_time_is_an_error_with_its_number(tmp_path: Path) -> None:
    path = text(tmp_path, '[{"timestamp":1600000000,"io":{"operation":"read"}}]')
    with pytest.raises(InputError, match="without its time"):
        imported(ioping, path)


def test_digits_of_other_scripts_are_no_raw_line(tmp_path: Path) -> None:
    line = "5 1000000 5000 20480000 150000 200000 250000 10 5 500000000"
    capture = imported(ioping, text(tmp_path, line, line, line.replace("250000", "25000\u0663"), line, line))
    assert len(row(capture, "job_latency_ms", "job:ioping")) in (2, 4)


@pytest.mark.parametrize("name", ALL)
def test_own_recordings_are_recognised(name: str) -> None:
    assert chosen(OWN / name) == "ioping"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "1 2 3 4 5 6 7 8 9 10",
        "0 0 0 0 0 0 0 0 0 0",
        "1795215169 146 3896 4112 22 99 5 5 0 0",
        "ioping is not installed",
    ],
)
def test_other_numbers_are_not_taken(tmp_path: Path, line: str) -> None:
    path = text(tmp_path, line)
    assert ioping.sniff(Source(str(path), path)) == 0


def test_a_file_without_requests_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no request, period or summary"):
        imported(ioping, text(tmp_path, "hello"))


def test_a_real_file_with_two_runs(samples: Path) -> None:
    path = samples / "ioping" / "AbhishekGhosh__OpenVZ-2GB-Host1Plus-Benchmark__ioping.txt"
    assert chosen(path) == "ioping"
    capture = imported(ioping, path)
    values = row(capture, "job_latency_ms_read", "job:.")
    assert [len(values), values[0], values[7]] == pytest.approx([91, 0.296, 600.3])
    assert len(row(capture, "job_latency_ms_read", "job:/")) == 10
    first, second = capture.results
    assert [first.operations[0].count, first.operations[0].latency_ms["mean"]] == pytest.approx([91, 14.9])
    assert second.duration_s == 9.0


def test_dd_output_is_no_ioping(samples: Path) -> None:
    assert chosen(samples / "ioping" / "AbhishekGhosh__OpenVZ-2GB-Host1Plus-Benchmark__ioBenchmark.txt") != "ioping"
