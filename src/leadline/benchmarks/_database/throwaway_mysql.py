"""A MariaDB server for one run: its own data and socket in one folder, no TCP, gone with the folder.

When Leadline is killed, the kernel ends the server and the next start removes the folder. Only its owner may enter it,
so that the server's root needs no password; when we are root, so is the server, because nobody else could reach what
it serves. The settings are MariaDB's defaults, whatever the machine's option files say: the log is flushed at every
commit (innodb_flush_log_at_trx_commit), because the disk is what is measured.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from leadline.benchmarks._database import mysql_client
from leadline.benchmarks._database.throwaway import START_S, failed, free_base, make_folder, remove_folder
from leadline.core.system import dsn
from leadline.core.system.enclosures import OPEN, Enclosure
from leadline.core.system.processes import POLL_S, running, wait
from leadline.core.system.secret import Secret
from leadline.core.system.tools import require_program

DATABASE = "bench"
NOTE = "a MariaDB of its own with default settings (innodb_buffer_pool_size 128 MB): compare it with itself alone"
LOG = ""
ADVICE = "Name a folder on another file system; see also `leadline doctor`."
EMPTY_BYTES = 192 * 1024**2  # measured: log of 96 MiB, system, undo and temporary tablespaces
_SOCKET = "s.sock"
_SPARE_CONNECTIONS = 20
_READY = "ready for connections"

_servers: dict[str, contextlib.ExitStack] = {}


def base_of(target: str) -> Path:
    """Where a throw-away server of a target will be: in the folder named, or in a new temporary one.

    Raises:
        UsageError: there is one already, or its socket could not have such a long name.
    """
    return free_base(target, "mysql", _SOCKET)


def expected_bytes(data_bytes: int) -> int:
    """What a server with that much data takes; its log does not grow."""
    return EMPTY_BYTES + data_bytes


def dsn_of(base: Path) -> dict[str, str]:
    """How the server is reached; there is no password."""
    return {
        "scheme": dsn.MYSQL,
        "host": "localhost",
        "user": "root",
        "dbname": DATABASE,
        "socket": str(base / _SOCKET),
    }


def start(base: Path, output: Path, client_count: int, log: Path | None = None, within: Enclosure = OPEN) -> None:
    """Make the system tables, start the server and make its database; `stop` must follow, whatever happens.

    Raises:
        ToolError: MariaDB is not installed, or does not start.
    """
    del log  # InnoDB's would need another layout
    make_folder(base)
    _servers[str(base)] = contextlib.ExitStack()
    data, user = base / "data", ["-uroot"] if os.geteuid() == 0 else []
    # Not --user=root: for that the script would change the owner of files of the installed server.
    make = [_program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--skip-test-db", "--force"]
    with running([*make, "--auth-root-authentication-method=normal", *user], output=output, folder=base) as process:
        wait(process, START_S)
        if process.returncode != 0:
            raise failed("mariadb-install-db", output, ADVICE)
    command = [_program("mariadbd"), "--no-defaults", *user, f"--datadir={data}", f"--socket={base / _SOCKET}"]
    command += ["--skip-networking", f"--pid-file={base / 'pid'}", f"--tmpdir={base}"]
    command += [f"--max-connections={client_count + _SPARE_CONNECTIONS}"]
    size_before = output.stat().st_size
    # Nothing of it is kept, so it need not write its pages before it ends.
    server = _servers[str(base)].enter_context(
        running(within.around(command), output=output, folder=base, stop_signal=signal.SIGKILL)
    )
    _wait_until_ready(server, output, size_before)
    mysql_client.ask(dsn.together(dsn_of(base) | {"dbname": ""}), Secret(), f"create database {DATABASE}")


def stop(base: Path) -> None:
    """End the server and remove its folder; only what `start` made in this process."""
    server = _servers.pop(str(base), None)
    if server is not None:
        server.close()
        remove_folder(base)


def _program(program: str) -> str:
    return require_program(program, "MariaDB's server programs", "mariadb-server-core mariadb-client-core")


def _wait_until_ready(server: subprocess.Popen[bytes], output: Path, size_before: int) -> None:
    """Until the server says so; its messages are in English, because it reads no option files."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        if _READY in output.read_bytes()[size_before:].decode(errors="replace"):
            return
        time.sleep(POLL_S)
    raise failed("mariadbd", output, ADVICE)
