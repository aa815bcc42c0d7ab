"""The go-tpc driver: what it refuses, its words, and real runs of TPC-C on a throw-away PostgreSQL."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from leadline.app.measure.benching import driver_of, plan, run
from leadline.benchmarks import go_tpc
from leadline.benchmarks._database.load import PLACE, ask, reached, start
from leadline.core.contracts.benchmark import LoadPlan, Measured, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Watch
from leadline.core.model.workload import Workload, find_workload, parse_workload
from leadline.core.system import dsn
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore
from tests.benchmarks.throwaway import open_folder, server_processes
from tests.conftest import FIXTURES, ROOT

SECRET = "not-to-be-seen-anywhere"
TYPES = ("NEW_ORDER", "PAYMENT", "ORDER_STATUS", "DELIVERY", "STOCK_LEVEL")
SUMMARY = re.compile(r"\[Summary\] (\w+) +- Takes\(s\): [\d.]+, Count: (\d+)")
BIN = ROOT / ".tools" / "bin"
needs_both = pytest.mark.skipif(
    any(find_program(name) is None for name in ("initdb", "postgres"))
    or not (find_program("go-tpc") or (BIN / "go-tpc").is_file()),
    reason="PostgreSQL or go-tpc is not installed",
)


@pytest.fixture(autouse=True)
def _tools_in_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{BIN}")


def workload(settings: str = "script: tpcc, scale: 1, clients: 2", seconds: int = 10) -> Workload:
    timing = f"{{warm_up_s: 0, measure_s: {seconds}, rounds: 1}}"
    return parse_workload(f"name: t\ndatabase: {{tool: go-tpc, {settings}}}\ntiming: {timing}\n", "t.yaml")


def test_what_cannot_be() -> None:
    assert driver_of(workload())[0] == "go-tpc"
    with pytest.raises(UsageError, match="no benchmark of go-tpc"):
        plan(workload("script: tpcb-like"), Target("new"))
    with pytest.raises(UsageError, match="no rate: go-tpc runs as fast as it goes"):
        plan(workload("script: tpcc, rate_per_s: 10"), Target("new"))
    with pytest.raises(UsageError, match="warehouse") as caught:
        plan(workload(), Target(f"postgresql://me:{SECRET}@db1/shop"))
    assert SECRET not in str(caught.value)
    on_mysql = "engine: mysql, script: tpcc, scale: 1"
    with pytest.raises(UsageError, match="go-tpc has no sockets of MySQL"):
        plan(workload(on_mysql), Target("new"))
    target = f"mysql://me:{SECRET}@db1/shop"
    with pytest.raises(UsageError, match="every user of this machine can read it") as caught:
        plan(workload(on_mysql), Target(target, target))
    assert SECRET not in str(caught.value)


def test_words_have_no_password() -> None:
    made = plan(workload(), Target("new"))
    base = made.places[PLACE].path
    assert go_tpc.NOTE in made.notes
    words = ["go-tpc", "tpcc", "run", "--driver", "postgres", "--host", ".", "--port", "5432", "--db", "postgres"]
    words += ["--user", "postgres", "--conn-params", f"sslmode=disable&host={base}", "--warehouses", "1"]
    assert go_tpc.command(made, "run") == words
    target = f"postgresql://me:{SECRET}@db1:5433/shop?sslmode=require"
    made = plan(find_workload("tpch"), Target(target, target))
    words = ["go-tpc", "tpch", "prepare", "--driver", "postgres", "--host", "db1", "--port", "5433", "--db", "shop"]
    words += ["--user", "me", "--conn-params", "sslmode=require", "--sf", "1"]
    assert go_tpc.command(made, "prepare") == words
    target = "mysql://me@db1/shop"
    made = plan(workload("engine: mysql, script: tpcc, scale: 3"), Target(target, target))
    words = ["go-tpc", "tpcc", "check", "--driver", "mysql", "--host", "db1", "--port", "3306", "--db", "shop"]
    assert go_tpc.command(made, "check") == [*words, "--user", "me", "--warehouses", "3"]


def test_the_summary_says_how_much_was_done() -> None:
    text = (FIXTURES / "go_tpc" / "tpcc-postgresql.txt").read_text()
    (load,) = go_tpc.load_of(text)
    assert (load.duration_s, load.transactions) == (10.0, sum(int(count) for _, count in SUMMARY.findall(text)))
    assert load.busy_s == pytest.approx(19.2295)
    assert go_tpc.load_of("Finished\n") == ()


@pytest.mark.real
@needs_both
def test_counts_equal_those_of_go_tpc_and_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TPC-C on one warehouse for 10 s: counts are go-tpc's, new orders are the server's, nothing is left."""
    orders: list[int] = []
    measure = go_tpc.measure

    def counted(made: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
        plain = dsn.together(reached(made))
        before = ask(plain, None, "select count(*) from orders")[0][0]
        done = measure(made, step, folder, watch)
        orders.append(ask(plain, None, "select count(*) from orders")[0][0] - before)
        return done

    monkeypatch.setattr(go_tpc, "measure", counted)
    store = RunStore(tmp_path)
    with open_folder() as folder:
        made = plan(workload(), Target(str(folder)))
        done = run(made, store, seed=7)
        assert list(folder.iterdir()) == []
    assert server_processes(made) == []
    printed = (store.files_of(done.id) / "round-1" / "tpcc.txt").read_text()
    counts = {name: int(count) for name, count in SUMMARY.findall(printed)}
    pooled = {part.name: part for part in done.pooled()}
    assert set(pooled) == {f"{name} transaction" for name in TYPES}
    for name in TYPES:
        part = pooled[f"{name} transaction"]
        assert part.count == counts[name]
        assert part.histogram is not None
        assert part.histogram.total == counts[name]
    # One new order in a hundred is rolled back on purpose and counted.
    assert 0.95 * counts["NEW_ORDER"] <= orders[0] <= counts["NEW_ORDER"]
    assert done.rounds[0].ticks
    assert go_tpc.NOTE in done.notes
    assert "begin to check warehouse 1" in (store.files_of(done.id) / "round-1" / "check.txt").read_text()


@pytest.mark.real
@needs_both
def test_a_failure_is_one_error(tmp_path: Path) -> None:
    with open_folder() as folder:
        made = plan(workload(), Target(str(folder)))
        try:
            start(made, tmp_path)
            with pytest.raises(ToolError, match="go-tpc failed"):
                go_tpc.measure(made, Step("round-2", 2, 1), tmp_path, lambda _: True)
        finally:
            go_tpc.clean(made)
        assert list(folder.iterdir()) == []
