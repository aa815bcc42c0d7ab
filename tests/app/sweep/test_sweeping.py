"""Sweeps on a disk with a real limit and a real latency (QEMU's block layer over NBD), and on a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benches.throttled import missing, throttled_disk
from leadline.app.measure.rounds import SILENT, Talk
from leadline.app.sweep.sweeping import PlannedSweep, SweepWish, outcome, plan_rest, plan_sweep, point_timing, run_sweep
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.workload import Workload, find_workload, parse_workload
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore
from leadline.stores.sweeps import SweepStore

CAP, ALONE_MS = 500, 16.0
BIN = Path(sys.executable).parent / "leadline"
needs_fio = pytest.mark.skipif(find_program("fio") is None, reason="fio is not installed")
TEXT = "name: t\nio_settings: {working_set: 4m}\nio: [{block: 8k, read_pct: 100}]\n"


def workload(text: str = TEXT, *, seconds: float = 1.0, warm_up_s: float = 0.0) -> Workload:
    return point_timing(parse_workload(text, "t"), seconds, 1, warm_up_s)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    """A disk of 500 operations per second, each of which takes 16 ms at least."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with throttled_disk(tmp_path, CAP, 64 * 2**20, latency_ms=ALONE_MS) as address:
        yield address


@pytest.mark.real
@pytest.mark.slow
@needs_fio
def test_the_ceiling_and_the_knee_of_a_real_cap(disk: str, tmp_path: Path) -> None:
    """By Little's law 500 per second at 16 ms are 8 under way: up to there latency stays, beyond it doubles."""
    wish = SweepWish(loads="2..64", target_ms=40.0, percentile="mean", seed=1)
    made = plan_sweep(workload(seconds=12.0), Target(disk), wish)
    store = RunStore(tmp_path / "home")
    done = run_sweep(made, store)
    (curve,) = done.curves
    assert done.is_complete
    assert [point.load for point in curve.points][:4] == [2, 4, 8, 16]
    assert curve.levelled is not None
    assert curve.levelled.rate.mean == pytest.approx(CAP, rel=0.04)
    assert curve.levelled.start.load in (8, 16)
    assert curve.knee is not None
    assert curve.knee.load in (4, 8, 16)
    assert curve.little == pytest.approx(CAP * ALONE_MS / 1000.0, rel=0.3)
    assert curve.points[0].mean_ms == pytest.approx(ALONE_MS, rel=0.3)
    assert curve.points[-1].load < 64  # it ended by itself where growth did
    assert curve.best is not None
    assert curve.best.load is not None
    assert curve.best.load <= 20  # 500 per second at 40 ms
    runs = store.beginning(done.sweep.id)
    assert store.get(f"{done.sweep.id}.v0-2").id.endswith("-2")  # beside v0-2-again
    assert len(runs) == len(curve.points) + len(curve.again)
    assert {run.state for run in runs} == {"done"}


@needs_fio
@pytest.mark.real
def test_points_are_runs_and_one_that_is_ended_goes_on(tmp_path: Path) -> None:
    on, store = tmp_path / "on", RunStore(tmp_path / "home")
    on.mkdir()
    made = plan_sweep(workload(), Target(str(on)), SweepWish(loads="1,2,4", read_pcts=(100.0, 50.0), seed=5))
    with pytest.raises(KeyboardInterrupt):
        run_sweep(made, store, talk=_ending(after=3))
    assert list(on.iterdir()) == []
    cut = outcome(made.sweep, store)
    assert not cut.is_complete
    assert sum(len(curve.points) for curve in cut.curves) == 2
    rest = plan_rest(store, "last", None, None)
    assert (rest.sweep, rest.done_count, rest.point_count_max) == (made.sweep, 2, 4)
    done = run_sweep(rest, store)
    assert done.is_complete
    assert [[point.load for point in curve.points] for curve in done.curves] == [[1, 2, 4], [1, 2, 4]]
    assert all(point.per_s.mean > 0 for curve in done.curves for point in curve.points)
    assert store.get(f"{made.sweep.id}.v0-1").id.endswith(".v0-1")
    kept = {run.id: run.seed for run in store.beginning(made.sweep.id)}
    assert len(set(kept.values())) == 6
    again = run_sweep(plan_rest(store, made.sweep.id, None, None), store)
    assert again.to_dict() == done.to_dict()
    assert list(on.iterdir()) == []


def _ending(after: int) -> Talk:
    """Ctrl-C in the midst of the measuring of a point."""
    rounds = iter(range(after))

    def phase(name: str, _: float) -> None:
        if "round" in name and next(rounds, 0) == after - 1:
            raise KeyboardInterrupt

    return Talk(phase, SILENT.tick, SILENT.note)


