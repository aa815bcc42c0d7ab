"""The PostgreSQL part of the recorder against a real server: waits, and no text that was not asked for."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.app.recorders import RecorderAsk, script
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.tools import find_program
from tests.recorders.test_recorders import names_in, read, recorded

INITDB, PG_CTL, PGBENCH = (find_program(name) for name in ("initdb", "pg_ctl", "pgbench"))
SECRET = "hunter2-in-a-literal"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(INITDB is None or PG_CTL is None or PGBENCH is None, reason="PostgreSQL is not installed"),
]


def _as_postgres(*command: str) -> None:
    user = {"user": "postgres"} if os.geteuid() == 0 else {}
    subprocess.run(command, check=True, capture_output=True, timeout=60, cwd="/", **user)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="leadline-pg-"))
    base.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(base, pwd.getpwnam("postgres").pw_uid, -1)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(base / "data")
    _as_postgres(str(INITDB), "-D", data, "-A", "trust", "-U", "postgres")
    options = f"-p {port} -k {base} -c track_io_timing=on -c fsync=off -c archive_command={SECRET}"
    _as_postgres(str(PG_CTL), "-D", data, "-o", options, "-l", str(base / "log"), "-w", "start")
    os.environ |= {"PGHOST": str(base), "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": "postgres"}
    try:
        subprocess.run([str(PGBENCH), "-i", "-s", "2", "-q"], check=True, capture_output=True, timeout=60)
        yield base
    finally:
        for name in ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE"):
            os.environ.pop(name, None)
        _as_postgres(str(PG_CTL), "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("with_queries", [False, True])
def test_sessions_at_work_and_counters_are_recorded(server: Path, tmp_path: Path, *, with_queries: bool) -> None:
    del server
    (tmp_path / "load.sql").write_text(
        f"SELECT count(*) FROM pgbench_accounts WHERE filler <> '{SECRET}' AND bid > 4711;\n"
    )
    load = [str(PGBENCH), "-n", "-c", "3", "-T", "30", "-f", str(tmp_path / "load.sql")]
    process = subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        archive = recorded(tmp_path, script(["postgresql"], RecorderAsk(with_queries=with_queries)), seconds=14)
    finally:
        process.kill()
        process.wait()
    files = names_in(archive)
    assert all(SECRET not in text for text in files.values())
    assert ("WHERE filler <> ?" in files["pg_active_sessions.csv"]) is with_queries
    assert "4711" not in files["pg_active_sessions.csv"]
    capture = read(archive).capture
    (sessions,) = capture.of("db_active_sessions_count", EntityKind.DATABASE)
    assert sessions.values[0].max() >= 2
    statements = {entity.name for group in capture.of("db_statement_sessions_count") for entity in group.entities}
    assert any(name == "SELECT ... FROM pgbench_accounts" for name in statements)
    assert capture.of("db_tps")
    assert any(capture.inventory.get(one, "parameters") for one in capture.inventory.of_kind(EntityKind.DATABASE))
