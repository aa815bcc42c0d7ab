"""Simulations that go on where they were ended, and those on a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leadline import __version__
from leadline.app.simulate.simulating import plan_simulation, simulate
from leadline.core.contracts.scenario import Axis
from leadline.core.model.errors import ToolError
from leadline.stores.runs import RunStore
from tests.conftest import ROOT

CAP = ROOT / "examples" / "scenarios" / "iops-cap.yaml"
SHORT = (Axis("timing.warm_up_s", (2,)), Axis("timing.measure_s", (10,)))
LIMITS = Axis("vms.db01.iops_limit", (100, 200, 300))


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def test_what_is_kept_is_not_done_again(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first = simulate(plan_simulation(CAP, [*SHORT, Axis("vms.db01.iops_limit", (200,))]), store)
    planned = plan_simulation(CAP, [*SHORT, LIMITS])
    again = simulate(planned, store, resume=True)
    assert again[1].run.id == first[0].run.id
    assert again[1].outcome.trace == first[0].outcome.trace
    assert again[1].outcome.measure("db01", "iops") == first[0].outcome.measure("db01", "iops")
    assert len(store.list()) == 3
    monkeypatch.setattr(planned.system, "simulate", _never)
    whole = simulate(planned, store, resume=True)
    assert [own.outcome.trace for own in whole] == [own.outcome.trace for own in again]
    assert [own.outcome.measure("db01", "iops").value for own in whole] == pytest.approx([100, 200, 300], rel=0.02)
    assert whole[0].outcome.series[0].values == again[0].outcome.series[0].values


def _never(*_: object) -> None:
    raise AssertionError


def test_other_seeds_versions_and_damaged_runs_are_done(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan_simulation(CAP, [*SHORT, Axis("vms.db01.iops_limit", (200,))])
    first = simulate(planned, store)[0].run.id
    other = plan_simulation(CAP, [*SHORT, Axis("vms.db01.iops_limit", (200,))], seed=5)
    assert simulate(other, store, resume=True)[0].run.id != first
    (store.files_of(first) / "simulation.json").write_text("{")
    second = simulate(planned, store, resume=True)[0].run.id
    assert second != first
    monkeypatch.setattr("leadline.app.simulate.simulating_kept.__version__", "9.9")
    assert simulate(planned, store, resume=True)[0].run.id not in (first, second)


def test_kill_9_loses_only_what_was_not_done(tmp_path: Path) -> None:
    code = "from leadline.faces.cli.main import run; run()"
    axes = [f"vms.db01.iops_limit={','.join(str(100 + n) for n in range(60))}", "timing.measure_s=3000"]
    words = [sys.executable, "-c", code, "simulate", str(CAP), *(w for axis in axes for w in ("--vary", axis)), "-q"]
    process = subprocess.Popen(words, env={**os.environ, "LEADLINE_HOME": str(tmp_path)}, stdout=subprocess.DEVNULL)
    store, deadline = RunStore(tmp_path), time.monotonic() + 60.0
    # Several are simulated at once, and a later one may be kept first.
    first_two = {"v00", "v01"}
    while not first_two <= {run.id.rpartition(".")[2] for run in store.list()} and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    kept = {run.id for run in store.list()}
    assert first_two <= {run_id.rpartition(".")[2] for run_id in kept}
    planned = plan_simulation(CAP, [Axis("vms.db01.iops_limit", (100, 101)), Axis("timing.measure_s", (3000,))])
    assert {own.run.id for own in simulate(planned, store, resume=True)} <= kept


def test_without_dask_it_says_what_to_install(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    planned = plan_simulation(CAP, [*SHORT])
    with pytest.raises(ToolError, match=r"not installed.*pip install 'leadline\[dask\]'"):
        simulate(planned, store, cluster="tcp://127.0.0.1:8786")


class _Client:
    """As much of distributed.Client as is used, in this process."""

    version = __version__
    cancelled = 0

    def __init__(self, address: str, timeout: float) -> None:
        if "nowhere" in address:
            raise OSError(address, timeout)

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, work: Any) -> dict[str, str]:
        del work
        return {"tcp://worker": self.version}

    def submit(self, work: Any, *given: Any, pure: bool) -> _Future:
        assert not pure
        return _Future(work(*given))

    def cancel(self, futures: list[_Future]) -> None:
        _Client.cancelled += len(futures)


class _Future:
    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self) -> Any:
        return self._value

    def release(self) -> None:
        pass


def _backwards(futures: Iterable[_Future]) -> Iterator[_Future]:
    yield from reversed(list(futures))


@pytest.fixture
def fake_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("distributed")
    module.Client, module.as_completed = _Client, _backwards
    monkeypatch.setitem(sys.modules, "distributed", module)


def test_a_cluster_gives_what_this_machine_gives(store: RunStore, fake_cluster: None) -> None:
    planned = plan_simulation(CAP, [*SHORT, LIMITS])
    told: list[tuple[float, int, int]] = []
    there = simulate(planned, store, lambda *now: told.append(now), cluster="tcp://somewhere:8786")
    here = simulate(planned, store)
    assert [own.outcome.trace for own in there] == [own.outcome.trace for own in here]
    assert [own.variant.label for own in there] == [own.variant.label for own in here]
    assert told[-1][0] == pytest.approx(1.0)


def test_a_cluster_that_is_not_there_or_not_ours_is_told(
    store: RunStore, fake_cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan_simulation(CAP, [*SHORT])
    with pytest.raises(ToolError, match="no scheduler"):
        simulate(planned, store, cluster="tcp://nowhere:8786")
    monkeypatch.setattr(_Client, "version", "0.0.1")
    with pytest.raises(ToolError, match="workers with Leadline"):
        simulate(planned, store, cluster="tcp://somewhere:8786")


def test_a_real_cluster(store: RunStore) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    planned = plan_simulation(CAP, [*SHORT, LIMITS])
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = simulate(planned, store, cluster=cluster.scheduler_address)
    here = simulate(planned, store)
    assert [own.outcome.trace for own in there] == [own.outcome.trace for own in here]