@needs_fio
@pytest.mark.real
def test_ctrl_c_of_the_command_keeps_what_was_measured(tmp_path: Path) -> None:
    on = tmp_path / "on"
    on.mkdir()
    words = ["bench", "sweep", "hci-4k-read", "--on", str(on), "--oio", "1,2,4,8", "--set-size", "4m"]
    words += ["--seconds", "2", "--warm-up", "0", "--yes"]
    process = subprocess.Popen(
        ["env", "--default-signal=INT", str(BIN), *words],
        env={**os.environ, "LEADLINE_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    seen = ""
    while "/s, mean" not in seen:  # a point is measured
        line = process.stderr.readline()
        assert line, seen
        seen += line
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, talk = process.communicate(timeout=60)
    assert process.returncode == 130
    assert talk.splitlines()[-1].startswith("interrupted; what was measured is kept; go on with: leadline bench sweep")
    assert "nothing was left behind" not in talk
    assert "points are left" in out
    assert "--resume" in out
    assert list(on.iterdir()) == []
    store = RunStore(tmp_path / "home")
    (name,) = [path.parent.name for path in (tmp_path / "home" / "runs").glob("*/sweep.json")]
    states = [run.state for run in store.beginning(name)]
    assert states.count("done") == 1
    assert set(states) <= {"done", "interrupted"}


@needs_fio
@pytest.mark.real
def test_json_and_the_page(tmp_path: Path) -> None:
    on, page = tmp_path / "on", tmp_path / "sweep.html"
    on.mkdir()
    words = ["bench", "sweep", "hci-8k-50-50", "--on", str(on), "--oio", "1,2", "--jobs", "1,2", "--set-size", "4m"]
    words += ["--seconds", "1", "--warm-up", "0", "--latency-target", "5ms", "--json", "--yes", "--html", str(page)]
    environment = {**os.environ, "LEADLINE_HOME": str(tmp_path / "home")}
    done = subprocess.run([BIN, *words], env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "leadline.sweep/1"
    assert [curve["variant"]["jobs"] for curve in found["curves"]] == [1, 2]
    assert [point["load"] for point in found["curves"][1]["points"]] == [2, 4]
    assert "different loads" in found["curves"][0]["usl"]["untold"][0]
    html = page.read_text(encoding="utf-8")
    assert "default-src &#39;none&#39;" in html or "default-src 'none'" in html
    assert html.count("<circle") == 12  # four points in three charts
    assert "<script" not in html
    assert found["curves"][0]["points"][0]["run"] in html


def test_what_cannot_be_swept(tmp_path: Path) -> None:
    rated = TEXT.replace("read_pct: 100", "rate_iops: 100")
    network = "name: n\nnetwork: {}\n"
    for own, wish, part in (
        (workload(rated), SweepWish(), "a rate in every stream"),
        (workload(network), SweepWish(), "a network workload"),
        (workload(), SweepWish(loads="0"), "numbers from 1"),
        (workload(), SweepWish(loads="4..2"), "numbers from 1"),
        (workload(), SweepWish(percentile="p42"), "p42"),
        (find_workload("pgbench"), SweepWish(jobs=(2,)), "a database workload"),
    ):
        with pytest.raises(UsageError, match=part):
            plan_sweep(own, Target(str(tmp_path)), wish)


def test_a_sweep_that_is_none_or_damaged(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    with pytest.raises(UsageError, match="no such sweep"):
        plan_rest(store, "last", None, None)
    made: PlannedSweep = plan_sweep(workload(), Target(str(tmp_path)), SweepWish(loads="1,2"))
    SweepStore(tmp_path).save(made.sweep)
    assert SweepStore(tmp_path).get("last") == made.sweep
    other = replace(made.sweep, id=f"{made.sweep.id}x")
    SweepStore(tmp_path).save(other)
    with pytest.raises(UsageError, match="2 sweeps begin so"):
        SweepStore(tmp_path).get(made.sweep.id[:4])
    (tmp_path / "runs" / made.sweep.id / "sweep.json").write_text("{}")
    with pytest.raises(InputError, match="damaged"):
        SweepStore(tmp_path).get(f"{made.sweep.id}")


def test_another_target_is_no_point_of_the_same_curve(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    made = plan_sweep(workload(), Target(str(tmp_path)), SweepWish(loads="1,2"))
    SweepStore(tmp_path).save(made.sweep)
    SweepStore(tmp_path).release(made.sweep)
    with pytest.raises(UsageError, match="another target"):
        plan_rest(RunStore(tmp_path), "last", str(tmp_path / "other"), None)
