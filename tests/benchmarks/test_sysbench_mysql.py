"""sysbench on MySQL: what is refused, and real runs on a throw-away MariaDB, counted by the server as well."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from leadline.app.measure.benching import plan, run
from leadline.app.measure.rounds import Talk
from leadline.app.read.importing import import_paths
from leadline.benchmarks import sysbench
from leadline.benchmarks._database import throwaway_mysql
from leadline.benchmarks._database.load import ask, reached
from leadline.core.contracts.benchmark import LoadPlan
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.result import Tick
from leadline.core.model.workload import Workload, find_workload, parse_workload
from leadline.core.system import dsn
from leadline.core.system.secret import Secret
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore
from tests.benchmarks.throwaway import server_processes

SECRET = "not-to-be-seen/any%where"
needs_all = pytest.mark.skipif(
    any(find_program(name) is None for name in ("mariadb-install-db", "mariadbd", "mariadb", "sysbench")),
    reason="MariaDB or sysbench is not installed",
)


def workload(settings: str = "script: oltp_read_write", seconds: int = 2) -> Workload:
    timing = f"{{warm_up_s: 0, measure_s: {seconds}, rounds: 1}}"
    text = f"name: t\ndatabase: {{tool: sysbench, engine: mysql, scale: 1, clients: 2, {settings}}}\ntiming: {timing}\n"
    return parse_workload(text, "t.yaml")


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("db")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadPlan]:
    """A server with sysbench's tables, and a user who needs a password."""
    folder = tmp_path_factory.mktemp("filled")
    made = sysbench.plan(workload(), Target(str(folder)))
    try:
        sysbench.prepare(made, folder, lambda _: None)
        ask(_plain(made), Secret(), f"create user guest@localhost identified by '{SECRET}'; create database spare")
        ask(_plain(made), None, "grant all on bench.* to guest@localhost; grant all on spare.* to guest@localhost")
        yield made
    finally:
        sysbench.clean(made)


def _plain(made: LoadPlan) -> str:
    return dsn.together(reached(made))


def _guest(made: LoadPlan, database: str = "bench", password: str = SECRET) -> str:
    return dsn.together(reached(made) | {"user": "guest", "password": password, "dbname": database})


def _counted(made: LoadPlan) -> dict[str, int]:
    """The server's own counters."""
    return {name: int(count) for name, count in ask(_plain(made), None, "show global status like 'Com\\_%'")}


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    for target, what in (
        ("mysql:///shop", "neither `new`, nor a folder"),
        ("mysql://me@db1/shop?tls=on", "neither `new`, nor a folder"),
        ("mysql://me@db1", "no database named"),
        ("host=db1 dbname=shop", "a DSN of postgresql, and a workload of mysql"),
        (f"mysql://me:{quote(SECRET, safe='')}@db1/shop", "tables would be dropped"),
    ):
        with pytest.raises(UsageError, match=what) as caught:
            plan(workload(), Target(target))
        assert SECRET not in str(caught.value)
        assert "seen" not in str(caught.value)
    other = parse_workload("name: t\ndatabase: {tool: sysbench, script: oltp_insert}\n", "t.yaml")
    with pytest.raises(UsageError, match="a DSN of mysql, and a workload of postgresql"):
        plan(other, Target("mysql://me@db1/shop"))
    with pytest.raises(ToolError, match="GiB that may be used"):
        plan(workload("script: oltp_insert").model_copy(update={"database": _huge()}), Target("new"))
    (tmp_path / "leadline-bench-mysql").mkdir()
    with pytest.raises(UsageError, match="there already"):
        plan(workload(), Target(str(tmp_path)))


def _huge() -> object:
    own = find_workload("sysbench-mysql").database
    assert own is not None
    return own.model_copy(update={"scale": 1_000_000})


def test_a_workload_becomes_words_without_the_password(tmp_path: Path) -> None:
    words = sysbench.command(plan(workload(), Target(str(tmp_path))))
    assert words[:4] == ["sysbench", "oltp_read_write", "--db-driver=mysql", "--threads=2"]
    assert words[4:7] == ["--mysql-host=localhost", "--mysql-user=root", "--mysql-db=bench"]
    assert words[7] == f"--mysql-socket={tmp_path.resolve() / 'leadline-bench-mysql' / 's.sock'}"
    target = f"mysql://me:{quote(SECRET, safe='')}@db1:3307/shop"
    made = plan(workload(), Target(target, target))
    assert made.secret == Secret(SECRET)
    assert SECRET not in repr(made)
    assert made.target.name == made.places["database"].path == "mysql://me@db1:3307/shop"
    words = sysbench.command(made)
    assert words[4:8] == ["--mysql-host=db1", "--mysql-port=3307", "--mysql-user=me", "--mysql-db=shop"]


