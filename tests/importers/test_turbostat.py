"""turbostat: how busy CPUs are, frequencies and power."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import turbostat
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "turbostat.txt").read_text()
GUEST = "guest:guest"
BUSY = "guest_cpu_busy_pct"


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    source = source_of(folder, text)
    assert turbostat.sniff(source) == 94
    return turbostat.read(source, request or Request())


def test_machine_and_cpus(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert values_of(capture, BUSY, GUEST).tolist() == [56.34, 30.5]
    assert values_of(capture, BUSY, f"{GUEST}/cpu:0").tolist() == [100, 50.25]
    assert values_of(capture, BUSY, f"{GUEST}/cpu:16").tolist() == [44.66, 20.66]
    assert values_of(capture, "raw.turbostat.Bzy_MHz", f"{GUEST}/cpu:16").tolist() == [3940, 3679]
    assert values_of(capture, "raw.turbostat.PkgWatt", GUEST).tolist() == [85.3, 75.3]
    assert seconds(group_of(capture, BUSY, GUEST)) == [1643720006.33228, 1643720016.33228]
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_a_summary_with_times_before_its_lines(tmp_path: Path) -> None:
    text = "2025-06-19 17:09:37.582802\tAvg_MHz\tBusy%\tBzy_MHz\tPkgWatt\n"
    text += "2025-06-19 17:09:37.583056\t8\t0.96\t888\t0.99\n2025-06-19 17:09:38.588572\t6\t0.75\t859\t0.95\n"
    capture = read_text(tmp_path, text)
    assert values_of(capture, BUSY, GUEST).tolist() == [0.96, 0.75]
    assert seconds(group_of(capture, BUSY, GUEST)) == [1750352977.583056, 1750352978.588572]
    assert codes(capture) == ["no-zone"]


@pytest.mark.parametrize(("length", "interval_s"), [("", 5), ("10.000000 sec\n", 10)])
def test_without_times(tmp_path: Path, length: str, interval_s: int) -> None:
    text = f"{length}Busy%\tBzy_MHz\tIRQ\tPkgTmp\tPkgWatt\n4.41\t2282\t50985\t49\t6.83\n5.90\t2327\t36805\t49\t7.06\n"
    group = group_of(read_text(tmp_path, text), BUSY, GUEST)
    assert group.values[0].tolist() == [4.41, 5.9]
    assert group.times_ns.tolist() == [MTIME_NS - interval_s * 10**9, MTIME_NS]


def test_columns_of_spaces_and_negative_nodes(tmp_path: Path) -> None:
    text = "Node Core CPU Avg_MHz Busy% Bzy_MHz Pkg%pc3\n  -    -   -     395  26.14    1493     0.00\n"
    text += " -1    0   0     239  16.27    1473\n -1    1   1     239  17.27    1473\n"
    capture = read_text(tmp_path, text)
    assert values_of(capture, BUSY, GUEST).tolist() == [26.14]
    assert values_of(capture, BUSY, f"{GUEST}/cpu:1").tolist() == [17.27]
    assert values_of(capture, "raw.turbostat.Pkg%pc3", GUEST).tolist() == [0]
    assert codes(capture) == ["no-times"]


def test_torn_rows_are_counted(tmp_path: Path) -> None:
    text = SEED + "43\t1643720017.3\t0\t16\t760\n43\t1\t0\t16\t760\t900.5\t1\n43\t1643720026.1\t-\t-\t1\t1.25\t12"
    capture = read_text(tmp_path, text)
    assert values_of(capture, BUSY, GUEST).tolist() == [56.34, 30.5]
    assert codes(capture) == ["cut", "left-out"]
    assert capture.sources[0].warnings[1].count == 2


def test_a_glued_cell_is_not_measured(tmp_path: Path) -> None:
    text = "Core\tCPU\tBusy%\tBzy_MHz\tTotl%C0Any%C0\tPkgWatt\n0\t0\t100.02\t3399\t261.67100.52\t23.24\n"
    capture = read_text(tmp_path, text)
    assert values_of(capture, BUSY, f"{GUEST}/cpu:0") == pytest.approx(np.array([100.02]))
    assert values_of(capture, "raw.turbostat.PkgWatt", f"{GUEST}/cpu:0").tolist() == [23.24]
    assert "raw.turbostat.Totl%C0Any%C0" not in {group.metric for group in capture.groups}


def test_a_heading_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row of numbers"):
        read_text(tmp_path, "Avg_MHz\tBusy%\tBzy_MHz\n")
