"""The PostgreSQL server of the incidents, its tables and its loads."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from incidents.limits import Group
from incidents.processes import Account, RigError, run, start, stop, wait_for
from incidents.rig import SERVER_ROOT, Rig

DATABASE = "bench"
PGBENCH_SCALE = 20  # 300 MB of data: larger than shared_buffers, small enough to record anywhere
ORDERS = 200_000

SETTINGS = {
    "unix_socket_directories": str(SERVER_ROOT),
    "shared_buffers": "64MB",
    "synchronous_commit": "on",
    "checkpoint_timeout": "30min",  # none in a recording but those an incident asks for
    "max_wal_size": "1GB",
    "min_wal_size": "640MB",
    "max_connections": "220",
    "log_checkpoints": "on",
    "log_lock_waits": "on",
    "log_temp_files": "0",
    "log_line_prefix": "%m [%p] ",
    "log_timezone": "UTC",
    "timezone": "UTC",
    "track_io_timing": "on",
    "track_wal_io_timing": "on",
    "autovacuum": "off",  # a vacuum that begins by chance would be a second fault
}

# What an application keeps beside pgbench's own tables: orders of customers, found by an index that an incident drops.
TABLES = f"""
CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL, made timestamptz NOT NULL, note text NOT NULL);
INSERT INTO orders SELECT n, n % 20000, timestamptz '2026-01-01' + n * interval '1 minute', repeat(md5(n::text), 3)
    FROM generate_series(1, {ORDERS}) AS n;
CREATE INDEX orders_customer ON orders (customer);
CREATE TABLE intake (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), body text NOT NULL);
CREATE TABLE wide (id int PRIMARY KEY, body text NOT NULL);
ALTER TABLE wide ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO wide SELECT n, repeat(md5(n::text), 1500) FROM generate_series(1, 200) AS n;
ANALYZE orders; ANALYZE wide;
CHECKPOINT;
"""


@dataclass(frozen=True)
class Server:
    """A running server."""

    programs: Path
    log: Path
    port: int
    group: Group
    account: Account

    def address(self, host: str = str(SERVER_ROOT), port: int | None = None) -> str:
        """A connection string."""
        return f"host={host} port={port or self.port} user=postgres dbname={DATABASE}"


def start_server(rig: Rig, programs: Path, group: Group, link_address: str | None = None) -> Server:
    """Create a cluster with data and WAL on their own disks, start it in a control group, and fill it.

    Raises:
        RigError: the server does not come up; the message quotes its log.
    """
    entry = pwd.getpwnam("postgres")
    account = Account(entry.pw_uid, entry.pw_gid)
    for directory in (SERVER_ROOT, *(disk.mount for disk in rig.disks.values() if disk.mount.exists())):
        os.chown(directory, account.uid, account.gid)
    data, wal = rig.disks["data"].mount / "main", rig.disks["wal"].mount / "pg_wal"
    # Checksums: should the disks ever return wrong bytes, the server says so.
    run(programs / "initdb", "-D", data, "-X", wal, "-k", "--auth=trust", "--locale=C.UTF-8", account=account)
    log = rig.work / "postgresql.log"
    port = _free_port()
    settings = SETTINGS | {"listen_addresses": f"127.0.0.1{',' + link_address if link_address else ''}"}
    if link_address:
        with (data / "pg_hba.conf").open("a") as file:
            file.write(f"host all postgres {link_address}/30 trust\n")
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{setting}'\n" for name, setting in settings.items())
    become = ["setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
    command = [*become, str(programs / "postgres"), "-D", str(data), "-p", str(port)]
    with log.open("wb") as file:
        process = start(group.enter(command), file)
    rig.stack.callback(stop, process, signal.SIGQUIT)  # at once: the cluster is thrown away
    ready = [str(programs / "pg_isready"), "-q", "-h", str(SERVER_ROOT), "-p", str(port), "-U", "postgres"]
    try:
        wait_for("PostgreSQL", lambda: subprocess.run(ready, check=False).returncode == 0)
    except RigError as error:
        raise RigError(f"{error}; its log ends: {log.read_text()[-400:]}") from error
    os.environ.update(PGHOST=str(SERVER_ROOT), PGPORT=str(port), PGUSER="postgres", PGDATABASE=DATABASE)
    run(programs / "createdb", DATABASE)
    run("pgbench", "--initialize", "--quiet", f"--scale={PGBENCH_SCALE}")
    query(TABLES)
    return Server(programs, log, port, group, account)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def query(sql: str) -> str:
    """What SQL commands printed.

    Raises:
        RigError: one failed.
    """
    return run("psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql)


def session(stack: ExitStack, sql: str, output: Path) -> None:
    """Start a session that runs SQL from a text, statement by statement; it is cut off when the stack closes."""
    script = output.with_suffix(".sql")
    script.write_text(sql)
    stack.callback(stop, start(["psql", "-X", "-q", "-f", script]), signal.SIGTERM, 3.0)


def looped(stack: ExitStack, sql: str, output: Path, arguments: Sequence[str] = ()) -> None:
    """Run SQL again and again by a pgbench of its own; it ends when the stack closes."""
    script = output.with_suffix(".pgbench")
    script.write_text(sql)
    command = ["pgbench", "--no-vacuum", "--time=600", f"--file={script}", *arguments]
    stack.callback(stop, start(command), signal.SIGINT, 5.0)
