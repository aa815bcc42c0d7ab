"""Bursts of so many requests: what fio is told, what is refused, and what fio's own log shows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.workload import Workload, parse_workload
from leadline.scenarios._simulator import closed

BURST = "request_burst: {requests: 32, gap_s: 100ms}"


def _workload(stream: str, settings: str = "{working_set: 4m}") -> Workload:
    return parse_workload(f"name: t\nio_settings: {settings}\nio: [{stream}]\n", "t.yaml")


def _options(workload: Workload, folder: Path) -> dict[str, str]:
    text = fio.job_file(fio.plan(workload, Target(str(folder))), Step("round-1", 1.2, seed=1))
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_a_burst_is_counted_when_issued_and_is_the_depth(tmp_path: Path) -> None:
    given = _options(_workload(f"{{{BURST}}}"), tmp_path)
    assert (given["thinktime"], given["thinktime_blocks"], given["iodepth"]) == ("100000us", "32", "32")
    assert (given["thinktime_blocks_type"], given["iodepth_batch"]) == ("issue", "32")
    assert "thinktime_iotime" not in given
    again = _workload(f"{{{BURST}}}")
    assert Workload.model_validate(again.plain()) == again


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ("oio: 4", "leave oio out"),
        ("think_time_s: 1ms", "the gap sets the pace"),
        ("rate_iops: 5", "the gap sets the pace"),
        ("burst: {on_s: 1, off_s: 1}", "the gap sets the pace"),
    ],
)
def test_what_does_not_go_with_it_is_refused(more: str, part: str) -> None:
    with pytest.raises(InputError, match=part):
        _workload(f"{{{BURST}, {more}}}")


def test_engines_of_one_request_and_simulations_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="psync, which has one request at a time"):
        fio.plan(_workload(f"{{{BURST}}}", "{working_set: 4m, engine: psync}"), Target(str(tmp_path)))
    with pytest.raises(UsageError, match="no simulation issues"):
        closed(_workload(f"{{{BURST}}}").io[0], 32)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.real
@pytest.mark.parametrize("engine", ["libaio", "io_uring"])
def test_the_log_of_fio_has_bursts_of_so_many_and_gaps(tmp_path: Path, engine: str) -> None:
    given = _options(_workload(f"{{{BURST}}}", f"{{working_set: 4m, engine: {engine}}}"), tmp_path)
    target = tmp_path / "t.dat"
    target.write_bytes(bytes(4 * 2**20))
    kept = (
        "thinktime",
        "thinktime_blocks",
        "thinktime_blocks_type",
        "iodepth",
        "iodepth_batch",
        "ioengine",
        "rw",
        "bs",
    )
    words = ["fio", "--name=b", f"--filename={target}", "--size=4m", "--time_based", "--runtime=1200ms", "--thread"]
    words += [*(f"--{key}={given[key]}" for key in kept), "--write_lat_log=b", "--log_offset=1", "--norandommap"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    rows = np.loadtxt(tmp_path / "b_lat.1.log", delimiter=",", usecols=(0, 1), ndmin=2)
    issued_ms = np.sort(rows[:, 0] - rows[:, 1] / 1e6)
    ends = np.flatnonzero(np.diff(issued_ms) > 50.0)
    bursts = np.diff([0, *(ends + 1)])
    assert len(bursts) >= 3
    assert set(bursts.tolist()) == {32}
    assert float(np.diff(issued_ms)[ends].min()) >= 98.0
