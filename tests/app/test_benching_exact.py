"""Runs and sweeps upon a disk that is known exactly: warm-up, rounds, interruption, going on, results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.app.measure.benching import plan, run, run_repeated
from leadline.app.measure.rounds import SILENT, Talk
from leadline.app.sweep.sweeping import SweepWish, outcome, plan_rest, plan_sweep, run_sweep
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError
from leadline.core.model.result import Tick
from leadline.core.model.workload import Workload
from leadline.stores.runs import RunStore
from tests.mock_driver import Disk, failed


def workload(**changed: object) -> Workload:
    stream = {"oio": 2, "block": "8k", "read_pct": 75, **changed}
    timing = {"warm_up_s": 60, "measure_s": 20, "rounds": 3}
    return Workload.model_validate({"name": "exact", "io": [stream], "timing": timing})


@pytest.fixture
def on(tmp_path: Path) -> Path:
    (tmp_path / "on").mkdir()
    return tmp_path / "on"


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "home")


def test_a_steady_disk_is_measured_after_five_windows(mock_fio: Disk, on: Path, store: RunStore) -> None:
    """Of two seconds each; the first may be half there, since tools are late with their first second."""
    done = run(plan(workload(), Target(str(on))), store, seed=7)
    assert mock_fio.steps == [("warm-up", 9), ("round-1", 20), ("round-2", 20), ("round-3", 20)]
    assert done.state == "done"
    assert done.warm_up is not None
    assert done.warm_up.sentence() == "steady: windows range over 0.0 % of their mean, drift by 0.0 %"
    assert [len(part.ticks) for part in done.rounds] == [20, 20, 20]
    assert list(on.iterdir()) == []


def test_results_are_those_of_the_disk(mock_fio: Disk, on: Path, store: RunStore) -> None:
    """Two under way at 1 ms each are 2,000 per second: 1,500 reads and 500 writes of 8 KiB."""
    done = run(plan(workload(), Target(str(on))), store, seed=7)
    pooled = {own.name: own for own in done.pooled()}
    assert {name: own.per_s for name, own in pooled.items()} == {"io read": 1500.0, "io write": 500.0}
    assert {name: own.count for name, own in pooled.items()} == {"io read": 90_000, "io write": 30_000}
    assert pooled["io read"].bytes_per_s == 1500 * 8192
    assert pooled["io read"].mean_ms == pytest.approx(1.0)
    assert pooled["io read"].percentiles_ms["p99"][0] == pytest.approx(1.0, rel=1 / 64)
    rate = done.per_s()
    assert (rate.low, rate.mean, rate.high) == (2000.0, 2000.0, 2000.0)
    kept = store.get("last")
    assert (kept.id, repr(kept.pooled())) == (done.id, repr(done.pooled()))


def test_a_disk_that_slows_down_is_warmed_up_until_it_no_longer_does(mock_fio: Disk, on: Path, store: RunStore) -> None:
    mock_fio.fresh_s = 12.0
    done = run(plan(workload(), Target(str(on))), store)
    label, seconds = mock_fio.steps[0]
    assert label == "warm-up"
    assert 12 <= seconds <= 20
    assert done.warm_up is not None
    assert done.warm_up.steady


def test_one_that_never_becomes_steady_is_measured_and_told(mock_fio: Disk, on: Path, store: RunStore) -> None:
    mock_fio.fresh_s = 10_000.0
    own = workload()
    short = own.model_copy(update={"timing": own.timing.model_copy(update={"warm_up_s": 8.0})})
    done = run(plan(short, Target(str(on))), store)
    assert mock_fio.steps[0] == ("warm-up", 8)
    assert done.notes[-1].startswith("after 8 s of warm-up not steady")
    assert len(done.rounds) == 3


def test_what_is_told_while_it_runs(mock_fio: Disk, on: Path, store: RunStore) -> None:
    phases: list[tuple[str, float]] = []
    ticks: list[Tick] = []
    notes: list[str] = []
    talk = Talk(lambda name, seconds: phases.append((name, seconds)), ticks.append, notes.append)
    run(plan(workload(), Target(str(on))), store, talk=talk)
    rounds = [(f"round {number} of 3", 20.0) for number in (1, 2, 3)]
    assert phases == [("preparing", 0.0), ("warming up", 60.0), *rounds]
    assert [tick.elapsed_s for tick in ticks] == [float(n) for n in (*range(1, 10), *(3 * [*range(1, 21)]))]
    assert notes == [f"filling {on}/leadline-io.mock"]


def test_an_interruption_keeps_the_rounds_before_it(mock_fio: Disk, on: Path, store: RunStore) -> None:
    mock_fio.happens = ends("round-2", 5, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(plan(workload(), Target(str(on))), store)
    kept = store.get("last")
    assert (kept.state, [part.label for part in kept.rounds]) == ("interrupted", ["round-1"])
    assert list(on.iterdir()) == []


@pytest.mark.parametrize(("label", "rounds"), [("warm-up", 0), ("round-1", 0), ("round-3", 2)])
def test_a_tool_that_fails_ends_the_run(label: str, rounds: int, mock_fio: Disk, on: Path, store: RunStore) -> None:
    mock_fio.happens = ends(label, 2, failed(label))
    with pytest.raises(ToolError, match="EIO"):
        run(plan(workload(), Target(str(on))), store)
    kept = store.get("last")
    assert (kept.state, len(kept.rounds)) == ("failed", rounds)
    assert list(on.iterdir()) == []


def test_repeated_runs_have_seeds_and_warm_ups_of_their_own(mock_fio: Disk, on: Path, store: RunStore) -> None:
    done = run_repeated(plan(workload(), Target(str(on))), store, 3, seed=5)
    assert [own.seed for own in done] == [5, 1005, 2005]
    assert mock_fio.steps == 3 * [("warm-up", 9), ("round-1", 20), ("round-2", 20), ("round-3", 20)]
    assert len({own.id for own in store.list()}) == 3


def test_a_sweep_ends_at_the_knee_that_is_there(mock_fio: Disk, on: Path, store: RunStore) -> None:
    """By Little's law 4,000 per second at 1 ms are 4 under way: up to there latency stays, beyond it doubles."""
    done = run_sweep(plan_sweep(workload(), Target(str(on)), SweepWish(loads="1..64", target_ms=3.0, seed=1)), store)
    (curve,) = done.curves
    assert done.is_complete
    assert [(p.load, p.per_s.mean) for p in curve.points][:4] == [(1, 1000.0), (2, 2000.0), (4, 4000.0), (8, 4000.0)]
    assert curve.points[-1].load < 64
    assert curve.knee is not None
    assert curve.knee.load == 4
    assert curve.little == pytest.approx(4.0)
    assert curve.levelled is not None
    assert curve.levelled.rate.mean == 4000.0


