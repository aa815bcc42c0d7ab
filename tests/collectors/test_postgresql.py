"""The PostgreSQL recorder against a real server, made for the test and removed after it."""

from __future__ import annotations

import ast
import csv
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leadline.app.measure.recording import record, recording
from leadline.app.read.importing import import_paths
from leadline.app.watch import growing
from leadline.app.watch.recorded import RecordedFiles
from leadline.app.watch.window import LiveWindow
from leadline.collectors import postgresql
from leadline.core.contracts.importer import Request
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.addresses import address_of
from leadline.core.system.dsn import masked
from leadline.core.system.tools import find_program
from leadline.estate.knowledge.database_settings import POSTGRESQL_NAMING
from leadline.faces.cli.main import build_app
from leadline.formats.active_sessions import wait_shares

SECRET = "not-to-be-seen-anywhere"
COMMAND_SECRET = "hunter2-in-a-command"
# Free texts that people put passwords into; a setting of an unknown extension is one, too.
FREE_TEXTS = (
    *("archive_cleanup_command", "recovery_end_command", "archive_command", "restore_command", "primary_conninfo"),
    *("ssl_passphrase_command", "log_line_prefix", "application_name", "ssl_key_file", "myapp.token"),
)
INITDB, PG_CTL, PGBENCH = (find_program(name) for name in ("initdb", "pg_ctl", "pgbench"))
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(INITDB is None or PG_CTL is None or PGBENCH is None, reason="PostgreSQL is not installed"),
]


@dataclass(frozen=True)
class Server:
    url: str
    words: str


