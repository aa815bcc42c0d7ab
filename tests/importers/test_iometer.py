"""Iometer's results file."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import iometer
from tests.conftest import ROOT
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "iometer.csv").read_text()
JOB = "guest:guest/job:4 KiB; 70% Read; 100% random, Q16"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text, "results.csv")
    assert iometer.sniff(source) == 96
    return iometer.read(source, Request())


def test_the_sum_is_the_result(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    (result,) = capture.results
    read, write = result.operations
    assert (read.name, read.per_s, read.mean_ms, read.latency_ms["max"]) == ("read", 7000, 2, 40)
    assert write.bytes_per_s == 11.71875 * 2**20
    assert result.error_count == 1
    assert result.workload["iodepth"] == 16
    assert values_of(capture, "job_iops", JOB).tolist() == [10000]
    assert values_of(capture, "job_latency_ms_write", JOB).tolist() == [6]
    assert seconds(group_of(capture, "job_iops", JOB)) == [1795511460]  # 2026-11-24 09:11:00 UTC
    assert capture.sources[0].tool_version == "1.1.0"
    assert codes(capture) == ["no-zone"]


def test_only_reads_have_no_latency_of_writes(tmp_path: Path) -> None:
    text = SEED.replace(",10000,7000,3000,", ",7000,7000,0,")
    capture = read_text(tmp_path, text)
    assert "job_latency_ms_write" not in capture.metrics()
    assert [operation.name for operation in capture.results[0].operations] == ["read"]


def test_old_files_have_one_kind_of_megabytes(tmp_path: Path) -> None:
    heading = (
        "'Target Type,Target Name,Access Specification Name,# Managers,# Workers,# Disks,IOps,Read IOps,Write IOps,"
    )
    heading += "MBps,Read MBps,Write MBps,Average Response Time,Errors,Queue Depth"
    capture = read_text(tmp_path, f"'Results\n{heading}\nALL,All,x,1,1,1,256,256,0,1,1,0,31.25,0,8\n")
    assert capture.results[0].operations[0].bytes_per_s == 2**20
    assert codes(capture) == ["no-times"]


def test_a_cut_row_is_left_out(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED + "ALL,All,4 KiB,1,2\n")
    assert len(capture.results) == 1
    assert "damaged" in codes(capture)


def test_a_heading_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row ALL"):
        read_text(tmp_path, SEED.partition("\nALL")[0] + "\n")


def test_latency_bins_are_a_histogram_where_one_direction_has_them(tmp_path: Path) -> None:
    bins = ",0 to 50 uS,50 to 100 uS,0.5 to 1 mS,1 to 2 s, >= 10 s"
    text = SEED.replace(",% CPU Utilization", f",% CPU Utilization{bins}").replace(",16,12.5", ",16,12.5,10,20,30,4,1")
    assert all(operation.histogram is None for operation in read_text(tmp_path, text).results[0].operations)
    (reads,) = read_text(tmp_path, text.replace(",10000,7000,3000,", ",7000,7000,0,")).results[0].operations
    histogram = reads.histogram
    assert histogram is not None
    assert histogram.counts.tolist() == [10, 20, 30, 4, 1]
    assert histogram.upper.tolist() == [0.05, 0.1, 1.0, 2000.0, float("inf")]
