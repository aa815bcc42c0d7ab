"""fio's text summary: units behind every number, both generations, several jobs, and damage."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import fio_text
from tests.conftest import FIXTURES
from tests.importers.damage import chosen, imported, warned

OWN = FIXTURES / "fio"
HEAD = "{name}: (groupid=0, jobs=1): err= {err}: pid={pid}: Fri Jun 19 01:10:01 2020\n"
OLD = """  read : io=3.9GB, bw=1.5MB/s, iops=12.3K, runt= 10000msec
    slat (usec): min=2, max=1.5k, avg= 5.10, stdev= 1.00
    clat (msec): min=1, max=900, avg=10.50, stdev= 2.00
     lat (msec): min=1, max=901, avg=10.60, stdev= 2.10
    clat percentiles (msec):
     | 50.00th=[    9], 99.00th=[   50], 99.99th=[>=2000]
"""
ISSUED = "     issued    : total=r=20000/w=0/d=0, short=r=0/w=0/d=0\n"


def text(folder: Path, *parts: str) -> Path:
    path = folder / "fio.out"
    path.write_text("fio-2.2.10\nStarting 1 process\n\n" + "".join(parts))
    return path


def job(name: str = "db", err: int = 0, pid: int = 7, body: str = OLD, issued: str = ISSUED) -> str:
    return HEAD.format(name=name, err=err, pid=pid) + body + issued


def test_fio_3_numbers_have_their_own_units() -> None:
    (result,) = imported(fio_text, OWN / "mixed-libaio.txt").results
    read, write = result.operations
    assert (read.count, write.count) == (4500, 2100)
    assert read.per_s == pytest.approx(4500 / 3.001)
    assert read.bytes_per_s == 5998 * 1024
    assert read.latency_ms["slat_max"] == pytest.approx(0.067941)
    assert read.latency_ms["clat_max"] == pytest.approx(2.7886)
    assert read.latency_ms["clat_mean"] == pytest.approx(0.03801276)
    assert read.latency_ms["mean"] == pytest.approx(0.05067)
    assert read.latency_ms["p99.99"] == pytest.approx(2.802)
    assert write.latency_ms["clat_mean"] == pytest.approx(0.04367)
    assert result.workload["percentiles_of"] == "clat"
    assert result.workload["rw"] == "randrw"
    assert result.workload["iodepth"] == "8"
    assert result.workload["disk_util_pct"] == {"vda": 2.67}


def test_flushes_and_nanosecond_percentiles() -> None:
    (result,) = imported(fio_text, OWN / "write-fdatasync.txt").results
    write, sync = result.operations
    assert write.latency_ms["p99"] == pytest.approx(0.006368)
    assert write.per_s == pytest.approx(35487 / 3.001)
    assert sync.name == "sync"
    assert sync.latency_ms["mean"] == pytest.approx(0.0799)
    assert sync.latency_ms["p99"] == pytest.approx(0.125)
    assert math.isnan(sync.count)


def test_fio_2_numbers_and_thousands(tmp_path: Path) -> None:
    (result,) = imported(fio_text, text(tmp_path, job())).results
    (read,) = result.operations
    assert read.per_s == 2000.0
    assert read.bytes_per_s == 1.5 * 2**20
    assert read.latency_ms["slat_max"] == pytest.approx(1.5)
    assert read.latency_ms["clat_max"] == 900.0
    assert (read.latency_ms["p50"], read.latency_ms["p99.99"]) == (9.0, 2000.0)
    assert result.duration_s == 10.0
    assert result.tool_version == "fio-2.2.10"


def test_iops_are_taken_as_printed_where_counts_are_missing(tmp_path: Path) -> None:
    issued = "     issued rwts: total=none short=0,0,0,0\n"
    (result,) = imported(fio_text, text(tmp_path, job(issued=issued))).results
    assert result.operations[0].per_s == pytest.approx(12300)


def test_the_date_is_local_and_the_end(tmp_path: Path) -> None:
    path = text(tmp_path, job())
    capture = imported(fio_text, path, Request(timezone="America/New_York"))
    assert capture.sources[0].end_ns == 1_592_543_401 * 10**9
    assert capture.sources[0].start_ns == 1_592_543_391 * 10**9
    assert warned(capture) == {"no-zone"}
    assert not capture.sources[0].clock_known


def test_several_jobs_errors_and_hosts(tmp_path: Path) -> None:
    remote = "".join(f"<db02> {line}\n" for line in job("wal", err=5, pid=8).splitlines())
    capture = imported(fio_text, text(tmp_path, job(), remote, "fio: io_u error on file x\n"))
    assert [(r.job, r.error_count, r.host) for r in capture.results] == [("db", 0, None), ("wal", 1, "db02")]
    assert capture.results[1].operations[0].latency_ms["mean"] == pytest.approx(10.6)
    assert "tool-message" in warned(capture)


def test_reports_at_intervals_keep_the_last(tmp_path: Path) -> None:
    later = job(issued=ISSUED.replace("20000", "30000"))
    capture = imported(fio_text, text(tmp_path, job(), later))
    assert [r.operations[0].count for r in capture.results] == [30000]
    assert "reports" in warned(capture)


def test_a_cut_last_job_is_dropped_and_said(tmp_path: Path) -> None:
    capture = imported(fio_text, text(tmp_path, job(), job("wal", pid=8, issued="")))
    assert [r.job for r in capture.results] == ["db"]
    assert "cut" in warned(capture)


def test_the_only_job_of_a_paste_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "paste.txt"
    whole = text(tmp_path, job(issued="")).read_text()
    path.write_text(whole)
    capture = imported(fio_text, path)
    assert [r.job for r in capture.results] == ["db"]
    assert capture.results[0].operations[0].latency_ms["mean"] > 0
    assert "cut" in warned(capture)
    mean = next(line for line in whole.splitlines() if "avg=" in line)
    torn = whole[: whole.index(mean) + mean.index("avg=") + 5]
    path.write_text(torn)
    with pytest.raises(InputError, match="no whole summary of a job"):
        imported(fio_text, path)


def test_a_job_that_breaks_off_before_the_next_is_an_error(tmp_path: Path) -> None:
    path = text(tmp_path, job("wal", pid=8, issued=""), job())
    with pytest.raises(InputError, match="job wal breaks off") as caught:
        imported(fio_text, path)
    assert caught.value.where == f"{path}:4"


def test_a_run_without_summary_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "fio.out"
    path.write_text("db: (g=0): rw=read, bs=4K-4K/4K-4K, ioengine=sync, iodepth=1\nfio-2.2.10\nStarting 1 process\n")
    assert fio_text.sniff(Source(str(path), path)) > 0
    with pytest.raises(InputError, match="no whole summary of a job"):
        imported(fio_text, path)


@pytest.mark.parametrize("name", ["mixed-libaio.txt", "write-fdatasync.txt"])
def test_own_recordings_are_recognised(name: str) -> None:
    assert chosen(OWN / name) == "fio-text"


@pytest.mark.parametrize(
    "name", ["mixed-libaio-both.txt", "mixed-libaio-terse.txt", "two-jobs.fio", "mixed-libaio.json"]
)
def test_other_outputs_of_fio_are_not_taken(name: str) -> None:
    assert fio_text.sniff(Source(name, OWN / name)) == 0


@pytest.mark.parametrize("kind", ["fio_jobs", "fio"])
def test_job_files_are_no_recordings(samples: Path, kind: str) -> None:
    files = sorted((samples / kind).glob("*.fio"))
    assert files
    assert {path.name: chosen(path) for path in files} == {path.name: None for path in files}


def test_block_traces_are_no_recordings(samples: Path) -> None:
    assert chosen(samples / "fio" / "axboe__fio__t0038.iolog") is None


def test_a_real_summary(samples: Path) -> None:
    path = samples / "fio" / "chris-sanders__ceph-fio-results__randwrite-4k.out"
    assert chosen(path) == "fio-text"
    (result,) = imported(fio_text, path).results
    (write,) = result.operations
    assert (write.name, write.count) == ("write", 66491)
    assert write.per_s == pytest.approx(66491 / 60.162)
    assert write.bytes_per_s == pytest.approx(4420.9 * 1024)
    assert write.latency_ms["clat_mean"] == pytest.approx(28.89)
    assert write.latency_ms["slat_mean"] == pytest.approx(0.05005)
    assert write.latency_ms["p99"] == pytest.approx(219.0)
    assert result.workload["bs"] == "4K"
    assert result.workload["iodepth"] == "32"
