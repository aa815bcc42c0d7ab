"""Comparisons of runs: what is said of two, of several, of a baseline; and how often it is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from leadline.app.measure.baselines import judge, keep, side
from leadline.app.measure.comparing_runs import RunComparison, compare_runs, history_of
from leadline.core.model.errors import UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.run import Round, Run
from leadline.core.statistics.steady import SteadyState
from leadline.core.system.tools import find_program
from leadline.faces.cli.main import build_app
from leadline.stores.runs import RunStore

EDGES = np.geomspace(0.5, 200.0, 385)  # 1.6 % wide, as fio's
SECONDS = 40


def made_run(number: int, speed: float = 1.0, seed: int = 0, noise: float = 0.0) -> Run:
    """A run of 40 seconds at about 100 operations per second times ``speed``; latency is shorter by as much."""
    generator = np.random.default_rng([seed, number])
    drift = np.zeros(SECONDS)
    for i in range(1, SECONDS):
        drift[i] = 0.7 * drift[i - 1] + generator.normal(0.0, 0.03)
    rates = 100.0 * speed * np.exp(drift)
    latencies = np.exp(generator.normal(np.log(4.0 / speed), 0.5 + noise, 4000))
    counts = np.histogram(latencies, EDGES)[0]
    histogram = Histogram.of(EDGES[:-1].tolist(), EDGES[1:].tolist(), counts.tolist(), "ms")
    read = Operation("read", float(rates.mean()), float("nan"), 4000, {"mean": float(latencies.mean())}, histogram)
    return Run(
        id=f"20261121-{number:06d}-x-0001",
        name="x",
        state="done",
        tool="fio",
        target="/srv",
        started=f"2026-11-21T{number // 60:02d}:{number % 60:02d}:00+00:00",
        seed=7,
        workload={"name": "x", "io": [{"name": "data"}], "timing": {"measure_s": 40}},
        warm_up=SteadyState(True, 1.0, 2.0, 5),
        rounds=(
            Round(
                "round-1",
                (Result("fio", "data", (read,), 40.0),),
                tuple(Tick(i + 1.0, rate) for i, rate in enumerate(rates)),
            ),
        ),
        host={"host": "h", "kernel": "6.1"},
    )


def some(count: int, speed: float = 1.0, first: int = 0, spread: float = 0.01, seed: int = 0) -> list[Run]:
    """Runs whose speed differs from run to run by a standard deviation of ``spread``."""
    generator = np.random.default_rng([seed, first])
    speeds = speed * np.exp(generator.normal(0.0, spread, count))
    return [made_run(first + k, float(own), seed) for k, own in enumerate(speeds)]


def words(found: RunComparison) -> dict[str, str]:
    return {part.name: part.word for part in found.metrics}


def test_of_one_run_each_nothing_is_called_worse() -> None:
    fast, slow = made_run(1, 1.5), made_run(2, 1.0)
    found = compare_runs([fast], [slow])
    assert words(found)["operations"] == "differs in these two runs"
    assert not found.worse
    assert not found.certain
    assert "one run each: what changes from run to run is not known; repeat each side three times" in found.sentence
    assert "these two runs are alike" in compare_runs([slow], [slow]).sentence.lower()
    assert set(words(compare_runs([slow], [slow])).values()) == {"alike in these two runs"}


def test_of_several_runs_better_worse_and_nothing() -> None:
    fast, slow = some(3, 1.5), some(3, 1.0, 10)
    worse, better = compare_runs(fast, slow), compare_runs(slow, fast)
    assert worse.worse
    assert not better.worse
    assert words(worse)["operations"] == words(worse)["data read p50"] == "worse"
    assert words(better)["operations"] == "better"
    assert better.sentence.startswith("Better: operations")
    assert "3 and 3 runs, made within 2 min" in better.basis
    assert "over hours is not in it" in better.basis
    far = [*fast[:2], replace(fast[2], started="2026-11-22T00:00:00+00:00")]
    assert "over hours" not in compare_runs(far, slow).basis
    assert compare_runs(some(3), some(3, first=10)).sentence == "No difference that this data can show."


def test_a_difference_that_is_common_between_runs_is_not_shown() -> None:
    """The case that was judged wrongly: 31 % apart, each steady in itself, on a machine whose runs differ by 20 %."""
    before, after = some(3, spread=0.2, seed=3), some(3, first=10, spread=0.2, seed=4)
    assert "No difference" in compare_runs(before, after).sentence


def test_one_run_each_learns_from_like_runs(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for run in some(5, spread=0.2):
        store.save(run)
    unlike = [replace(made_run(20), host={"host": "other"}), replace(made_run(21), state="interrupted")]
    for run in unlike:
        store.save(run)
    before, near, far = made_run(30), made_run(31, 1.3), made_run(32, 9.0)
    for run in (before, near, far):
        store.save(run)
    history = history_of(store, [before], [near])
    assert sorted(len(group) for group in history) == [6]  # but for both sides and the unlike ones
    quiet = [[run for run in group if run.id != far.id] for group in history]
    found = compare_runs([before], [near], quiet)
    assert found.certain
    assert found.history_count == 5
    assert "taken from 5 like runs" in found.basis
    assert words(found)["operations"] == "no difference shown"
    assert compare_runs([far], [before], quiet).worse
    assert not compare_runs([before], [near], [quiet[0][:2]]).certain  # of two runs nothing is learnt


def test_what_is_not_alike_is_said() -> None:
    run = made_run(1)
    other = replace(made_run(2), host={"host": "other", "kernel": "6.1"}, tool_version="3.36", workload={"io": []})
    assert compare_runs([run], [other]).unlike == (
        "workload: io differs",
        "workload: timing differs",
        "host: h then other",
        "fio: None then 3.36",
    )
    stopped = replace(made_run(3), state="interrupted", warm_up=SteadyState(False, 30.0, 2.0, 5))
    assert any("interrupted" in text for text in compare_runs([run], [stopped]).unlike)
    assert any("not steady" in text for text in compare_runs([run], [stopped]).unlike)
    with pytest.raises(UsageError, match="on both sides"):
        compare_runs([run, other], [other])
    short = replace(run, rounds=(replace(run.rounds[0], results=(), ticks=run.rounds[0].ticks[:3]),))
    assert "measure longer" in compare_runs([short], [short]).sentence


# --- how often it is wrong ---

MANY = pytest.mark.parametrize("repeats", [50, pytest.param(400, marks=pytest.mark.slow)])


@MANY
def test_intervals_of_whole_comparisons_hold_and_false_alarms_are_rare(repeats: int) -> None:
    """Runs 10 % apart among themselves, seconds that resemble their neighbours, a true change of +8 %."""
    held: dict[str, int] = {}
    within = 0
    for k in range(repeats):
        before = some(3, first=0, spread=0.1, seed=1000 + k)
        after = some(3, 1.08, first=10, spread=0.1, seed=1000 + k)
        for part in compare_runs(before, after).metrics:
            true = 0.08 if part.name == "operations" else 1.0 / 1.08 - 1.0
            held[part.name] = held.get(part.name, 0) + (part.low <= true <= part.high)
        single = compare_runs(before[:1], after[:1]).metrics[0]
        within += single.low <= 0.08 <= single.high
    least = 0.95 - 3.0 * sqrt(0.95 * 0.05 / repeats)
    assert set(held) == {"operations", "data read p50", "data read p90", "data read p95", "data read p99"}
    assert all(count / repeats >= least for count in held.values()), held
    assert within / repeats < 0.6  # what the spread within one run each makes of it: never called sure


@MANY
def test_false_alarms_over_all_metrics_are_as_rare_as_promised(repeats: int) -> None:
    alarms = 0
    for k in range(repeats):
        runs = some(6, spread=0.1, seed=5000 + k)
        alarms += any(part.shown for part in compare_runs(runs[:3], runs[3:]).metrics)
    assert alarms / repeats <= 0.05 + 3.0 * sqrt(0.05 * 0.95 / repeats)


# --- baselines ---


def test_sides_are_named_in_many_ways(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    runs = some(4)
    for run in runs:
        store.save(run)
    store.save(replace(made_run(3, seed=9), id="20261120-0-y-0001", started="2026-11-20T00:00:00+00:00", target="/x"))
    keep(store, "before", runs[:2])
    ids = [run.id for run in runs]

    def named(text: str) -> list[str]:
        return [run.id for run in side(store, text)]

    assert named("before") == ids[:2]
    assert named("last") == ids[3:]
    assert named("last:3") == ids[1:]
    assert named(f"before,{ids[2]},{ids[0]}") == ids[:3]
    for text, part in (("last:9", "4 whole runs like"), ("last:0", "at least 1"), ("nothing", "no such run")):
        with pytest.raises(UsageError, match=part):
            side(store, text)


def test_a_baseline_is_of_runs_of_one_kind(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    one, two = made_run(1), made_run(2)
    other, empty = replace(made_run(3), target="/elsewhere"), replace(made_run(4), rounds=(), state="failed")
    for run in (one, two, other, empty):
        store.save(run)
    keep(store, "before", [one])
    assert [run.id for run in keep(store, "before", [two], add=True)] == [one.id, two.id]
    keep(store, "before", [two])
    assert store.marks() == {"before": (two.id,)}
    for runs, part in (([one, other], "one kind"), ([empty], "that was measured")):
        with pytest.raises(UsageError, match=part):
            keep(store, "before", runs)
    for name in ("last", "2026", "a,b", ""):
        with pytest.raises(UsageError, match="expected a letter"):
            keep(store, name, [one])


def test_later_runs_are_judged_against_like_baselines_only(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    runs = some(3)
    late, elsewhere = made_run(20, 0.4), replace(made_run(21), target="/elsewhere")
    longer = replace(made_run(22), workload={**late.workload, "timing": {"measure_s": 5}})
    for run in (*runs, late, elsewhere, longer):
        store.save(run)
    keep(store, "before", runs)
    (judgement,) = judge(store, [late])
    assert judgement.comparison.worse
    assert judgement.sentence.startswith("against before (3 runs): Worse: operations")
    assert judge(store, [elsewhere]) == []
    assert judge(store, [runs[0]]) == []
    assert judge(store, [longer])[0].comparison.unlike == ("workload: timing differs",)
    assert json.loads(json.dumps(judgement.to_dict()))["baseline"] == "before"


# --- as a user sees it, with real runs ---

LOAD = ("--set-size", "8m", "--seconds", "1.5", "--rounds", "1", "--warm-up", "0", "--yes", "--json")


@pytest.mark.real
def test_repeat_keep_judge_and_forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_program("fio") is None:
        pytest.skip("fio is not installed")
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    (tmp_path / "on").mkdir()
    slow = tmp_path / "load.yaml"
    slow.write_text("leadline_workload: 1\nname: load\nio:\n  - {name: d, block: 4k, rate_iops: 300}\n")

    def call(*said: str, statuses: tuple[int, ...] = (0,)) -> dict[str, Any]:
        done = CliRunner().invoke(build_app(), list(said), catch_exceptions=False)
        assert done.exit_code in statuses, done.output
        loaded: dict[str, Any] = json.loads(done.stdout)
        return loaded

    bench = ("bench", "run", str(slow), "--on", str(tmp_path / "on"), *LOAD)
    first = call(*bench, "--repeat", "3", "--keep", "before")
    ids = first["runs"]
    assert len(set(ids)) == 3
    assert first["judgements"] == []
    assert list((tmp_path / "on").iterdir()) == []
    fills = [path.parent.name for path in (tmp_path / "home" / "runs").glob("*/fill.txt")]
    assert fills == [min(ids)]  # filled once
    slow.write_text(slow.read_text().replace("300", "300.0"))  # the same load, written otherwise
    later = call(*bench)
    (judgement,) = later["judgements"]
    assert judgement["baseline"] == "before"
    assert judgement["before"] == sorted(ids)
    listed = call("runs", "list", "--json")
    assert listed["baselines"] == {"before": sorted(ids)}
    compared = call("runs", "compare", "before", "--json", statuses=(0, 1))  # by chance a percentile is worse
    assert compared["certain"] is True
    held = call("runs", "baseline", "list", "--json")["baselines"]
    assert [run["id"] for run in held["before"]] == sorted(ids)
    assert held["before"][0]["per_s"] > 0
    assert call("runs", "baseline", "forget", "before", "--json")["runs"] == []
    with pytest.raises(UsageError, match="no such baseline"):
        call("runs", "baseline", "forget", "before")


@pytest.mark.real
def test_worse_than_a_baseline_is_an_exit_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_program("fio") is None:
        pytest.skip("fio is not installed")
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    (tmp_path / "on").mkdir()
    store = RunStore()
    load = tmp_path / "load.yaml"
    load.write_text("leadline_workload: 1\nname: load\nio:\n  - {name: d, block: 4k, rate_iops: 200}\n")
    words = ["bench", "run", str(load), "--on", str(tmp_path / "on"), *LOAD, "--fail-on-worse"]
    assert CliRunner().invoke(build_app(), words).exit_code == 0
    # A baseline three times as fast: the real run's own document with other seconds.
    real = store.get("last")
    for number, share in enumerate((3.0, 3.01, 3.02)):
        ticks = tuple(replace(t, per_s=share * t.per_s) for t in (*real.rounds[0].ticks, Tick(1.0, 200.0)))
        store.save(replace(real, id=f"2026010{number}-fast", rounds=(replace(real.rounds[0], ticks=ticks),)))
    keep(store, "fast", side(store, "20260100,20260101,20260102"))
    done = CliRunner().invoke(build_app(), words)
    assert done.exit_code == 1, done.output
    assert json.loads(done.stdout)["judgements"][0]["worse"] is True


def test_a_simulation_is_not_compared_with_a_measurement() -> None:
    simulated = replace(made_run(2), tool="simulation")
    with pytest.raises(UsageError, match="expected runs of one kind on both sides"):
        compare_runs([made_run(1)], [simulated])
    assert compare_runs([replace(made_run(1), tool="simulation")], [simulated]).metrics
