"""`leadline bench sweep` as a user sees it: plans, mistakes, and the figures of what was measured."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from leadline.app.sweep.curves import Point, curve_of, moved_per_s
from leadline.app.sweep.sweeping import SweepOutcome
from leadline.core.model.errors import UsageError
from leadline.core.model.run import Pooled
from leadline.core.model.sweep import Key, LoadVariant, Sweep
from leadline.core.statistics.resampling import mean_interval
from leadline.faces.cli.main import build_app
from leadline.faces.report.sweep import latency_charts, rate_chart, sweep_page, write_sweep
from leadline.faces.report.xy import Level, Line, XyChart, drawn, log_ticks, ticks
from leadline.faces.sweeps import plot, show_sweep
from tests.command_line import leadline
from tests.conftest import ROOT

INVENTORY = str(ROOT / "examples" / "easy" / "inventory.yaml")


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return leadline("bench", "sweep", *words, cwd=cwd)


def outcome_of(rates: dict[int, float], latency_ms: float = 8.0, *, spread: float = 2.0) -> SweepOutcome:
    """A sweep as it is measured: rates by load, latency by Little's law, twenty seconds each."""
    sweep = Sweep("s", "2026-01-01", 1, {"name": "w"}, "/t", "oio", tuple(rates), grows=True, target_ms=30.0)
    drawn_from = np.random.default_rng(1)
    points = []
    for load, rate in rates.items():
        seconds = drawn_from.normal(rate, spread, 20)
        mean_ms = max(latency_ms, 1000.0 * load / rate)
        times = {"p50": (mean_ms, 100), "p99": (3.0 * mean_ms, 100)}
        interval = mean_interval([list(seconds)], 1)
        points.append(
            Point(Key(0, load), f"s.v0-{load}", load, interval, rate * 8192, mean_ms, times, (), (tuple(seconds),))
        )
    return SweepOutcome(sweep, (curve_of(sweep, 0, points),), is_complete=True, runs=())


CAPPED = {1: 125.0, 2: 250.0, 4: 500.0, 8: 500.0, 16: 500.0}


def test_a_cap_as_it_is_told() -> None:
    (curve,) = outcome_of(CAPPED).curves
    text = " ".join(curve.sentences())
    assert "stopped growing at 4 outstanding I/O: 500/s" in text
    assert "Knee at 4 outstanding I/O: 500/s at 8 ms" in text
    assert "Little's law 4.0 outstanding I/O" in text or "Little's law 4 outstanding I/O" in text
    assert "Best load with p99 within 30 ms: 4 outstanding I/O" in text
    assert "does not describe these points" in text
    assert json.loads(json.dumps(curve.to_dict()))["knee"] == 4


def test_a_system_that_scales_is_told_its_law() -> None:
    loads = np.array([1, 2, 4, 8, 16, 32, 64])
    rates = 1000.0 * loads / (1 + 0.05 * (loads - 1) + 0.002 * loads * (loads - 1))
    (curve,) = outcome_of(dict(zip(loads.tolist(), rates.tolist(), strict=True))).curves
    text = " ".join(curve.sentences())
    assert "σ 0.050" in text
    assert "Its peak: " in text
    assert "22 outstanding I/O" in text
    assert "and fell to" in text


def test_the_text_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    done = outcome_of(CAPPED)
    (curve,) = done.curves
    marked = replace(curve.points[0], marks=("not steady", "too few samples"))
    many = replace(curve, points=(marked, *curve.points[1:]), variant=LoadVariant(8192, 50.0, 4))
    show_sweep(replace(done, curves=(many,), is_complete=False))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "8k, 50 % read, 4 jobs" in out
    assert "leadline bench sweep --resume s" in out
    assert "o: do not lean on it" in out


def test_the_plot_rises_to_the_right() -> None:
    (curve,) = outcome_of(CAPPED).curves
    lines = plot(curve.points, "oio")
    assert sum(line.count("*") for line in lines) == 5
    assert lines[0].rstrip().endswith("*")  # the highest load: slowest, and at the limit
    assert plot(curve.points[:1], "oio") == []


def test_the_page_holds_figures_and_table_and_escapes_names(tmp_path: Path) -> None:
    done = outcome_of(CAPPED)
    named = replace(done, sweep=replace(done.sweep, target="/t/<script>alert(1)</script>"))
    page = sweep_page(named)
    assert "<script>" not in page
    assert page.count("<svg") == 3
    assert page.count("<circle") == 15
    assert "target 30 ms" in page
    assert "stopped growing" in page
    assert write_sweep(tmp_path / "s.html", done) == (tmp_path / "s.html").stat().st_size
    incomplete = sweep_page(replace(done, is_complete=False, curves=()))
    assert "Points are left" in incomplete
    assert "<svg" not in incomplete


def test_what_the_charts_hold() -> None:
    done = outcome_of({1: 950.0, 2: 1800.0, 4: 3300.0, 8: 5600.0, 16: 8500.0})
    mean, p99 = latency_charts(done)
    assert (len(mean.levels), [level.y for level in p99.levels]) == (0, [30.0])
    measured, law = rate_chart(done).lines
    assert measured.points[0][0] == 1.0
    assert measured.points[0][1] == pytest.approx(950.0, rel=0.01)
    assert law.dashed
    assert law.points[-1][1] == pytest.approx(8500.0, rel=0.05)


