"""Runs on disk: what is kept is what was there, whatever ends the process."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.run import Round, Run, pool
from leadline.core.statistics.steady import SteadyState
from leadline.stores.runs import RunStore, document


def made_run(name: str = "20261121-000000-x-0001", speed: float = 1.0) -> Run:
    latencies = [value / speed for value in (1.0, 2.0, 4.0)]
    histogram = Histogram.of(latencies, [1.02 * v for v in latencies], [9000, 900, 100], "ms")
    read = Operation("read", 100.0 * speed, 8192e2, 10_000, {"mean": 1.2 / speed}, histogram)
    ticks = tuple(Tick(float(i), 100.0 * speed + i % 3, float("nan"), 4.0) for i in range(1, 31))
    return Run(
        id=name,
        name="x",
        state="done",
        tool="fio",
        target="/srv",
        started="2026-11-21T00:00:00+00:00",
        seed=7,
        workload={"name": "x", "io": [{"name": "data"}]},
        commands=(("fio", "x.fio"),),
        warm_up=SteadyState(True, 1.0, 2.0, 5),
        rounds=(Round("round-1", (Result("fio", "data", (read,), 30.0),), ticks),),
        host={"host": "h"},
        notes=("n",),
    )


def test_what_is_kept_is_what_was_there(tmp_path: Path) -> None:
    store, run = RunStore(tmp_path), made_run()
    store.save(run)
    again = RunStore(tmp_path).get(run.id[:10])
    assert json.dumps(document(again)) == json.dumps(document(run))
    first, second = again.rounds[0].results[0].operations[0].histogram, run.rounds[0].results[0].operations[0].histogram
    assert first is not None
    assert second is not None
    assert first.quantile(0.99) == second.quantile(0.99)
    assert math.isnan(again.rounds[0].ticks[0].bytes_per_s)


def test_a_run_whose_process_is_gone_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(tmp_path)
    store.save(replace(made_run(), state="running"), running=True)
    assert store.get("last").state == "running"
    monkeypatch.setattr("os.getpid", lambda: 2**22 + 1)  # no process has that number
    store.save(replace(made_run(), state="running"), running=True)
    assert [run.state for run in store.list()] == ["interrupted"]


def test_baselines_and_names(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for index in (1, 2):
        store.save(replace(made_run(f"20261121-00000{index}-x-000{index}"), started=f"2026-11-21T00:00:0{index}+00:00"))
    store.mark("before", ["20261121-000001-x-0001"])
    assert store.get("before").id.endswith("0001")
    assert store.get("last").id.endswith("0002")
    with pytest.raises(UsageError, match="2 runs begin so"):
        store.get("2026")
    with pytest.raises(UsageError, match="no such run"):
        store.get("%")
    store.mark("both", [run.id for run in store.list()])
    assert store.marks() == {
        "before": ("20261121-000001-x-0001",),
        "both": ("20261121-000001-x-0001", "20261121-000002-x-0002"),
    }
    with pytest.raises(UsageError, match="a baseline of 2 runs"):
        store.get("both")
    store.remove("20261121-000001-x-0001")
    assert store.marks() == {"both": ("20261121-000002-x-0002",)}
    store.mark("both", [])
    assert store.marks() == {}
    assert len(store.list()) == 1


def test_baselines_of_one_run_kept_by_an_earlier_version_are_taken_over(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.save(made_run())
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as base, base:
        base.execute("create table mark (name text primary key, run text not null) without rowid")
        base.execute("insert into mark values ('before', '20261121-000000-x-0001')")
    assert store.marks() == RunStore(tmp_path).marks() == {"before": ("20261121-000000-x-0001",)}
    assert store.get("before").id == "20261121-000000-x-0001"


def test_a_folder_or_file_that_cannot_be_used_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ToolError, match="LEADLINE_HOME"):
        RunStore(tmp_path / "file").list()
    (tmp_path / "runs.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(InputError, match="damaged"):
        RunStore(tmp_path).list()


def test_percentiles_are_of_the_merged_samples_and_need_samples_above() -> None:
    quick = Histogram.of([1.0], [1.01], [9500], "ms")
    slow = Histogram.of([100.0], [101.0], [500], "ms")
    found = pool("x", [Operation("read", histogram=quick, count=9500), Operation("read", histogram=slow, count=500)])
    assert found.percentiles_ms["p90"][0] < 2.0
    assert found.percentiles_ms["p99"] == (100.5, 100)  # the average of both p99 would be 50
    assert "p99.99" not in found.percentiles_ms


def test_a_mean_without_counts_is_weighed_by_the_rates_of_rounds_that_are_equally_long() -> None:
    parts = [Operation("fsync", rate, latency_ms={"mean": 1000.0 / rate}) for rate in (100.0, 300.0)]
    found = pool("x", parts)
    assert found.per_s == 200.0
    assert found.mean_ms == pytest.approx(5.0)  # 400 operations in two seconds
    assert math.isnan(found.count)