@pytest.mark.real
@needs_all
def test_a_run_has_its_histogram_and_leaves_nothing(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYSQL_PWD", "of-another-server")
    made = plan(workload(), Target(str(folder)))
    done = run(made, RunStore(tmp_path), seed=7)
    assert list(folder.iterdir()) == []
    assert server_processes(made) == []
    pooled = {part.name: part for part in done.pooled()}
    transactions = pooled["oltp transaction"]
    assert transactions.histogram is not None
    assert transactions.histogram.total == transactions.count > 20
    assert pooled["oltp query"].count >= 20 * transactions.count
    assert len(done.rounds[0].ticks) >= 1


@pytest.mark.real
@needs_all
def test_the_server_counts_the_same(filled: LoadPlan, tmp_path: Path) -> None:
    """Measure the measurer: 137 transactions are asked for; the result and the server's own counters say so."""
    words = [*sysbench.command(filled), "--threads=1", "--time=0", "--events=137", "--histogram=on", "run"]
    before = _counted(filled)
    said = subprocess.run(words, check=True, capture_output=True, timeout=60).stdout
    after = _counted(filled)
    (tmp_path / "known.txt").write_bytes(said)
    (result,) = import_paths([tmp_path / "known.txt"]).capture.results
    transaction, query = result.operation("transaction"), result.operation("query")
    assert transaction is not None
    assert query is not None
    assert transaction.histogram is not None
    assert (transaction.count, transaction.histogram.total) == (137, 137)
    counted = {name: after[name] - before[name] for name in after}
    assert counted["Com_commit"] == counted["Com_begin"] == transaction.count
    assert counted["Com_stmt_execute"] == query.count == 20 * 137
    kinds = {"Com_select": 14, "Com_update": 2, "Com_delete": 1, "Com_insert": 1}
    assert {name: counted[name] for name in kinds} == {name: 137 * count for name, count in kinds.items()}


@pytest.mark.real
@needs_all
def test_a_password_is_seen_nowhere(filled: LoadPlan, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = RunStore(tmp_path)
    seen: list[bytes] = []

    def tick(_: Tick) -> None:
        for entry in (*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")):
            try:
                seen.append(entry.read_bytes())
            except OSError:
                continue

    reads = workload("script: oltp_point_select")
    made = plan(reads, Target(_guest(filled)))
    assert made.read_only
    done = run(made, store, talk=Talk(lambda _, __: None, tick, lambda _: None))
    assert done.pooled()[0].count > 100
    assert any(b"oltp_point_select" in words for words in seen)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for text in (kept, b"".join(seen), "".join(capfd.readouterr()).encode()):
        for form in (SECRET, quote(SECRET, safe="")):
            assert form.encode() not in text
    with pytest.raises(LeadlineError, match="Access denied for user 'guest'") as caught:
        plan(reads, Target(_guest(filled, password="wrong-secret")))
    assert "wrong-secret" not in str(caught.value)
    assert ask(_plain(filled), Secret(), "select count(*) from sbtest1") == [["100000"]]  # nothing was dropped


@pytest.mark.real
@needs_all
def test_tables_in_a_database_that_is_named_are_made_and_dropped(filled: LoadPlan, tmp_path: Path) -> None:
    target = _guest(filled, "spare")
    with pytest.raises(UsageError, match="--destroy-data"):
        plan(workload("script: oltp_read_only"), Target(target))  # the tables are not there
    made = plan(workload(), Target(target, target))
    count = "select count(*) from information_schema.tables where table_schema = 'spare'"
    for _ in range(2):  # the second time over the tables that are there
        sysbench.prepare(made, tmp_path, lambda _: None)
        assert ask(_plain(filled), Secret(), count) == [["1"]]
    for _ in range(2):
        sysbench.clean(made)
    assert ask(_plain(filled), Secret(), count) == [["0"]]


@pytest.mark.real
@needs_all
def test_ctrl_c_leaves_no_server_and_a_failure_is_one_error(tmp_path: Path, folder: Path) -> None:
    def tick(_: Tick) -> None:
        raise KeyboardInterrupt

    store = RunStore(tmp_path)
    made = plan(workload(seconds=60), Target(str(folder)))
    with pytest.raises(KeyboardInterrupt):
        run(made, store, talk=Talk(lambda _, __: None, tick, lambda _: None))
    assert server_processes(made) == []
    assert list(folder.iterdir()) == []
    assert [own.state for own in store.list()] == ["interrupted"]
    script = tmp_path / "bad.lua"
    script.write_text("function event() no_such_function() end\n")
    with pytest.raises(ToolError, match="sysbench failed: "):
        run(plan(workload(f"script: '{script}'"), Target(str(folder))), store)
    assert list(folder.iterdir()) == []


@pytest.mark.real
@needs_all
def test_a_server_that_does_not_start_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = throwaway_mysql.base_of(str(tmp_path))
    monkeypatch.setattr(throwaway_mysql, "_SOCKET", "none/s.sock")
    with pytest.raises(ToolError, match=r"a throw-away server could not be made: .*Bind on unix socket"):
        throwaway_mysql.start(base, tmp_path / "said.txt", 1)
    throwaway_mysql.stop(base)
    throwaway_mysql.stop(base)
    assert not base.exists()
    with pytest.raises(ToolError, match=r"Can't connect|2002"):
        ask(f"mysql://me@localhost/shop?socket={tmp_path}/none.sock", None, "select 1")
