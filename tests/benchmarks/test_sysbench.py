"""The sysbench driver: what it refuses, and real runs on a throw-away PostgreSQL."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from leadline.app.measure.benching import driver_of, plan, run
from leadline.app.read.importing import import_paths
from leadline.benchmarks import sysbench
from leadline.benchmarks._database.load import PLACE, ask, reached
from leadline.core.contracts.benchmark import LoadPlan, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import UsageError
from leadline.core.model.result import Tick
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system import dsn
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore
from tests.benchmarks.throwaway import open_folder, server_processes
from tests.conftest import FIXTURES

SECRET = "not-to-be-seen-anywhere"
needs_both = pytest.mark.skipif(
    any(find_program(name) is None for name in ("initdb", "postgres", "sysbench")),
    reason="PostgreSQL or sysbench is not installed",
)


def workload(settings: str = "script: oltp_read_write, scale: 1, clients: 2") -> Workload:
    timing = "{warm_up_s: 0, measure_s: 2, rounds: 1}"
    return parse_workload(f"name: t\ndatabase: {{tool: sysbench, {settings}}}\ntiming: {timing}\n", "t.yaml")


def test_what_cannot_be() -> None:
    assert driver_of(workload())[0] == "sysbench"
    with pytest.raises(UsageError, match="neither one of sysbench's nor a file"):
        plan(workload("script: tpcb-like"), Target("new"))
    with pytest.raises(UsageError, match="sbtest1, sbtest2") as caught:
        plan(workload("script: oltp_insert, scale: 2"), Target(f"postgresql://me:{SECRET}@db1/shop"))
    assert SECRET not in str(caught.value)


@pytest.mark.real
@needs_both
def test_a_run_has_its_histogram_and_leaves_nothing(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    with open_folder() as folder:
        made = plan(workload(), Target(str(folder)))
        done = run(made, store, seed=7)
        assert list(folder.iterdir()) == []
    assert server_processes(made) == []
    pooled = {part.name: part for part in done.pooled()}
    transactions = pooled["oltp transaction"]
    assert transactions.histogram is not None
    assert transactions.histogram.total == transactions.count > 20
    # 18 statements, begin and commit; a transaction that meets a deadlock is begun again, its queries count twice.
    said = (store.files_of(done.id) / "round-1" / "sysbench.txt").read_text()
    begun_again = int(re.search(r"ignored errors: +(\d+)", said)[1])  # type: ignore[index]
    assert 0 <= pooled["oltp query"].count - 20 * transactions.count <= 20 * begun_again
    assert len(done.rounds[0].ticks) >= 1


@pytest.mark.real
@needs_both
def test_known_counts_passwords_and_tables_on_a_server_that_is_named(tmp_path: Path) -> None:
    """Measure the measurer: 137 transactions are asked for and are in the result. The password is stored nowhere."""
    with open_folder() as folder:
        server = sysbench.plan(workload(), Target(str(folder)))
        try:
            sysbench.prepare(server, tmp_path, lambda _: None)
            plain = dsn.together(reached(server))
            ask(plain, None, f"create role guest login superuser password '{SECRET}'")
            base = Path(server.places[PLACE].path)
            (base / "data" / "pg_hba.conf").write_text("local all guest scram-sha-256\nlocal all all trust\n")
            ask(plain, None, "select pg_reload_conf()")
            guest = dsn.together({**reached(server), "user": "guest", "password": SECRET})

            store = RunStore(tmp_path / "home")
            reads = plan(workload("script: oltp_point_select, scale: 1, clients: 1"), Target(guest))
            assert reads.read_only
            assert run(reads, store).pooled()[0].count > 100
            kept = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
            assert SECRET.encode() not in kept

            made = plan(workload(), Target(guest, guest))
            sysbench.prepare(made, tmp_path, lambda _: None)  # over the tables that are there
            words = [*sysbench.command(server), "--time=0", "--events=137", "--histogram=on", "run"]
            said = subprocess.run(words, check=True, capture_output=True, timeout=60).stdout
            (tmp_path / "known.txt").write_bytes(said)
            operation = import_paths([tmp_path / "known.txt"]).capture.results[0].operation("transaction")
            assert operation is not None
            assert operation.histogram is not None
            assert (operation.count, operation.histogram.total) == (137, 137)
            _ends_early(tmp_path, made)
            for _ in range(2):
                sysbench.clean(made)
            assert ask(plain, None, "select count(*) from pg_tables where tablename like 'sbtest%'")[0][0] == 0
        finally:
            sysbench.clean(server)


def _ends_early(folder: Path, made: LoadPlan) -> None:
    seen: list[Tick] = []

    def watch(tick: Tick) -> bool:
        seen.append(tick)
        return len(seen) < 2

    found = sysbench.measure(made, Step("warm-up", 60.0, 1), folder, watch)
    assert found.ended_early
    assert 2 <= len(found.ticks) <= 4
    assert all(tick.per_s > 0 and tick.p99_ms > 0 for tick in found.ticks)


def test_what_sysbench_counted_becomes_the_load() -> None:
    text = (FIXTURES / "sysbench" / "oltp-rate.txt").read_text()
    load = sysbench.load_of(text)[0]
    assert (load.clients, load.transactions, load.duration_s) == (4, 240, 5.0236)
    assert load.busy_s == pytest.approx(0.37097)
    assert sysbench.load_of(text[:600]) == ()


def test_a_rate_that_sysbench_would_round_is_refused() -> None:
    text = "name: t\ndatabase: {tool: sysbench, script: oltp_read_write, rate_per_s: 1.4}\n"
    with pytest.raises(UsageError, match=r"1\.4, which sysbench rounds to 1"):
        sysbench.plan(parse_workload(text, "t.yaml"), Target("new"))