def test_charts_leave_out_what_was_not_measured() -> None:
    line = Line("l", ((1.0, 2.0), (2.0, math.nan), (3.0, 0.0), (4.0, 200.0)))
    found = drawn(XyChart("t", "x", "y", (line,), (Level(50.0, "limit"),), log_y=True))
    assert found is not None
    assert found.paths[0][0].count("L") == 1
    heights = [y for y, _ in found.y_ticks]
    assert heights == sorted(heights, reverse=True)
    assert min(heights) <= found.levels[0][0] <= max(heights)
    assert drawn(XyChart("t", "x", "y", (Line("l", ((math.nan, 1.0),)),))) is None
    assert ticks(0.0, 0.07)[-1] >= 0.07
    assert log_ticks(0.01, 5000.0)[0] <= 0.01
    assert len(log_ticks(7.0, 7.0)) >= 2


def test_the_plan_alone(tmp_path: Path) -> None:
    done = run("hci-4k-read", "--on", ".", "--oio", "1..8", "--set-size", "4m", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "until operations stop growing" in done.stdout
    assert "make, fill and remove" in done.stdout
    chosen = run("--easy", "--on", ".", "--dry-run", "--set-size", "4m", "--json", cwd=tmp_path)
    assert chosen.returncode == 0, chosen.stderr
    found = json.loads(chosen.stdout)
    assert found["schema"] == "leadline.sweep-plan/1"
    assert found["sweep"]["loads"][-1] == found["easy"]["oio_max"]
    assert all(own["why"] for own in found["easy"]["choices"])
    assert list(tmp_path.iterdir()) == []


def test_a_plan_for_other_machines(tmp_path: Path) -> None:
    done = run("--easy", "--inventory", INVENTORY, "--storage", "prod", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["easy"]["machine_count"], found["easy"]["disk_count"]) == (16, 8)
    assert found["easy"]["disk_bytes"] == 9 * 2**30
    (tmp_path / "hosts.txt").write_text("a\nb\n")
    done = run("--easy", "--inventory", INVENTORY, "--storage", "nfs-01", "--hosts", "hosts.txt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "machines: 2" in done.stdout
    assert "bench hosts postgresql-io --hosts hosts.txt" in done.stdout


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "no WORKLOAD"),
        (["hci-4k-read"], "no --on"),
        (["hci-4k-read", "--resume", "last"], "a workload (hci-4k-read)"),
        (["--resume", "nothing"], "no such sweep"),
        (["hci-4k-read", "--on", ".", "--clients", "4"], "a workload of kind io"),
        (["hci-4k-read", "--on", ".", "--oio", "x"], "numbers from 1"),
        (["hci-4k-read", "--on", ".", "--block", "1000"], "multiples of 512"),
        (["hci-4k-read", "--on", ".", "--read-pct", "120"], "numbers from 0 to 100"),
        (["hci-4k-read", "--on", ".", "--jobs", "0"], "numbers from 1 to 1024"),
        (["hci-4k-read", "--on", ".", "--latency-target", "fast"], "a time such as 5ms"),
        (["hci-4k-read", "--on", ".", "--set-size", "4m"], "nobody to ask"),
        (["hci-4k-read", "--on", ".", "--inventory", INVENTORY], "no --easy"),
        (["--easy", "--hosts", "hosts.txt"], "no --inventory"),
        (["--easy", "--resume", "last"], "one of them"),
        (["--easy", "--on", "nowhere"], "no folder"),
        (["--easy", "--on", ".", "pgbench"], "kind database"),
        (["--easy", "--inventory", INVENTORY], "2 of them: prod, nfs-01"),
        (["--easy", "--inventory", INVENTORY, "--storage", "x"], "none in the inventory"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(
    words: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        CliRunner().invoke(build_app(), ["bench", "sweep", *words], catch_exceptions=False)
    assert part in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_knee_at_the_lowest_load_is_not_found() -> None:
    for rates in ({4: 500.0, 8: 500.0, 16: 500.0}, {4: 500.0}):
        (curve,) = outcome_of(rates).curves
        text = " ".join(curve.sentences())
        assert "Knee not found: it is at or below the lowest load tried, 4 outstanding I/O" in text
        assert "Knee at" not in text


def test_throughput_is_the_rate_times_the_block_size() -> None:
    """The tool counts 76,000/s of 4 KiB over all its time, the seconds judged have 70,302/s: 288 MB/s, not 311."""
    read = Pooled("data read", 76_000.0, 76_000.0 * 4096, 1.0, 1.0, {}, None)
    assert moved_per_s([read], 70_302.0) == pytest.approx(70_302.0 * 4096)
    nothing_counted = Pooled("data read", 0.0, 0.0, 0.0, 1.0, {}, None)
    assert moved_per_s([nothing_counted], 0.0) == 0.0
