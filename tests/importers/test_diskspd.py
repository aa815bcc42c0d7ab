"""diskspd's text and XML: targets, percentiles, processors, excerpts."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.importers import diskspd
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, source_of, values_of

SEEDS = ROOT / "tests" / "importers" / "seeds"
TEXT, XML = (SEEDS / "diskspd.txt").read_text(), (SEEDS / "diskspd.xml").read_text()
START_NS = int(datetime(2019, 7, 25, 21, 46, 32, tzinfo=UTC).timestamp()) * 10**9
JOB = "guest:SQL01/job:D:\\test.dat"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert diskspd.sniff(source) >= 90
    return diskspd.read(source, Request())


def operation(result: Result, name: str) -> Operation:
    known = result.operation(name)
    assert known is not None
    return known


def test_threads_of_a_target_are_added_up(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT)
    (result,) = capture.results
    reads, writes = operation(result, "read"), operation(result, "write")
    assert (reads.count, reads.per_s) == (24000, 400)
    assert reads.bytes_per_s == pytest.approx(400 * 8192)
    assert reads.mean_ms == pytest.approx(11)
    assert writes.mean_ms == pytest.approx(29)
    assert writes.latency_ms["p99"] == 90.153
    assert writes.latency_ms["p99.9"] == 127.344
    assert (writes.latency_ms["min"], writes.latency_ms["max"]) == (0.1, 135.744)
    assert "stddev" not in writes.latency_ms  # of two threads it is not known
    assert (result.duration_s, result.host, result.start_ns) == (60, "SQL01", START_NS)
    assert result.workload == {
        "filename": "D:\\test.dat",
        "bs": "8192",
        "iodepth": "8",
        "numjobs": "2",
        "thinktime": "0ms",
        "cache": "off",
        "writethrough": "on",
        "access": "random",
        "rw": "mixed",
    }
    assert values_of(capture, "job_latency_ms_write", JOB) == pytest.approx([29])
    assert values_of(capture, "guest_cpu_busy_pct", "guest:SQL01").tolist() == [50.21]
    assert group_of(capture, "job_iops_read", JOB).times_ns.tolist() == [START_NS + 60 * 10**9]
    assert codes(capture) == []


def test_the_document_says_the_same(tmp_path: Path) -> None:
    capture = read_text(tmp_path, XML)
    (result,) = capture.results
    (reads,) = result.operations
    assert (reads.count, reads.per_s, reads.mean_ms) == (800, 400, 11)
    assert reads.latency_ms == {"mean": 11, "stddev": 5, "min": 0.19, "p99.9": 77.703, "max": 145.285}
    assert (result.tool_version, result.host) == ("2.0.21a", "SQL01")
    ticks = "guest:SQL01/job:all targets, by time"
    assert values_of(capture, "job_iops_read", ticks).tolist() == [450, 350]
    assert values_of(capture, "job_latency_ms_read", ticks).tolist() == [10.5, 11.643]


def test_tables_alone_are_an_excerpt(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT[TEXT.index("Read IO") :])
    (result,) = capture.results
    assert operation(result, "write").mean_ms == pytest.approx(29)
    assert operation(result, "write").latency_ms["p99"] == 90.153
    assert math.isnan(result.duration_s)
    assert codes(capture) == ["excerpt", "no-times"]
    job = "guest:guest/job:D:\\test.dat"
    assert group_of(capture, "job_iops_read", job).times_ns.tolist() == [MTIME_NS]


def test_the_row_of_totals_counts_where_there_is_no_other(tmp_path: Path) -> None:
    rows = [line for line in TEXT[TEXT.index("Read IO") :].splitlines() if "test.dat" not in line]
    (result,) = read_text(tmp_path, "\n".join(rows)).results
    assert result.job == "all targets"
    assert operation(result, "read").mean_ms == 11


def test_without_latency_only_rates_are_known(tmp_path: Path) -> None:
    lines = []
    for line in TEXT[: TEXT.index("\ntotal:\n  %-ile")].splitlines():
        cells = line.split("|")
        lines.append("|".join([*cells[:5], *cells[7:]]) if len(cells) > 6 else line)
    capture = read_text(tmp_path, "\n".join(lines).replace("\tmeasuring latency\n", ""))
    reads = operation(capture.results[0], "read")
    assert reads.per_s == 400
    assert math.isnan(reads.mean_ms)
    assert "no-latency" in codes(capture)


def test_targets_are_told_apart(tmp_path: Path) -> None:
    row = "|   28.000 |     9.000 | "
    text = TEXT.replace(f"{row}D:", f"{row}E:")
    chart = text[text.index("  %-ile") :].replace("90.153", "55.555")
    text = text.replace("\ntotal:\n  %-ile", f"\nE:\\test.dat\n{chart}\ntotal:\n  %-ile")
    capture = read_text(tmp_path, text)
    assert [result.job for result in capture.results] == ["D:\\test.dat", "E:\\test.dat"]
    assert operation(capture.results[1], "write").mean_ms == 28
    assert operation(capture.results[1], "write").latency_ms["p99"] == 55.555
    assert "p99" not in operation(capture.results[0], "write").latency_ms


def test_newer_versions_and_more_processors(tmp_path: Path) -> None:
    text = TEXT.replace("total:\n  %-ile", "Total latency distribution:\n  %-ile")
    text = text.replace("CPU |  Usage |  User  |  Kernel |  Idle", "Core | CPU |  Usage |  User  | Kernel |  Idle")
    text = text.replace("   0|  63.59", "    0|    0|  63.59").replace("avg.|", "       avg.|")
    text = text.replace("AvgLat  | LatStdDev", "AvgLat  | IopsStdDev | LatStdDev")
    for spread in ("5.000", "9.000"):
        text = text.replace(f"|     {spread} |", f"|   35727.09 |     {spread} |")
    capture = read_text(tmp_path, text + "\nC:\\WINDOWS\\system32>\n")
    assert operation(capture.results[0], "write").latency_ms["p99"] == 90.153
    assert operation(capture.results[0], "read").mean_ms == pytest.approx(11)


def test_several_runs_and_the_file_cache(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT + TEXT.replace("software cache disabled", "using software cache"))
    assert len(capture.results) == 2
    assert codes(capture) == ["file-cache"]


def test_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:54"):
        read_text(tmp_path, TEXT.replace("Read IO", "Rexd IO"))
    with pytest.raises(InputError, match="not whole"):
        read_text(tmp_path, XML[:-20])
    with pytest.raises(InputError, match="no table"):
        read_text(tmp_path, TEXT[TEXT.index("  %-ile") :])
