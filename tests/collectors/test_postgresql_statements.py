"""Snapshots of pg_stat_statements: which statements are kept, and what a real server's come to."""

from __future__ import annotations

import csv
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from leadline.app.read.importing import import_paths
from leadline.collectors import postgresql
from leadline.collectors._postgresql_statements import COUNTS, FILE_NAME, TOP, busiest
from leadline.core.contracts.importer import Request
from leadline.core.model.errors import UsageError
from leadline.core.system.addresses import address_of
from leadline.core.system.tools import find_program

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture

LITERAL = "hunter2-in-a-statement"
INITDB, PG_CTL = (find_program(name) for name in ("initdb", "pg_ctl"))
needs_server = pytest.mark.skipif(INITDB is None or PG_CTL is None, reason="PostgreSQL is not installed")


def _as_postgres(*command: str) -> None:
    """Run as an ordinary user: PostgreSQL refuses root."""
    user = {"user": "postgres"} if os.geteuid() == 0 else {}
    subprocess.run(command, check=True, capture_output=True, timeout=60, cwd="/", **user)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server with the extension in a schema of its own."""
    import psycopg

    base = Path(tempfile.mkdtemp(prefix="leadline-pg-"))
    base.chmod(0o755)
    if os.geteuid() == 0:
        owner = pwd.getpwnam("postgres")
        os.chown(base, owner.pw_uid, owner.pw_gid)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(base / "data")
    _as_postgres(str(INITDB), "-D", data, "-A", "trust", "-U", "postgres")
    options = f"-p {port} -k {base} -c listen_addresses=127.0.0.1 -c fsync=off"
    options += " -c shared_preload_libraries=pg_stat_statements -c track_io_timing=on"
    _as_postgres(str(PG_CTL), "-D", data, "-o", options, "-l", str(base / "log"), "-w", "start")
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in (
                'create schema "Of statistics"',
                'create extension pg_stat_statements schema "Of statistics"',
                "create table shelf (id int primary key, note text)",
                "insert into shelf values (1, 'a')",
                "create database other",
            ):
                connection.execute(statement.encode())
        yield url
    finally:
        _as_postgres(str(PG_CTL), "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(base, ignore_errors=True)


def work(url: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def calls(capture: Capture) -> dict[str, float]:
    """How often each statement was called."""
    counts: dict[str, float] = {}
    for group in capture.of("db_statement_calls_per_s"):
        if group.entities[0].parent is not None:
            ends = group.times_ns.astype(float) / 1e9
            seconds = np.diff(ends, prepend=ends[0] - group.interval_s)
            counts |= {
                entity.name: float(np.nansum(group.values[row] * seconds)) for row, entity in enumerate(group.entities)
            }
    return counts


@needs_server
@pytest.mark.real
@pytest.mark.parametrize("texts", [False, True])
def test_what_was_recorded_is_what_was_called(server: str, tmp_path: Path, texts: bool) -> None:
    before = [f"update shelf set note = '{LITERAL}' where id = {n}" for n in range(30)]
    during = [f"select note from shelf where note = '{LITERAL}' and id = {n}" for n in range(40)]
    work(server, *before, *during[:5])
    recorder = postgresql.record(address_of(server), tmp_path, statements_every_s=1, statement_texts=texts)
    recorder.sample()
    assert not (tmp_path / FILE_NAME).exists()  # nothing to compare with yet
    for share in (during[:25], [], [*during[25:], before[0]]):
        work(server, *share)
        time.sleep(1.05)
        recorder.sample()
    recorder.close()
    written = (tmp_path / FILE_NAME).read_bytes()
    assert LITERAL.encode() not in written
    assert (b"where" in written) is texts
    capture = import_paths([tmp_path / FILE_NAME], Request()).capture
    counted = calls(capture)
    assert counted["SELECT ... FROM shelf"] == pytest.approx(40, rel=0.1)
    assert counted["UPDATE shelf"] == pytest.approx(1, rel=0.2)  # what it did before is not counted
    known = {
        capture.inventory.get(entity, "statement_text")
        for group in capture.of("db_statement_calls_per_s")
        for entity in group.entities
        if entity.name == "SELECT ... FROM shelf"
    }
    assert known == ({"select note from shelf where note = $1 and id = $2"} if texts else {None})


@needs_server
@pytest.mark.real
def test_a_reset_is_no_fall(server: str, tmp_path: Path) -> None:
    statements = [f"delete from shelf where id = {n}" for n in range(100, 110)]
    work(server, *statements)
    recorder = postgresql.record(address_of(server), tmp_path, statements_every_s=1)
    recorder.sample()
    work(server, *statements, 'select "Of statistics".pg_stat_statements_reset()', *statements[:7])
    time.sleep(1.05)
    recorder.sample()
    recorder.close()
    with (tmp_path / FILE_NAME).open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["query"] == "DELETE FROM shelf"]
    assert [row["calls"] for row in rows] == ["0", "7"]


@needs_server
@pytest.mark.real
def test_where_the_extension_is_not_nothing_is_recorded(server: str, tmp_path: Path) -> None:
    recorder = postgresql.record(address_of(server.removesuffix("postgres") + "other"), tmp_path, statements_every_s=1)
    recorder.sample()
    recorder.close()
    assert recorder.notes == []
    assert not (tmp_path / FILE_NAME).exists()
    (tmp_path / FILE_NAME).write_text("my own\n")
    with pytest.raises(UsageError, match="Leadline did not write it"):
        postgresql.record(address_of(server), tmp_path)


def test_the_busiest_are_kept_by_each_of_four() -> None:
    count = len(COUNTS)
    steps = {n: (1.0, float(n), *[0.0] * (count - 2)) for n in range(1, 101)}
    steps[200] = (1.0, 0.0, *[0.0] * (count - 3), 5.0)
    steps[201] = (1.0, *[0.0] * (count - 1))
    kept = busiest(steps)
    assert kept == [*range(100, 50, -1), 200]
    assert len(kept) == TOP + 1
