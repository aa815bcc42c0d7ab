"""HCIBench summaries; the fixtures are written by hand after what its own scripts print."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import hcibench

SEEDS = Path(__file__).parent / "seeds"
FIO, VDBENCH = SEEDS / "hcibench-fio-res.txt", SEEDS / "hcibench-vdbench-res.txt"


def read(path: Path) -> Capture:
    return hcibench.read(Source(str(path), path), Request())


def changed(tmp_path: Path, old: str, new: str) -> Capture:
    text = FIO.read_text()
    assert old in text
    path = tmp_path / "x-res.txt"
    path.write_text(text.replace(old, new))
    return read(path)


def test_fio() -> None:
    capture = read(FIO)
    first, second = capture.results
    assert (first.tool, first.job, second.job) == ("hcibench", "job0", "job1")
    whole, fetch, write = first.operations
    assert (whole.name, whole.per_s, whole.latency_ms) == ("io", 153412.66, {})
    assert whole.bytes_per_s == pytest.approx(599.27 * 2**20)
    assert (fetch.name, fetch.latency_ms) == ("read", {"mean": 1.31})
    assert (write.name, write.latency_ms) == ("write", {"mean": 2.75})
    assert math.isnan(fetch.per_s)
    assert first.workload == {
        "datastore": "vsanDatastore",
        "vm_count": 8,
        "host_cpu_usage": "52.06%",
        "host_memory_usage": "21.5%",
        "vsan_cpu_usage": "18.20%",
        "vm_p95_ms_read_averaged": 2.5,
        "vm_p95_ms_write_averaged": 6.1,
    }


@pytest.mark.parametrize(
    ("folder", "name", "block"),
    [
        ("easy-run-1511824453", "fio-8vmdk-100ws-4k-70rdpct-100randompct-4threads-1511829572-res.txt", "4k"),
        ("vdb-8vmdk-100ws-256k-70rdpct-100randompct-4threads-1511829572", "res.txt", "256k"),
        ("x", "fio-8vmdk-100ws-4-70rdpct-100randompct-4threads-res.txt", "4k"),
    ],
)
def test_the_workload_is_in_the_name_that_hcibench_gives(folder: str, name: str, block: str, tmp_path: Path) -> None:
    path = tmp_path / folder / name
    path.parent.mkdir()
    path.write_text(FIO.read_text())
    asked = read(path).results[0].workload
    assert (asked["disks_per_vm"], asked["working_set_pct"], asked["threads_per_disk"]) == (8, 100, 4)
    assert (asked["bs"], asked["rwmixread"], asked["percentage_random"]) == (block, 70, 100)


def test_operations_that_did_not_occur_are_not_measured() -> None:
    assert [operation.name for operation in read(FIO).results[1].operations] == ["io", "write"]


def test_vms_that_ended_early_are_said() -> None:
    assert [(warning.code, warning.count) for warning in read(FIO).sources[0].warnings] == [("early", 1)]


def test_vdbench() -> None:
    (result,) = read(VDBENCH).results
    assert (result.job, result.tool_version) == ("RD=run1; I/O rate: Uncontrolled MAX; elapsed=3600", "vdbench50407")
    assert [(o.name, o.latency_ms) for o in result.operations] == [
        ("io", {"mean": 2.5}),
        ("read", {"mean": 2.0}),
        ("write", {"mean": 3.7}),
    ]
    assert result.workload["vm_p95_ms_estimated"] == 5.1


def test_several_datastores(tmp_path: Path) -> None:
    path = tmp_path / "x-res.txt"
    path.write_text(FIO.read_text() + VDBENCH.read_text())
    assert [result.workload["datastore"] for result in read(path).results] == ["vsanDatastore", "vsanDatastore", "ds1"]


@pytest.mark.parametrize("path", [FIO, VDBENCH])
def test_recognised_among_all_importers(path: Path) -> None:
    known = recognise(Source(str(path), path), load_units("importer"))
    assert known is not None
    assert known[0] == "hcibench"


def test_other_tools_files_are_not_mine(fixtures: Path, samples: Path) -> None:
    files = [path for folder in (fixtures, samples) for path in folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if hcibench.sniff(Source("", path))] == []


def test_a_value_that_is_no_number_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x-res\.txt:6: THROUGHPUT = 'lots'; expected a number with its unit"):
        changed(tmp_path, "599.27 MB/s", "lots")


def test_latencies_of_no_vm_are_not_measured(tmp_path: Path) -> None:
    capture = changed(tmp_path, "1.31 ms", "NaN ms")
    assert [operation.name for operation in capture.results[0].operations] == ["io", "write"]


def test_a_cut_last_line_is_dropped_and_said(tmp_path: Path) -> None:
    path = tmp_path / "x-res.txt"
    path.write_text(VDBENCH.read_text().partition("Resource")[0] + "Datastore     = ds")
    capture = read(path)
    assert len(capture.results) == 1
    assert [warning.code for warning in capture.sources[0].warnings] == ["cut"]


def test_a_file_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no result; expected a line such as IOPS"):
        changed(tmp_path, "IOPS", "IOPZ")
