"""A PostgreSQL server for one run: its own cluster and socket in one folder, no TCP, gone with the folder.

When Leadline is killed, the kernel ends the server and the next start removes the folder. Root makes it as the user
postgres, because PostgreSQL refuses root. The settings are PostgreSQL's defaults but for what is needed to reach and
watch it; ``fsync`` stays on, because the disk is what is measured.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from leadline.benchmarks._database.throwaway import START_S, failed, free_base, make_folder, remove_folder
from leadline.core.model.errors import ToolError
from leadline.core.system.enclosures import OPEN, Enclosure
from leadline.core.system.processes import POLL_S, running, wait
from leadline.core.system.tools import require_program

OWNER = "postgres"
NOTE = "a PostgreSQL of its own with default settings (shared_buffers 128 MB): compare it with itself alone"
ADVICE = "The user postgres must be able to enter the folder; see also `leadline doctor`."
EMPTY_BYTES = 48 * 1024**2  # Judgement: what initdb writes, with room
WAL_BYTES_MAX = 1024**3  # PostgreSQL's default max_wal_size
LOG = "leadline-bench-postgresql-wal"
_SOCKET = ".s.PGSQL.5432"
_SPARE_CONNECTIONS = 20

_servers: dict[str, contextlib.ExitStack] = {}


def base_of(target: str) -> Path:
    """Where a throw-away cluster of a target will be: in the folder named, or in a new temporary one.

    Raises:
        UsageError: there is one already, or its socket could not have such a long name.
    """
    return free_base(target, "postgresql", _SOCKET)


def expected_bytes(data_bytes: int) -> int:
    """What a cluster with that much data takes, with its log."""
    return EMPTY_BYTES + data_bytes + min(2 * data_bytes, WAL_BYTES_MAX)


def dsn_of(base: Path) -> dict[str, str]:
    """How the server of a cluster is reached; there is no password."""
    return {"host": str(base), "port": "5432", "user": OWNER, "dbname": "postgres"}


def start(base: Path, output: Path, client_count: int, log: Path | None = None, within: Enclosure = OPEN) -> None:
    """Make a cluster and start its server, its WAL in ``log`` if named; `stop` must follow, whatever happens.

    Raises:
        ToolError: PostgreSQL is not installed, or does not start.
    """
    data = base / "data"
    make = _as_owner("initdb", "-D", str(data), "-A", "trust", "-U", OWNER, "-E", "UTF8", "--locale=C", "--no-sync")
    _make_folder(base)
    if log is not None:
        _make_folder(log)
        _servers[str(base)].callback(stop, log)
        make += ["-X", str(log / "wal")]
    with running(make, output=output, folder=base) as process:
        wait(process, START_S)
        if process.returncode != 0:
            raise failed("initdb", output, ADVICE)
    settings = {
        "listen_addresses": "",
        "port": "5432",
        "unix_socket_directories": str(base),
        "max_connections": str(client_count + _SPARE_CONNECTIONS),
        "track_io_timing": "on",
    }
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command = within.around(_as_owner("postgres", "-D", str(data), *words))
    server = _servers[str(base)].enter_context(running(command, output=output, folder=base, stop_signal=signal.SIGQUIT))
    _wait_until_ready(server, data / "postmaster.pid", output)


def stop(base: Path) -> None:
    """End the server and remove its cluster; only what `start` made in this process."""
    server = _servers.pop(str(base), None)
    if server is not None:
        server.close()
        remove_folder(base)


def _make_folder(base: Path) -> None:
    make_folder(base)
    _servers[str(base)] = contextlib.ExitStack()
    if os.geteuid() == 0:
        import pwd  # noqa: PLC0415 - Windows has none

        owner = pwd.getpwnam(OWNER)
        os.chown(base, owner.pw_uid, owner.pw_gid)


def _as_owner(program: str, *words: str) -> list[str]:
    """A command, by the user postgres when we are root; the kernel forgets who ends with whom when the user changes."""
    path = require_program(program, "PostgreSQL's server programs", "postgresql")
    if os.geteuid() != 0:
        return [path, *words]
    try:
        import pwd  # noqa: PLC0415 - Windows has none

        owner = pwd.getpwnam(OWNER)
    except KeyError:
        raise ToolError(
            program,
            found="no user postgres, and PostgreSQL refuses root",
            expected="that user",
            advice="Make it, or run as an ordinary user.",
        ) from None
    ids = (f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--init-groups", "--pdeathsig=QUIT")
    return ["setpriv", *ids, "--", path, *words]


def _wait_until_ready(server: subprocess.Popen[bytes], lock: Path, output: Path) -> None:
    """Until the last line of postmaster.pid says ready, as pg_ctl does."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError):
            if lock.read_text().splitlines()[-1:] and lock.read_text().rstrip().endswith("ready"):
                return
        time.sleep(POLL_S)
    raise failed("postgres", output, ADVICE)