def test_a_sweep_that_is_interrupted_goes_on_to_the_same_end(mock_fio: Disk, on: Path, store: RunStore) -> None:
    made = plan_sweep(workload(), Target(str(on)), SweepWish(loads="1,2,4", read_pcts=(100.0, 50.0), seed=5))
    reached = iter(range(100))

    def third_round(label: str, second: int) -> None:
        if label == "round-1" and second == 3 and next(reached) == 2:
            raise KeyboardInterrupt

    mock_fio.happens = third_round
    with pytest.raises(KeyboardInterrupt):
        run_sweep(made, store)
    assert sum(len(curve.points) for curve in outcome(made.sweep, store).curves) == 2
    done = run_sweep(plan_rest(store, "last", None, None), store)
    assert done.is_complete
    assert [[point.load for point in curve.points] for curve in done.curves] == [[1, 2, 4], [1, 2, 4]]
    steps = len(mock_fio.steps)
    again = run_sweep(plan_rest(store, made.sweep.id, None, None), store, talk=SILENT)
    assert (again.to_dict(), len(mock_fio.steps)) == (done.to_dict(), steps)
    assert list(on.iterdir()) == []


def ends(at: str, when: int, error: BaseException) -> Callable[[str, int], None]:
    def happens(label: str, second: int) -> None:
        if (label, second) == (at, when):
            raise error

    return happens
