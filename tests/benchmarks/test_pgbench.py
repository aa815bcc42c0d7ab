"""The pgbench driver: what it refuses, and real runs on a throw-away server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from leadline.app.measure.benching import capture_of, driver_of, plan, run
from leadline.app.measure.rounds import Talk
from leadline.app.read.importing import import_paths
from leadline.benchmarks import pgbench
from leadline.benchmarks._database.load import LOG_PLACE, PLACE, ask, reached
from leadline.core.contracts.benchmark import LoadPlan, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.result import Tick
from leadline.core.model.vocabulary import EntityKind
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system import dsn
from leadline.core.system.secret import Secret
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore
from tests.benchmarks.throwaway import open_folder, server_processes

SECRET = "not-to-be-seen-anywhere"
needs_postgresql = pytest.mark.skipif(
    any(find_program(name) is None for name in ("initdb", "postgres", "pgbench")), reason="PostgreSQL is not installed"
)


def workload(settings: str = "scale: 1, clients: 2", timing: str = "warm_up_s: 0, measure_s: 3, rounds: 1") -> Workload:
    return parse_workload(f"name: t\ndatabase: {{{settings}}}\ntiming: {{{timing}}}\n", "t.yaml")


@pytest.fixture(scope="module")
def filled() -> Iterator[LoadPlan]:
    """A server with pgbench's tables, whose user asks for a password."""
    with open_folder() as folder:
        made = pgbench.plan(workload(), Target(str(folder)))
        try:
            pgbench.prepare(made, folder, lambda _: None)
            ask(_plain(made), None, f"create role guest login superuser password '{SECRET}'")
            hba = Path(made.places[PLACE].path) / "data" / "pg_hba.conf"
            hba.write_text("local all guest scram-sha-256\nlocal all all trust\n")
            ask(_plain(made), None, "select pg_reload_conf()")
            yield made
        finally:
            pgbench.clean(made)


def _plain(made: LoadPlan) -> str:
    return dsn.together(reached(made))


def _guest(made: LoadPlan) -> str:
    return dsn.together({**reached(made), "user": "guest", "password": SECRET})


def test_the_driver_is_the_tool_that_is_named() -> None:
    assert driver_of(workload())[0] == "pgbench"


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither `new`, nor a folder"):
        pgbench.plan(workload(), Target("postgres"))
    with pytest.raises(UsageError, match="no database named"):
        pgbench.plan(workload(), Target("host=db1"))
    with pytest.raises(UsageError, match="neither built in nor a file"):
        pgbench.plan(workload("script: none.sql"), Target("new"))
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    with pytest.raises(UsageError, match="a path no socket can have"):
        pgbench.plan(workload(), Target(str(deep)))
    with pytest.raises(ToolError, match="GiB that may be used"):
        pgbench.plan(workload("scale: 90000000"), Target("new"))


def test_tables_are_not_dropped_unless_the_very_same_database_is_named() -> None:
    target = f"postgresql://me:{SECRET}@db1/shop"
    for destroy in (None, "postgresql://me@db1/other", "postgresql://me@db2/shop"):
        with pytest.raises(UsageError, match="tables would be dropped") as caught:
            pgbench.plan(workload(), Target(target, destroy))
        assert SECRET not in str(caught.value)
    made = pgbench.plan(workload(), Target(target, target))
    assert SECRET not in repr(made)
    assert made.secret == Secret(SECRET)
    words = pgbench.command(made, Step("round-1", 3.0, 7), Path("x"), ("-T", "3"))
    assert SECRET not in " ".join(words)
    assert words[-1] == "user=me dbname=shop host=db1"


