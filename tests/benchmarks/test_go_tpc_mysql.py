"""go-tpc on MySQL: a real run of TPC-C on a MariaDB with a port, whose user needs no password."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.app.measure.benching import plan, run
from leadline.benchmarks._database.load import ask
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import LeadlineError
from leadline.core.model.workload import parse_workload
from leadline.core.system.secret import Secret
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore
from tests.conftest import ROOT

BIN = ROOT / ".tools" / "bin"
SUMMARY = re.compile(r"\[Summary\] (\w+) +- Takes\(s\): [\d.]+, Count: (\d+)")
WORKLOAD = """\
name: t
database: {tool: go-tpc, engine: mysql, script: tpcc, scale: 1, clients: 2}
timing: {warm_up_s: 0, measure_s: 5, rounds: 1}
"""
# Who is root needs no password and must not come by the port.
USERS = """\
delete from mysql.global_priv where user = 'root' and host <> 'localhost';
flush privileges;
create database bench;
create user bench@127.0.0.1;
grant all on bench.* to bench@127.0.0.1;
"""
needs_all = pytest.mark.skipif(
    any(find_program(name) is None for name in ("mariadb-install-db", "mariadbd", "mariadb"))
    or not (find_program("go-tpc") or (BIN / "go-tpc").is_file()),
    reason="MariaDB or go-tpc is not installed",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The DSN of a MariaDB with a port of this machine alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, user = tmp_path / "data", ["--user=root"] if os.geteuid() == 0 else []
    make = [find_program("mariadb-install-db") or "", "--no-defaults", f"--datadir={data}", "--skip-test-db", "--force"]
    subprocess.run([*make, "--auth-root-authentication-method=normal"], check=True, capture_output=True, timeout=120)
    (tmp_path / "users.sql").write_text(USERS)
    words = [find_program("mariadbd") or "", "--no-defaults", *user, f"--datadir={data}", "--skip-name-resolve"]
    words += ["--bind-address=127.0.0.1", f"--port={port}", f"--socket={tmp_path / 's.sock'}"]
    words += [f"--init-file={tmp_path / 'users.sql'}", f"--pid-file={tmp_path / 'pid'}"]
    dsn = f"mysql://bench@127.0.0.1:{port}/bench"
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log) as process,
    ):
        try:
            for _ in range(120):
                try:
                    ask(dsn, Secret(), "select 1")
                    break
                except LeadlineError:
                    time.sleep(0.5)
            yield dsn
        finally:
            process.kill()


@pytest.mark.real
@needs_all
def test_counts_equal_those_of_go_tpc_on_mysql(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{BIN}")
    store = RunStore(tmp_path / "runs")
    done = run(plan(parse_workload(WORKLOAD, "t.yaml"), Target(server, server)), store)
    counts = dict(SUMMARY.findall((store.files_of(done.id) / "round-1" / "tpcc.txt").read_text()))
    pooled = {part.name: part for part in done.pooled()}
    assert len(pooled) == 5
    for name, part in pooled.items():
        assert part.count == int(counts[name.removesuffix(" transaction")])
        assert part.histogram is not None
        assert part.histogram.total == part.count
    left = "select count(*) from information_schema.tables where table_schema = 'bench'"
    assert ask(server, Secret(), left) == [["0"]]
