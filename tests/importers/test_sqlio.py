"""SQLIO's runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import sqlio
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "sqlio.txt").read_text()
FIRST = "guest:guest/job:sequential write 8k Q8T32 1"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert sqlio.sniff(source) == 93
    return sqlio.read(source, Request())


def test_each_run_is_a_result(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    write, read = capture.results
    assert (write.job, write.duration_s) == ("sequential write 8k Q8T32 1", 30)
    assert write.operations[0].per_s == 7851.8
    assert write.operations[0].mean_ms == pytest.approx(32.604, abs=0.001)
    assert write.operations[0].latency_ms["max"] == 180
    assert read.workload["rw"] == "randread"
    assert read.operations[0].mean_ms == 10  # one request at a time, 100 per second
    assert values_of(capture, "job_iops", FIRST).tolist() == [7851.8]
    assert group_of(capture, "job_iops", FIRST).times_ns[0] == MTIME_NS - 60 * 10**9
    assert codes(capture) == ["no-times"]


def test_a_mean_that_is_not_that_of_full_queues_is_kept(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED.replace("Avg_Latency(ms): 32", "Avg_Latency(ms): 3"))
    assert capture.results[0].operations[0].mean_ms == 3


def test_numbers_alone(tmp_path: Path) -> None:
    text = "CUMULATIVE DATA:\nthroughput metrics:\nIOs/sec:  50.0\nMBs/sec:  0.4\n"
    (result,) = read_text(tmp_path, text).results
    assert result.job == "mixed"
    assert result.operations[0].latency_ms == {}


def test_no_rate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run with a rate"):
        read_text(tmp_path, "CUMULATIVE DATA:\nIOs/sec:  0.0\nMBs/sec:  0.0\n")
