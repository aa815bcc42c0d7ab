"""fio's JSON: both generations with exact numbers, several documents, several jobs, histograms, and damage."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.formats.fio.results import bins_histogram
from leadline.importers import fio
from tests.conftest import FIXTURES, SAMPLES
from tests.importers.damage import chosen, imported, row, warned
from tests.importers.load_tools import read_text

OWN = FIXTURES / "fio"
JSON = sorted(p.name for p in OWN.iterdir() if ".json" in p.name)
REAL = sorted(p.name for p in (SAMPLES / "fio").glob("*.json"))


def only(capture: Any, way: str) -> tuple[Result, Operation]:
    (result,) = capture.results
    operation = result.operation(way)
    assert operation is not None
    return result, operation


def report(**jobs: dict[str, Any]) -> dict[str, Any]:
    held = [{"jobname": name, "groupid": 0, "error": 0, "elapsed": 11, **job} for name, job in jobs.items()]
    return {"fio version": "fio-2.18", "timestamp_ms": 1_600_000_010_000, "jobs": held}


def fio2_job(**more: Any) -> dict[str, Any]:
    """A write job as fio 2 reports it: microseconds, KiB, buckets by number."""
    bins = {"FIO_IO_U_PLAT_BITS": 6, "FIO_IO_U_PLAT_NR": 1216, "FIO_IO_U_PLAT_VAL": 64, "36": 90, "128": 10}
    clat = {
        "min": 30,
        "max": 129,
        "mean": 45.5,
        "stddev": 3.0,
        "percentile": {"99.000000": 128, "50.000000": 10**400, "0.00": 0},
        "bins": bins,
    }
    lat = {"min": 31, "max": 140, "mean": 50.5, "stddev": 3.5}
    slat = {"min": 5, "max": 12, "mean": 5.0, "stddev": 1.0}
    way = {
        "io_bytes": 400,
        "bw": 40,
        "iops": 10.0,
        "runtime": 10_000,
        "total_ios": 100,
        "slat": slat,
        "clat": clat,
        "lat": lat,
    }
    return {"write": way, "read": {"io_bytes": 0, "total_ios": 0}, "job options": {"rw": "randwrite"}, **more}


def written(folder: Path, *documents: dict[str, Any], before: str = "", after: str = "") -> Path:
    path = folder / "fio.json"
    path.write_text(before + "\n".join(json.dumps(d, indent=2) for d in documents) + "\n" + after)
    return path


def test_fio_3_is_nanoseconds() -> None:
    result, read = only(imported(fio, OWN / "mixed-libaio.json"), "read")
    assert (read.per_s, read.count, read.bytes_per_s) == (1499.500167, 4500, 6141952)
    assert read.latency_ms["mean"] == pytest.approx(0.046588216889, rel=1e-12)
    assert read.latency_ms["slat_mean"] == pytest.approx(0.012492740222, rel=1e-12)
    assert read.latency_ms["clat_p99"] == pytest.approx(0.067072)
    assert read.latency_ms["p99"] == pytest.approx(0.07936)
    assert result.workload["percentiles_of"] == "lat"
    assert result.tool_version == "fio-3.33"


def test_fio_2_is_microseconds(tmp_path: Path) -> None:
    result, write = only(imported(fio, written(tmp_path, report(wal=fio2_job()))), "write")
    assert (write.per_s, write.count, write.bytes_per_s) == (10.0, 100, 40 * 1024)
    assert write.latency_ms["mean"] == pytest.approx(0.0505)
    assert write.latency_ms["clat_mean"] == pytest.approx(0.0455)
    assert write.latency_ms["slat_max"] == pytest.approx(0.012)
    assert write.latency_ms["p99"] == pytest.approx(0.128)
    assert "p0" not in write.latency_ms
    assert "p50" not in write.latency_ms  # more than any tool measures
    assert result.workload["percentiles_of"] == "clat"
    assert result.workload["rw"] == "randwrite"


def test_fio_2_bins_are_bucket_numbers(tmp_path: Path) -> None:
    _, write = only(imported(fio, written(tmp_path, report(wal=fio2_job()))), "write")
    assert write.histogram is not None
    assert write.histogram.counts.tolist() == [90, 10]
    assert write.histogram.lower.tolist() == pytest.approx([0.036, 0.128])
    assert write.histogram.upper.tolist() == pytest.approx([0.037, 0.130])


def test_json_plus_bins_hold_every_request() -> None:
    capture = imported(fio, OWN / "randread-2jobs.json+")
    assert [result.job for result in capture.results] == ["randread.1", "randread.2"]
    for result in capture.results:
        (read,) = result.operations
        assert read.histogram is not None
        assert read.histogram.total == read.count
        low, high = read.histogram.quantile_bounds(0.99)
        assert low <= read.latency_ms["clat_p99"] <= high


@given(st.integers(0, 1 << 40))
def test_bins_contain_their_value_within_a_64th(value: int) -> None:
    histogram = bins_histogram({str(value): 1}, "ns")
    assert histogram is not None
    low, high = histogram.lower[0] * 1e6, histogram.upper[0] * 1e6
    assert low * (1 - 1e-12) <= value < high * (1 + 1e-12)
    assert high - low <= max(1.0, value / 64) * (1 + 1e-9)


def test_end_and_start_come_from_the_report() -> None:
    (result,) = imported(fio, OWN / "randread-2jobs-group.json").results
    assert result.duration_s == 3.001
    assert result.start_ns == 1_795_215_158_885 * 10**6 - 3_001_000_000


def test_groups_that_waited_for_one_another_follow_in_time() -> None:
    first, second = imported(fio, OWN / "two-jobs.json").results
    assert (first.job, second.job) == ("data-read", "wal-write")
    assert first.start_ns is not None
    assert second.start_ns == first.start_ns + 2_001_000_000
    assert second.workload["fdatasync"] == "1"
    assert second.workload["ioengine"] == "psync"


def test_flushes_are_an_operation_of_their_own() -> None:
    result, sync = only(imported(fio, OWN / "write-fdatasync.json"), "sync")
    assert sync.count == 32417
    assert sync.per_s == pytest.approx(32417 / 3.001)
    assert sync.latency_ms["mean"] == pytest.approx(0.088158286362)
    assert sync.latency_ms["p99"] == pytest.approx(0.146432)
    assert set(result.workload["disk_util_pct"]) == {"vda"}


def test_reports_at_intervals_become_series_and_one_result() -> None:
    capture = imported(fio, OWN / "status-interval.json")
    iops = row(capture, "job_iops_read", "job:randread")
    assert iops == pytest.approx([17400 / 0.887, 21852 / 1.0, 21605 / 1.001, 2491 / 0.113])
    latency = row(capture, "job_latency_ms_read", "job:randread")
    assert latency[1] == pytest.approx((47889.414883 * 39252 - 50824.707644 * 17400) / 21852 / 1e6)
    assert row(capture, "job_mib_per_s_read", "job:randread")[1] == pytest.approx(89530368 / 2**20)
    (result,) = capture.results
    assert result.operations[0].count == 63348


def test_unrelated_reports_in_a_row_are_results_of_their_own(tmp_path: Path) -> None:
    later = report(wal=fio2_job())
    later["timestamp_ms"] += 60_000
    capture = imported(fio, written(tmp_path, report(data=fio2_job()), later))
    assert [result.job for result in capture.results] == ["data", "wal"]
    assert capture.groups == []


def test_clients_are_kept_apart_and_their_sum_left_out() -> None:
    capture = imported(fio, OWN / "client-server-2hosts.json")
    assert [result.job for result in capture.results] == ["clients.1", "clients.2"]
    assert [result.host for result in capture.results] == ["127.0.0.1", "127.0.0.1"]
    assert [result.workload["port"] for result in capture.results] == [8871, 8872]
    assert [result.operations[0].count for result in capture.results] == [46776, 46732]


def test_text_around_the_report_is_survived_and_said(tmp_path: Path) -> None:
    path = written(tmp_path, report(wal=fio2_job()), before="fio: file hash not empty\n", after="\nwal: (groupid=0)\n")
    capture = imported(fio, path)
    assert warned(capture) == {"tool-message"}
    assert len(capture.results) == 1


def test_a_job_that_could_not_start_is_no_measurement() -> None:
    capture = imported(fio, OWN / "failed-open.json")
    assert warned(capture) == {"tool-message", "no-io"}
    assert capture.results[0].operations == ()


def test_errors_are_counted(tmp_path: Path) -> None:
    capture = imported(fio, written(tmp_path, report(a=fio2_job(error=5), b=fio2_job(error=5, total_err=7))))
    assert [result.error_count for result in capture.results] == [1, 7]


def test_steady_state_is_a_series_by_the_second(tmp_path: Path) -> None:
    steady = {"ss": "iops:10%", "attained": 1, "data": {"iops": [100, 110, 120], "bw": [1, 2, 3]}}
    capture = imported(fio, written(tmp_path, report(wal=fio2_job(steadystate=steady))))
    assert row(capture, "job_iops", "job:wal") == [100.0, 110.0, 120.0]
    assert capture.groups[0].times_ns.tolist() == [t * 10**9 for t in (1_600_000_008, 1_600_000_009, 1_600_000_010)]
    assert capture.results[0].workload["steadystate"] == {"ss": "iops:10%", "attained": 1}
    assert imported(fio, tmp_path / "fio.json", Request(metrics=frozenset({"cpu_ready_pct"}))).groups == []


def test_a_local_date_alone_is_warned_about(tmp_path: Path) -> None:
    old = report(wal=fio2_job()) | {"time": "Wed May 17 23:49:34 2017"}
    del old["timestamp_ms"]
    capture = imported(fio, written(tmp_path, old), Request(timezone="Europe/Berlin"))
    assert warned(capture) == {"no-zone"}
    assert not capture.sources[0].clock_known
    assert capture.sources[0].end_ns == 1_495_057_774 * 10**9


def test_nan_of_c_is_not_measured(tmp_path: Path) -> None:
    path = written(tmp_path, report(wal=fio2_job()))
    path.write_text(path.read_text().replace('"iops": 10.0', '"iops": -nan'))
    _, write = only(imported(fio, path), "write")
    assert math.isnan(write.per_s)


def test_a_cut_last_report_is_dropped(tmp_path: Path) -> None:
    text = (OWN / "status-interval.json").read_text()
    path = tmp_path / "cut.json"
    path.write_text(text[: text.rindex('"clat_ns"')])
    capture = imported(fio, path)
    assert warned(capture) == {"cut"}
    assert len(row(capture, "job_iops_read", "job:randread")) == 3


def test_a_cut_only_report_is_an_error_with_its_line(tmp_path: Path) -> None:
    text = (OWN / "mixed-libaio.json").read_text()
    path = tmp_path / "cut.json"
    path.write_text(text[: len(text) // 2])
    with pytest.raises(InputError) as caught:
        imported(fio, path)
    assert caught.value.where.startswith(f"{path}:")
    assert caught.value.found == "damaged JSON"


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ({"fio version": "fio-3", "jobs": [{"read": {}}]}, "a job without a name"),
        ({"fio version": "fio-3"}, "no complete report of fio"),
        (report(a={"read": {"total_ios": 1, "clat_ns": {"max": 1, "bins": {"x": 1}}}}), "bins of clat_ns"),
    ],
)
def test_other_json_is_refused(tmp_path: Path, broken: dict[str, Any], found: str) -> None:
    with pytest.raises(InputError, match=found):
        imported(fio, written(tmp_path, broken))


@pytest.mark.parametrize("name", [*JSON, "mixed-libaio-both.txt"])
def test_own_recordings_are_recognised(name: str) -> None:
    assert chosen(OWN / name) == "fio"
    assert imported(fio, OWN / name).results


@pytest.mark.parametrize(
    "text", ["", "{}", '{"jobs": []}', "[global]\nrw=read\n[job]\nbs=4k\n", "fio version 3 iolog\n"]
)
def test_other_files_are_not_taken(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    assert fio.sniff(Source(str(path), path)) == 0


@pytest.mark.parametrize("name", REAL or ["none"])
def test_real_files_import(samples: Path, name: str) -> None:
    path = samples / "fio" / name
    assert chosen(path) == "fio"
    capture = imported(fio, path)
    assert not warned(capture)
    assert capture.sources[0].clock_known
    for result in capture.results:
        assert result.operations
        for operation in result.operations:
            latency = operation.latency_ms
            assert latency["min"] <= latency["mean"] <= latency["max"]
            assert latency["clat_p50"] <= latency["clat_p99"]
        outstanding = sum(operation.per_s * operation.latency_ms["mean"] / 1e3 for operation in result.operations)
        depth = int(result.workload["iodepth"]) * int(result.workload["numjobs"])
        assert 0.3 < outstanding <= depth * 1.05, "Little's law: a wrong unit would be off by 1000"


def test_real_values_read_by_eye(samples: Path) -> None:
    old = samples / "fio" / "louwrentius__fio-plot__fio-2.18-59-g618e__test-data02_randwrite-01-01.json"
    result, write = only(imported(fio, old), "write")
    assert (write.count, write.per_s, write.bytes_per_s) == (168916, 16889.911009, 67559 * 1024)
    assert write.latency_ms["mean"] == pytest.approx(0.050998656)
    assert result.workload["filename"] == "/dev/sdf"
    new = samples / "fio" / "SamYaple__fio-plot-results__4096_sector_1x_4k_randread-1-1.json"
    capture = imported(fio, new)
    result, read = only(capture, "read")
    assert (read.count, read.bytes_per_s, result.duration_s) == (167121, 57586238, 11.887)
    assert read.latency_ms["mean"] == pytest.approx(0.070173491033)
    assert result.workload["disk_util_pct"] == {"nvme2n1": 99.215752}
    assert row(capture, "job_iops", "job:FIOJOB")[:2] == [13888, 13689]
    wide = samples / "fio" / "SamYaple__fio-plot-results__4096_sector_1x_4k_randread-64-64.json"
    assert [r.job for r in imported(fio, wide).results] == [f"FIOJOB.{i}" for i in range(1, 65)]


def _counted(stamp_ms: int, ran_ms: int, count: int, elapsed_s: int, **options: str) -> str:
    way = {"total_ios": count, "io_bytes": count * 4096, "iops": 1.0, "bw_bytes": 1, "runtime": ran_ms}
    job = {"jobname": "io", "elapsed": elapsed_s, "job options": options, "job_runtime": ran_ms, "read": way}
    job |= {other: {"total_ios": 0, "io_bytes": 0, "runtime": 0} for other in ("write", "trim")}
    report = {"fio version": "fio-3.33", "timestamp": stamp_ms // 1000, "timestamp_ms": stamp_ms, "jobs": [job]}
    return json.dumps(report, indent=1)


def test_what_fio_did_in_its_ramp_time_is_no_result(tmp_path: Path) -> None:
    begin = 1_795_000_000_000
    ramp = [_counted(begin + 1000 * n, 1000 * n, 100 * n, n, ramp_time="2s") for n in (1, 2)]
    after = [_counted(begin + 2000 + 1000 * n, 1000 * n, 10 * n, 2 + n, ramp_time="2s") for n in (1, 2, 3)]
    results = read_text(fio, tmp_path, "\n".join([*ramp, *after])).results
    assert [result.operations[0].count for result in results] == [30]
    without = [text.replace("ramp_time", "runtime") for text in (*ramp, *after)]
    assert len(read_text(fio, tmp_path, "\n".join(without)).results) == 2  # two runs in one file


def test_reports_that_a_pause_held_up_are_of_one_run(tmp_path: Path) -> None:
    """A job that thinks for 70 s answers when it is over: fio prints two reports one right after the other."""
    begin = 1_795_000_000_000
    reports = [
        _counted(begin + 1000, 1000, 100, 1, thinktime="70s"),
        _counted(begin + 72_000, 2000, 100, 72, thinktime="70s"),
        _counted(begin + 72_028, 72_000, 100, 72, thinktime="70s"),
        _counted(begin + 73_000, 73_000, 200, 73, thinktime="70s"),
    ]
    results = read_text(fio, tmp_path, "\n".join(reports)).results
    assert [result.operations[0].count for result in results] == [200]