def _as_postgres(*command: str) -> None:
    """Run as an ordinary user: PostgreSQL refuses root."""
    user = {"user": "postgres"} if os.geteuid() == 0 else {}
    subprocess.run(command, check=True, capture_output=True, timeout=60, cwd="/", **user)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    base = Path(tempfile.mkdtemp(prefix="leadline-pg-"))  # pytest keeps its own folders from other users
    base.chmod(0o755)
    if os.geteuid() == 0:
        owner = pwd.getpwnam("postgres")
        os.chown(base, owner.pw_uid, owner.pw_gid)
    (base / "password").write_text(SECRET)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(base / "data")
    _as_postgres(str(INITDB), "-D", data, "-A", "scram-sha-256", f"--pwfile={base / 'password'}", "-U", "postgres")
    options = f"-p {port} -k {base} -c listen_addresses=127.0.0.1 -c track_io_timing=on -c fsync=off"
    options += "".join(f" -c {name}={COMMAND_SECRET}" for name in FREE_TEXTS)
    _as_postgres(str(PG_CTL), "-D", data, "-o", options, "-l", str(base / "log"), "-w", "start")
    try:
        yield Server(
            f"postgresql://postgres:{SECRET}@127.0.0.1:{port}/postgres",
            f"host=127.0.0.1 port={port} user=postgres password={SECRET} dbname=postgres",
        )
    finally:
        _as_postgres(str(PG_CTL), "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(base, ignore_errors=True)


def pgbench(server: Server, *words: str) -> None:
    subprocess.run([str(PGBENCH), *words, server.url], check=True, capture_output=True, timeout=60)


def test_what_was_recorded_is_what_pgbench_did(server: Server, tmp_path: Path) -> None:
    pgbench(server, "-i", "-s", "1", "-q")
    with recording({"postgresql": server.words}, tmp_path, every_s=0.5) as notes:
        time.sleep(1.0)
        pgbench(server, "-t", "200", "-c", "2", "-n")
        time.sleep(1.5)
    assert notes == []
    capture = import_paths([tmp_path], Request()).capture
    (rates,) = [g for g in capture.of("db_tps", EntityKind.DATABASE) if g.entities[0].name == "postgres"]
    steps = [0.0, *rates.times_ns.astype(float) / 1e9]
    done = sum(rate * (b - a) for rate, a, b in zip(rates.values[0][1:], steps[1:], steps[2:], strict=False))
    assert 400 <= done <= 500  # two clients' 200 transactions, and the recorder's own few
    settings = capture.inventory.of_kind(EntityKind.DATABASE)
    assert any(capture.inventory.get(entity, "engine") == "postgresql" for entity in settings)


def _texts_of(*folders: str) -> set[str]:
    """Every string in the code of some folders of the package."""
    base = resources.files("leadline")
    paths = [path for folder in folders for path in Path(str(base / folder)).rglob("*.py")]
    trees = [ast.parse(path.read_text()) for path in paths]
    return {
        n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def test_every_setting_that_rules_and_planners_read_is_recorded(server: Server, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(server.url) as connection:
        known = {name for (name,) in connection.execute("select name from pg_settings")}
    record("postgresql", server.words, tmp_path, every_s=0.2, seconds=0.2)
    with (tmp_path / "pg_settings.csv").open() as stream:
        recorded = {row["name"]: row["vartype"] for row in csv.DictReader(stream)}
    assert {name for name, kind in recorded.items() if kind == "string"} == POSTGRESQL_NAMING
    read = known & _texts_of("rules", "planners", "estate", "app/diagnose")
    assert {"shared_buffers", "fsync", "max_wal_size", "archive_mode", "huge_pages"} <= read
    assert read - set(recorded) == {"port"}  # that of a switch


def test_a_lock_wait_is_seen_for_as_long_as_it_lasted(server: Server, tmp_path: Path) -> None:
    import psycopg

    statement_secret = "a-secret-in-a-statement"
    with psycopg.connect(server.url) as holder, psycopg.connect(server.url) as waiter:
        holder.execute("create table if not exists shelf (id int, note text)")
        holder.execute("insert into shelf values (1, '')")
        holder.commit()
        holder.execute("update shelf set note = 'x'")

        def wait() -> None:
            waiter.execute(f"update shelf set note = '{statement_secret}'")
            waiter.rollback()

        thread = threading.Thread(target=wait)
        recording_thread = threading.Thread(
            target=record,
            args=("postgresql", server.words, tmp_path),
            kwargs={"every_s": 0.5, "seconds": 4.0, "active_sessions_every_ms": 50, "statement_texts": True},
        )
        recording_thread.start()
        time.sleep(1.0)
        began = time.monotonic()
        thread.start()
        time.sleep(2.0)
        holder.commit()
        thread.join()
        waited_s = time.monotonic() - began
        recording_thread.join()
        blocker = holder.info.backend_pid
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert statement_secret.encode() not in written
    assert b"UPDATE shelf" in written
    with (tmp_path / "pg_active_sessions.csv").open() as stream:  # an independent reading
        rows = list(csv.DictReader(stream))
    moments = {row["now"] for row in rows}
    locked = [row for row in rows if row["wait_event_type"] == "Lock"]
    assert 75 <= len(moments) <= 92  # 4 s and the interval in which the recording ends
    assert {row["blocked_by"] for row in locked} == {str(blocker)}
    assert len(locked) * 0.05 == pytest.approx(waited_s, abs=0.4)
    capture = import_paths([tmp_path], Request()).capture
    start, end = capture.span_ns() or (0, 0)
    assert wait_shares(capture, start - 10**9, end)["Lock:transactionid"] > 0.9
    (behind,) = capture.of("db_sessions_behind_blocker_count")
    assert [entity.name for entity in behind.entities] == [f"pid {blocker} (idle in transaction)"]
    known = {name: capture.inventory.get(behind.entities[0], name) for name in ("statement", "user", "client")}
    assert known == {"statement": "UPDATE shelf", "user": "postgres", "client": "127.0.0.1"}
    assert capture.inventory.get(behind.entities[0], "state_s_max") >= waited_s - 0.3
    statements = [e for g in capture.of("db_statement_sessions_count") for e in g.entities]
    assert "update shelf set note = ?" in {capture.inventory.get(e, "statement_text") for e in statements}


def test_a_lost_connection_of_sessions_ends_the_recording(server: Server, tmp_path: Path) -> None:
    import psycopg

    recorder = postgresql.record(address_of(server.words), tmp_path, active_sessions_every_ms=50)
    try:
        time.sleep(0.3)
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'leadline' and query like '%moment%' and pid <> pg_backend_pid()"
            )
        time.sleep(0.3)
        with pytest.raises(ToolError, match="What was sampled until then is kept"):
            recorder.sample()
    finally:
        recorder.close()
    assert (tmp_path / "pg_active_sessions.csv").read_text().count("\n") > 2


@pytest.mark.parametrize("form", ["url", "words"])
def test_a_password_is_seen_nowhere(server: Server, form: str, tmp_path: Path) -> None:
    target: str = getattr(server, form)
    done = CliRunner().invoke(
        build_app(), ["collect", "postgresql", target, "-o", str(tmp_path / "out"), "--seconds", "1", "--every", "0.5"]
    )
    assert done.exit_code == 0, done.output
    assert "3 samples" in done.output
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    assert SECRET not in done.output
    assert SECRET.encode() not in written
    assert COMMAND_SECRET.encode() not in written
    assert [name for name in FREE_TEXTS if name.encode() in written] == []
    with pytest.raises(ToolError) as caught:
        record("postgresql", target.replace("127.0.0.1", "127.0.0.2"), tmp_path, every_s=1.0, seconds=1.0)
    assert SECRET not in str(caught.value)
    assert "host=127.0.0.2" in caught.value.where
    with pytest.raises(ToolError, match="password authentication failed") as caught:
        record("postgresql", target.replace(SECRET, "wrong-secret"), tmp_path, every_s=1.0, seconds=1.0)
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.smoke
def test_an_ordinary_user_sees_what_it_may(server: Server, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("create role watcher login password 'w'")
        connection.execute("revoke select on pg_stat_wal from public")
    target = server.url.replace(f"postgres:{SECRET}", "watcher:w")
    done = record("postgresql", target, tmp_path, every_s=0.2, seconds=0.4)
    assert done.sample_count == 3
    assert done.notes == ("pg_stat_wal left out: permission denied for view pg_stat_wal",)
    assert not (tmp_path / "pg_stat_wal.csv").exists()
    assert (tmp_path / "pg_stat_database.csv").stat().st_size > 0


def test_files_that_leadline_did_not_write_are_left_alone(server: Server, tmp_path: Path) -> None:
    every = {"every_s": 0.2, "seconds": 0.4, "active_sessions_every_ms": 100}
    for _ in range(2):  # what it wrote itself is continued
        record("postgresql", server.words, tmp_path, **every)  # type: ignore[arg-type]
    recorded = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"pg_stat_database.csv", "pg_stat_wal.csv", "pg_active_sessions.csv", "pg_settings.csv"} <= set(recorded)
    for name in sorted(recorded):
        path = tmp_path / name
        path.write_text("now,my own table\n1,2\n")
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(UsageError, match="Leadline did not write it") as caught:
            record("postgresql", server.words, tmp_path, **every)  # type: ignore[arg-type]
        assert name in caught.value.where
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        path.write_bytes(recorded[name])


def test_a_source_that_fails_does_not_end_what_runs_beside_it(tmp_path: Path) -> None:
    with recording({"postgresql": "host=127.0.0.1 port=1"}, tmp_path) as notes:
        pass
    assert len(notes) == 1
    assert notes[0].startswith("postgresql was not recorded: host=127.0.0.1 port=1")


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one interval"):
        record("postgresql", "", tmp_path, every_s=5.0, seconds=1.0)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="a folder to write to"):
        record("postgresql", "", tmp_path / "file" / "x", every_s=1.0, seconds=1.0)
    assert masked("host=a hostaddr=1.2.3.4 password=x") == "host=a"


def test_a_watch_cuts_its_files_and_the_recorder_goes_on(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "CUT_BYTES", 8000)
    files, window, sizes = RecordedFiles(tmp_path), LiveWindow(600.0, []), []
    sampler = files.recorder("db", "postgresql", address_of(server.words), {"whole_rows": True})()
    for _ in range(60):
        sampler.sample()
        time.sleep(0.02)
        capture = files.read()
        if capture is not None:
            window.take(capture)
        sizes.append((tmp_path / "files" / "db-1" / "pg_stat_database.csv").stat().st_size)
    sampler.close()
    assert sizes != sorted(sizes)  # it was cut
    (rates,) = [g for g in window.capture.of("db_tps", EntityKind.DATABASE) if g.entities[0].name == "postgres"]
    assert len(rates.times_ns) >= 55
    assert files.left_out == {}
