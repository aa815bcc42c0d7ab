"""RDMA tests; the fixtures are written by hand after what perftest prints, there is no such hardware to record with."""

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
from leadline.importers import perftest

SEEDS = Path(__file__).parent / "seeds"
HEAD = " #bytes #iterations    t_min[usec]    t_max[usec]\n"


def read(path: Path) -> Capture:
    return perftest.read(Source(str(path), path), Request())


def of(tmp_path: Path, text: str) -> Capture:
    path = tmp_path / "x.txt"
    path.write_text(text)
    return read(path)


def test_latency() -> None:
    capture = read(SEEDS / "ib_send_lat.txt")
    small, large = capture.results
    assert (small.tool, small.job, large.job) == ("perftest", "send latency 2 B", "send latency 4096 B")
    (operation,) = small.operations
    assert operation.count == 1000
    assert operation.latency_ms == pytest.approx(
        {
            "min": 0.00285,
            "max": 0.07569,
            "p50": 0.00295,
            "mean": 0.00319,
            "stddev": 0.00152,
            "p99": 0.00892,
            "p99.9": 0.07569,
        }
    )
    assert math.isnan(operation.bytes_per_s)
    assert [warning.code for warning in capture.sources[0].warnings] == ["frequency"]


def test_settings_without_addresses() -> None:
    assert read(SEEDS / "ib_send_lat.txt").results[0].workload == {
        "block_size_bytes": 2,
        "device": "mlx5_0",
        "number of qps": "1",
        "transport type": "IB",
        "connection type": "RC",
        "tx depth": "1",
        "mtu": "4096[B]",
        "link type": "Ethernet",
    }


def test_bandwidth_in_both_units() -> None:
    write, fetch = read(SEEDS / "ib_write_bw.txt").results
    assert (write.job, fetch.job) == ("rdma write bw 65536 B", "rdma read bw 65536 B")
    assert write.operations[0].bytes_per_s == pytest.approx(11714.10 * 2**20)
    assert write.operations[0].per_s == pytest.approx(187_426)
    assert fetch.operations[0].bytes_per_s == pytest.approx(92.5e9 / 8)
    assert fetch.workload == {"block_size_bytes": 65536}


def test_tests_by_time(tmp_path: Path) -> None:
    capture = of(tmp_path, " #bytes        #iterations       t_avg[usec]    tps average\n 2 200000 2.50 400000.00\n")
    (operation,) = capture.results[0].operations
    assert (operation.per_s, operation.latency_ms) == (400_000, {"mean": 0.0025})


@pytest.mark.parametrize("name", ["ib_send_lat.txt", "ib_write_bw.txt"])
def test_recognised_among_all_importers(name: str) -> None:
    known = recognise(Source(name, SEEDS / name), load_units("importer"))
    assert known is not None
    assert known[0] == "perftest"


def test_other_tools_files_are_not_mine(fixtures: Path, samples: Path) -> None:
    files = [path for folder in (fixtures, samples) for path in folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if perftest.sniff(Source("", path))] == []


@pytest.mark.parametrize("row", ["2 1000 1.0", "2 1000 1.0 2.0 3.0", "2 1000 1.0 1.2.3", "2 1000 1.0 -4"])
def test_a_row_that_does_not_fit_the_heading_is_an_error(tmp_path: Path, row: str) -> None:
    with pytest.raises(InputError, match=r"x\.txt:2: .*expected 4 numbers"):
        of(tmp_path, f"{HEAD} {row}\n 4 1000 1.0 2.0\n")


def test_a_cut_last_row_is_dropped_and_said(tmp_path: Path) -> None:
    capture = of(tmp_path, f"{HEAD} 2 1000 1.0 2.0\n 4 1000 1.0 2")
    assert [result.job for result in capture.results] == ["perftest 2 B"]
    assert [warning.code for warning in capture.sources[0].warnings] == ["cut"]


def test_a_test_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row of results"):
        of(tmp_path, HEAD)
