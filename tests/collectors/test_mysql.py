"""The MySQL recorder against a real MariaDB, made for the test and removed after it."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from leadline.app.measure.recording import record
from leadline.app.read.importing import import_paths
from leadline.app.watch import growing
from leadline.app.watch.recorded import RecordedFiles
from leadline.app.watch.window import LiveWindow
from leadline.collectors import mysql
from leadline.core.contracts.importer import Request
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.addresses import address_of
from leadline.core.system.tools import find_program
from leadline.formats.active_sessions import wait_shares
from tests.command_line import BIN

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture

pymysql = pytest.importorskip("pymysql")

SECRET = "not-to-be-seen-anywhere"
LITERAL = "hunter2-in-a-statement"
INSTALL, SERVER = (find_program(name) for name in ("mariadb-install-db", "mariadbd"))
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(INSTALL is None or SERVER is None, reason="MariaDB is not installed"),
]
WAITS = ("--performance-schema=ON", "--performance-schema-instrument=wait/%=ON")
WAITS_CONSUMED = (*WAITS, "--performance-schema-consumer-events-waits-current=ON")


@dataclass
class Server:
    """A server that can be ended and started again; ``url`` is of a user who may only look."""

    base: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mysql://watcher:{SECRET}@127.0.0.1:{self.port}/"

    @property
    def by_socket(self) -> str:
        return f"mysql://watcher:{SECRET}@localhost/?unix_socket={self.base / 's.sock'}"

    def start(self, *options: str) -> None:
        user = ["--user=root"] if os.geteuid() == 0 else []
        words = [str(SERVER), "--no-defaults", *user, f"--datadir={self.base / 'data'}", f"--tmpdir={self.base}"]
        words += [f"--socket={self.base / 's.sock'}", f"--port={self.port}", "--bind-address=127.0.0.1"]
        words += [f"--pid-file={self.base / 'pid'}", "--innodb-flush-log-at-trx-commit=0", *options]
        with (self.base / "log").open("ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while not (self.base / "s.sock").exists():  # the client leaves a socket open where there is none yet
            assert time.monotonic() < deadline, (self.base / "log").read_text()[-400:]
            time.sleep(0.1)
        time.sleep(0.2)
        self.root().close()

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def root(self, **options: object) -> Any:
        return pymysql.connect(unix_socket=str(self.base / "s.sock"), user="root", autocommit=True, **options)

    def run(self, *statements: str) -> None:
        with closing(self.root()) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    base = Path(tempfile.mkdtemp(prefix="leadline-my-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [str(INSTALL), "--no-defaults", f"--datadir={base / 'data'}", "--skip-test-db", "--force"]
    words += ["--auth-root-authentication-method=normal", *(["-uroot"] if os.geteuid() == 0 else [])]
    subprocess.run(words, check=True, capture_output=True, timeout=120, cwd=base)
    made = Server(base, port)
    try:
        made.start(*WAITS_CONSUMED)
        made.run(
            f"create user watcher identified by '{SECRET}'",
            "grant process on *.* to watcher",
            "grant select on performance_schema.* to watcher",
            "create user nobody identified by 'n'",
            "create database shop",
            "create table shop.shelf (id int primary key, note varchar(100)) engine = InnoDB",
            "insert into shop.shelf values (1, 'a'), (2, 'b')",
        )
        yield made
    finally:
        made.end()
        shutil.rmtree(base, ignore_errors=True)


def mean(capture: Capture, metric: str) -> float:
    (group,) = capture.of(metric, EntityKind.DATABASE)
    assert [entity.name for entity in group.entities] == ["mysql"]
    return float(np.nanmean(group.values))


@pytest.mark.parametrize("way", ["url", "by_socket"])
def test_what_was_recorded_is_what_the_server_did(server: Server, way: str, tmp_path: Path) -> None:
    recorder = mysql.record(address_of(getattr(server, way)), tmp_path)
    recorder.sample()
    time.sleep(0.2)
    recorder.sample()
    texts = [f"update shop.shelf set note = '{note}' where id = 2" for note in "cb"]
    server.run(*texts * 100)
    recorder.sample()
    recorder.close()
    capture = import_paths([tmp_path], Request()).capture
    assert {source.importer for source in capture.sources} == {"mysql-status", "innodb-status"}
    (updates,) = capture.of("raw.mysql.Com_update_per_s")
    seconds = np.diff(updates.times_ns) / 1e9
    assert float((updates.values[0][1:] * seconds).sum()) == pytest.approx(200)
    assert capture.inventory.get(updates.entities[0], "engine") == "mysql"
    assert mean(capture, "db_sessions_count") >= 1
    now_ns = time.time_ns()
    assert all(abs(now_ns - int(group.times_ns[-1])) < 60e9 for group in capture.groups)  # UTC, each of them
    names = (tmp_path / mysql.STATUS).read_text().split("\n", 1)[0].split("\t")
    assert {"Uptime", "Com_commit", "Innodb_row_lock_waits"} <= set(names)
    assert not [name for name in names if name.startswith(("Com_alter_user", "Performance_schema_", "Ssl_"))]


def test_a_server_is_recorded_by_the_command_line(server: Server, tmp_path: Path) -> None:
    url = server.url.replace(f":{SECRET}", "")
    words = [str(BIN), "collect", "mysql", url, "-o", "db1", "--every", "0.5", "--seconds", "1", "--json"]
    environment = {**os.environ, "MYSQL_PWD": SECRET}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 3
    assert import_paths([tmp_path / "db1"], Request()).capture.inventory.of_kind(EntityKind.DATABASE)
    assert not any(SECRET in path.read_text() for path in (tmp_path / "db1").iterdir())


def test_a_lock_wait_is_seen_with_who_holds_it(server: Server, tmp_path: Path) -> None:
    holder = server.root(database="shop")
    other = server.root(database="shop")

    def wait() -> None:
        with other.cursor() as cursor:
            cursor.execute(f'update `shelf` set note = "{LITERAL}" where id = 1 -- {LITERAL}')

    with closing(holder), closing(other), holder.cursor() as cursor:
        cursor.execute("begin")
        cursor.execute(f"update shelf set note = '{LITERAL}' where id = 1")
        waiting = threading.Thread(target=wait)
        recorder = mysql.record(
            address_of(server.url), tmp_path, active_sessions_every_ms=100, statement_texts=True, whole_rows=True
        )
        recorder.sample()
        began = time.monotonic()
        waiting.start()
        time.sleep(2.0)
        recorder.sample()
        cursor.execute("commit")
        waiting.join()
        waited_s = time.monotonic() - began
        time.sleep(0.3)
        recorder.sample()
        recorder.close()
        blocker = holder.thread_id()
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert LITERAL.encode() not in written
    assert SECRET.encode() not in written
    with (tmp_path / "mysql_active_sessions.csv").open() as stream:  # an independent reading
        rows = list(csv.DictReader(stream))
    locked = [row for row in rows if row["wait_event_type"] == "lock"]
    assert {row["blocked_by"] for row in locked} == {str(blocker)}
    assert {(row["query"], row["statement_text"]) for row in locked} == {
        ("UPDATE shelf", "update shelf set note = ? where id = ?")
    }
    assert len(locked) * 0.1 == pytest.approx(waited_s, abs=0.5)
    capture = import_paths([tmp_path], Request()).capture
    start, end = capture.span_ns() or (0, 0)
    assert wait_shares(capture, start - 10**9, end)["lock:row"] > 0.8
    (behind,) = capture.of("db_sessions_behind_blocker_count")
    assert [entity.name for entity in behind.entities] == [f"pid {blocker} (idle in transaction)"]
    assert behind.entities[0].parent is not None
    assert behind.entities[0].parent.name == "mysql"
    assert capture.inventory.get(behind.entities[0], "user") == "root"
    assert mean(capture, "db_transaction_age_s_max") > 0.5


def test_reports_of_innodb_hold_no_statement(server: Server, tmp_path: Path) -> None:
    with closing(server.root(database="shop")) as holder, holder.cursor() as cursor:
        cursor.execute("begin")
        cursor.execute(f"update shelf set note = '{LITERAL}' where id = 1")
        cursor.execute("show engine innodb status")
        assert "thread id" in cursor.fetchall()[0][-1]
        record("mysql", server.url, tmp_path, every_s=0.2, seconds=0.4)
    report = (tmp_path / mysql.INNODB).read_text()
    assert len(re.findall(r"^\d.* INNODB MONITOR OUTPUT$", report, re.MULTILINE)) == 1  # the next after a minute
    assert "thread id" not in report
    assert "localhost" not in report
    assert {"FILE I/O", "LOG", "History list length", "Pending"} <= {word for word in _WORDS if word in report}
    capture = import_paths([tmp_path / mysql.INNODB], Request()).capture
    assert {"db_history_list_count", "db_checkpoint_age_bytes"} <= {group.metric for group in capture.groups}


_WORDS = ("FILE I/O", "LOG", "History list length", "Pending")


def test_a_user_without_privileges_sees_what_it_may(server: Server, tmp_path: Path) -> None:
    target = server.url.replace(f"watcher:{SECRET}", "nobody:n")
    done = record("mysql", target, tmp_path, every_s=0.2, seconds=0.4, active_sessions_every_ms=100)
    assert done.sample_count == 3
    assert len(done.notes) == 2
    assert done.notes[0].endswith("without transactions; grant PROCESS")
    assert done.notes[1].startswith("InnoDB's status left out: Access denied")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mysql_active_sessions.csv", mysql.STATUS]
    capture = import_paths([tmp_path], Request()).capture
    assert mean(capture, "db_active_sessions_count") == 0


def test_without_instruments_a_state_is_no_cpu(server: Server, tmp_path: Path) -> None:
    server.run("update performance_schema.setup_consumers set enabled = 'NO' where name = 'events_waits_current'")
    sleeper = server.root()
    thread = threading.Thread(target=lambda: sleeper.cursor().execute("select sleep(0.8)"))
    try:
        thread.start()
        record("mysql", server.url, tmp_path, every_s=0.5, seconds=0.5, active_sessions_every_ms=100)
        thread.join()
    finally:
        server.run("update performance_schema.setup_consumers set enabled = 'YES' where name = 'events_waits_current'")
        sleeper.close()
    capture = import_paths([tmp_path], Request()).capture
    assert "state:User sleep" in {e.name for g in capture.of("db_wait_event_sessions_count") for e in g.entities}


def test_a_server_that_ends_is_an_error_and_is_recorded_again(server: Server, tmp_path: Path) -> None:
    files = RecordedFiles(tmp_path)
    opened = files.recorder("db", "mysql", address_of(server.url), {"active_sessions_every_ms": 100})
    first = opened()
    first.sample()
    server.end()
    try:
        with pytest.raises(ToolError, match="What was sampled until then is kept") as caught:
            for _ in range(2):
                first.sample()
                time.sleep(0.3)
        assert SECRET not in str(caught.value)
        first.close()
        with pytest.raises(ToolError, match="no connection") as caught:
            opened()
        assert SECRET not in str(caught.value)
    finally:
        server.start(*WAITS_CONSUMED)
    again = opened()
    for _ in range(3):
        again.sample()
        time.sleep(0.2)
    capture = files.read()
    again.close()
    assert files.left_out == {}
    assert capture is not None
    assert mean(capture, "db_qps") > 0


def test_files_that_leadline_did_not_write_are_left_alone(server: Server, tmp_path: Path) -> None:
    every = {"every_s": 0.2, "seconds": 0.4, "active_sessions_every_ms": 100}
    for _ in range(2):  # what it wrote itself is continued
        record("mysql", server.url, tmp_path, **every)  # type: ignore[arg-type]
    capture = import_paths([tmp_path], Request()).capture
    assert len(capture.of("db_qps")[0].times_ns) == 5
    recorded = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(recorded) == {mysql.STATUS, mysql.INNODB, "mysql_active_sessions.csv"}
    for name in sorted(recorded):
        (tmp_path / name).write_text("time\tmy own table\n1\t2\n")
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(UsageError, match="Leadline did not write it"):
            record("mysql", server.url, tmp_path, **every)  # type: ignore[arg-type]
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        (tmp_path / name).write_bytes(recorded[name])


def test_a_password_is_seen_nowhere(server: Server, tmp_path: Path) -> None:
    for target, problem in (
        (server.url.replace(SECRET, "wrong-secret"), "Access denied"),
        (server.url.replace(str(server.port), "1"), "Can't connect"),
    ):
        with pytest.raises(ToolError, match=problem) as caught:
            mysql.record(address_of(target), tmp_path)
        assert "host=127.0.0.1" in caught.value.where
        assert not {"wrong-secret", SECRET} & set(str(caught.value).split("'"))
    with pytest.raises(ToolError, match="no connection"):  # a server without TLS is not taken for the one meant
        mysql.record(address_of(server.url), tmp_path, ca_file="/etc/ssl/certs/ca-certificates.crt")
    with pytest.raises(UsageError, match="no address of a MySQL server"):
        mysql.record(address_of("host=db1"), tmp_path)


def test_a_watch_cuts_its_files_and_the_recorder_goes_on(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "CUT_BYTES", 20_000)
    files, window, sizes = RecordedFiles(tmp_path), LiveWindow(600.0, []), []
    sampler = files.recorder("db", "mysql", address_of(server.url), {"whole_rows": True})()
    for _ in range(60):
        sampler.sample()
        time.sleep(0.02)
        capture = files.read()
        if capture is not None:
            window.take(capture)
        sizes.append((tmp_path / "files" / "db-1" / mysql.STATUS).stat().st_size)
    sampler.close()
    assert sizes != sorted(sizes)  # it was cut
    (rates,) = window.capture.of("db_qps", EntityKind.DATABASE)
    assert len(rates.times_ns) >= 55
    assert files.left_out == {}