def test_a_workload_becomes_words(tmp_path: Path) -> None:
    script = tmp_path / "own.sql"
    script.write_text("select 1;\n")
    settings = f"script: '{script}', scale: 3, clients: 4, threads: 8, rate_per_s: 50.5"
    made = pgbench.plan(workload(settings), Target("new"))
    words = pgbench.command(made, Step("round-1", 3.0, 7), tmp_path, ("-T", "3"))
    assert words[1:7] == ["-c", "4", "-j", "4", "-T", "3"]
    assert {"--random-seed=7", "--rate=50.5", f"--file={script}", "--scale=3", "--no-vacuum"} <= set(words)


@pytest.mark.real
@needs_postgresql
def test_a_run_has_every_transaction_and_leaves_nothing(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    with open_folder() as folder:
        made = plan(workload("scale: 1, clients: 2, threads: 2, script: simple-update"), Target(str(folder)))
        done = run(made, store, seed=7)
        assert list(folder.iterdir()) == []
    assert server_processes(made) == []
    (pooled,) = done.pooled()
    assert pooled.name == "simple-update transaction"
    assert pooled.histogram is not None
    assert pooled.histogram.total == pooled.count > 100
    assert pooled.percentiles_ms["p50"][0] == pytest.approx(pooled.mean_ms, rel=0.9)  # milliseconds both
    ticks = done.rounds[0].ticks
    assert len(ticks) >= 2
    assert sum(tick.per_s for tick in ticks) / len(ticks) == pytest.approx(pooled.per_s, rel=0.25)
    said = (store.files_of(done.id) / "round-1" / "pgbench.txt").read_text()
    assert f"number of transactions actually processed: {pooled.count:.0f}\n" in said
    capture = capture_of(done.id, store)
    assert any(g.entities[0].name == "postgres" for g in capture.of("db_tps", EntityKind.DATABASE))


@pytest.mark.real
@needs_postgresql
def test_the_log_may_have_a_folder_of_its_own_and_both_go(tmp_path: Path) -> None:
    with open_folder() as folder:
        data, log = folder / "data", folder / "log"
        data.mkdir(mode=0o755)
        log.mkdir(mode=0o755)
        made = pgbench.plan(workload(), Target(str(data), roles={"wal": str(log)}))
        assert not any(log.iterdir())
        try:
            pgbench.prepare(made, tmp_path, lambda _: None)
            place = Path(made.places[LOG_PLACE].path)
            assert place.parent == log
            assert (Path(made.places[PLACE].path) / "data" / "pg_wal").readlink() == place / "wal"
            assert any(file.stat().st_size == 16 * 2**20 for file in (place / "wal").iterdir())
        finally:
            pgbench.clean(made)
        assert not any(data.iterdir())
        assert not any(log.iterdir())
    with pytest.raises(UsageError, match="--wal"):
        pgbench.plan(workload(), Target("new", roles={"wal": str(tmp_path / "none")}))


@pytest.mark.real
@needs_postgresql
def test_a_known_number_of_transactions_is_counted(filled: LoadPlan, tmp_path: Path) -> None:
    """Measure the measurer: two clients do 311 transactions each, and 622 are in the result."""
    words = pgbench.command(filled, Step("round-1", 1.0, 7), tmp_path, ("-t", "311"))
    subprocess.run([str(find_program("pgbench")), *words[1:]], check=True, capture_output=True, timeout=60)
    assert len(list(tmp_path.glob("pgbench_log.*"))) == 2  # one of each thread
    assert pgbench.merge_logs(tmp_path, tmp_path / "tpcb-like") == 622
    assert [path.name for path in tmp_path.iterdir()] == ["tpcb-like"]
    (result,) = import_paths([tmp_path / "tpcb-like"]).capture.results
    operation = result.operation("transaction")
    assert operation is not None
    assert operation.count == 622
    assert operation.histogram is not None
    assert operation.histogram.total == 622


@pytest.mark.real
@needs_postgresql
def test_a_warm_up_ends_when_it_is_told_to(filled: LoadPlan, tmp_path: Path) -> None:
    seen: list[Tick] = []

    def watch(tick: Tick) -> bool:
        seen.append(tick)
        return len(seen) < 2

    found = pgbench.measure(filled, Step("warm-up", 60.0, 1), tmp_path, watch)
    assert found.ended_early
    assert 2 <= len(found.ticks) <= 4
    said = (tmp_path / "warm-up" / "pgbench.txt").read_text()
    lines = found.files[0].read_text().splitlines()
    assert f"number of transactions actually processed: {len(lines)}\n" in said  # its summary, nothing cut


@pytest.mark.real
@needs_postgresql
def test_a_password_is_stored_nowhere(filled: LoadPlan, tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    reads = workload("script: select-only, clients: 1", "warm_up_s: 0, measure_s: 3, rounds: 1")
    made = plan(reads, Target(_guest(filled)))
    assert made.read_only
    seen: list[bytes] = []

    def tick(_: Tick) -> None:
        for entry in (*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")):
            with suppress(OSError):
                seen.append(entry.read_bytes())

    done = run(made, store, talk=Talk(lambda _, __: None, tick, lambda _: None))
    assert done.pooled()[0].count > 100
    assert any(b"PGPASSFILE=/proc/self/fd/" in words for words in seen)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept + b"".join(seen)
    assert ask(_plain(filled), None, "select count(*) from pgbench_branches")[0][0] == 1  # nothing was dropped
    with pytest.raises(LeadlineError, match="password authentication failed") as caught:
        plan(reads, Target(_guest(filled).replace(SECRET, "wrong-secret")))
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.real
@needs_postgresql
def test_tables_in_a_database_that_is_named_are_made_and_dropped(filled: LoadPlan, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(_plain(filled), autocommit=True) as connection:
        connection.execute("create database spare")
    target = _guest(filled).replace("dbname=postgres", "dbname=spare")
    with pytest.raises(UsageError, match="--destroy-data"):
        pgbench.plan(workload("script: select-only"), Target(target))  # the tables are not there
    made = pgbench.plan(workload(), Target(target, target))
    pgbench.prepare(made, tmp_path, lambda _: None)
    count = "select count(*) from pg_tables where tablename like 'pgbench%%'"
    assert ask(made.places[PLACE].path, Secret(SECRET), count)[0][0] == 4
    pgbench.clean(made)
    pgbench.clean(made)
    assert ask(made.places[PLACE].path, Secret(SECRET), count)[0][0] == 0


@pytest.mark.real
@needs_postgresql
def test_ctrl_c_leaves_no_server_and_a_failure_is_one_error(tmp_path: Path) -> None:
    def tick(_: Tick) -> None:
        raise KeyboardInterrupt

    store = RunStore(tmp_path)
    with open_folder() as folder:
        made = plan(workload(), Target(str(folder)))
        with pytest.raises(KeyboardInterrupt):
            run(made, store, talk=Talk(lambda _, __: None, tick, lambda _: None))
        assert server_processes(made) == []
        assert list(folder.iterdir()) == []
        assert [own.state for own in store.list()] == ["interrupted"]
        script = tmp_path / "bad.sql"
        script.write_text("select no_such_function();\n")
        broken = plan(workload(f"script: '{script}', clients: 1"), Target(str(folder)))
        with pytest.raises(ToolError, match=r"pgbench failed: .*no_such_function"):
            run(broken, store)
        assert list(folder.iterdir()) == []


def test_what_pgbench_logged_becomes_the_load(tmp_path: Path) -> None:
    log = tmp_path / "tpcb-like"
    log.write_text("0 1 2000 0 100 500000\n1 1 4000 0 101 0\n0 2 failed 0 102 0\n0 3 1000 0 104 500000\n")
    load = pgbench.load_of(log, [Tick(5.0, 1.0)])
    assert (load.clients, load.transactions, load.least, load.most) == (2, 4, 1, 3)
    assert load.busy_s == pytest.approx(0.007)
    assert load.duration_s == 5.0
    assert pgbench.load_of(log, []).duration_s == pytest.approx(4.002)
