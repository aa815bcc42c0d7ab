"""pveperf of Proxmox VE."""

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
from leadline.importers import pveperf
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "pveperf.txt").read_text()
FIELD = ROOT.parent / "shared" / "field" / "hypervisor-kvm-host-text" / "pveperf.txt"


def read_text(folder: Path, text: str) -> Capture:
    return pveperf.read(source_of(folder, text), Request())


def test_a_run_is_a_result_of_fsync(tmp_path: Path) -> None:
    chosen = recognise(source_of(tmp_path, SEED), load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "pveperf"
    capture = read_text(tmp_path, SEED)
    (result,) = capture.results
    (operation,) = result.operations
    assert (result.job, operation.name, operation.per_s) == ("/dev/mapper/pve-root", "fsync", 691.5)
    assert operation.mean_ms == pytest.approx(1000 / 691.5)
    assert operation.outstanding_count == pytest.approx(1)
    assert math.isnan(operation.count)
    job = "guest:guest/job:fsync /dev/mapper/pve-root"
    assert values_of(capture, "job_latency_ms", job) == pytest.approx([1000 / 691.5])
    assert group_of(capture, "job_iops", job).times_ns.tolist() == [MTIME_NS]
    assert codes(capture) == ["no-times"]


def test_runs_are_told_apart(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED + "FSYNCS/SECOND:     3842\n")
    assert [result.operations[0].per_s for result in capture.results] == [691.5, 3842.0]
    assert values_of(capture, "job_iops", "guest:guest/job:fsync 2").tolist() == [3842.0]


def test_what_has_no_rate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="above 0"):
        read_text(tmp_path, SEED.replace("691.50", "0.00"))
    with pytest.raises(InputError, match="FSYNCS/SECOND"):
        read_text(tmp_path, "CPU BOGOMIPS:      57471.52\n")


def test_the_run_of_a_report() -> None:
    if not FIELD.is_file():
        pytest.skip("the field cases are not beside this checkout")
    capture = pveperf.read(Source(FIELD.name, FIELD), Request())
    assert capture.results[0].operations[0].mean_ms == pytest.approx(10.35, abs=0.01)
