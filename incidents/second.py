"""A second PostgreSQL on the machine of an incident, on a disk of its own; it runs while a bystander needs it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

from incidents.postgresql import Server
from incidents.processes import RigError, run, start, stop, wait_for
from incidents.rig import SERVER_ROOT, Rig

DATABASE = "reports"
SCALE = 2
SETTINGS = {
    "unix_socket_directories": str(SERVER_ROOT),
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "max_connections": "20",
    "autovacuum": "off",
    "checkpoint_timeout": "30min",
}


class SecondServer:
    """A cluster on the disk ``second``, and its server while it runs."""

    database = DATABASE

    def __init__(self, rig: Rig, main: Server, stack: ExitStack) -> None:
        """Make the cluster and fill it; the server is stopped again."""
        self._main = main
        self._port = main.port + 1  # names a socket in a folder of ours, no port of the network
        self._data = rig.disks["second"].mount / "reports"
        self._log = rig.work / "second.log"
        self._process: subprocess.Popen[bytes] | None = None
        account = main.account
        os.chown(self._data.parent, account.uid, account.gid)
        run(main.programs / "initdb", "-D", self._data, "--auth=trust", "--locale=C.UTF-8", account=account)
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{setting}'\n" for name, setting in SETTINGS.items())
        stack.callback(self.stop)
        self.start()
        run(main.programs / "createdb", *self._where(), DATABASE)
        run("pgbench", *self._where(), "--initialize", "--quiet", f"--scale={SCALE}", DATABASE)
        self.stop()

    def _where(self) -> tuple[str, ...]:
        return ("-h", str(SERVER_ROOT), "-p", str(self._port), "-U", "postgres")

    def address(self) -> str:
        """A connection string."""
        return f"host={SERVER_ROOT} port={self._port} user=postgres dbname={DATABASE}"

    def start(self) -> None:
        """Start the server.

        Raises:
            RigError: it does not come up; the message quotes its log.
        """
        account = self._main.account
        command = ["nice", "-n", "10", str(self._main.programs / "postgres")]
        command += ["-D", str(self._data), "-p", str(self._port)]
        with self._log.open("wb") as file:
            self._process = start(command, file, account)
        ready = [str(self._main.programs / "pg_isready"), "-q", *self._where()]
        try:
            wait_for("the second PostgreSQL", lambda: subprocess.run(ready, check=False).returncode == 0)
        except RigError as error:
            raise RigError(f"{error}; its log ends: {self._log.read_text()[-400:]}") from error

    def stop(self) -> None:
        """Stop it where it runs, as `pg_ctl stop -m fast` does."""
        if self._process is not None:
            stop(self._process, signal.SIGINT)
            self._process = None

    def pids(self) -> list[str]:
        """The numbers of its processes now."""
        if self._process is None:
            return []
        parent = str(self._process.pid)
        return [parent, *(path.parent.name for path in Path("/proc").glob("[0-9]*/stat") if _parent(path) == parent)]


def _parent(path: Path) -> str:
    """The number of a process's parent; of one that has ended, none."""
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()[1]
    except (OSError, IndexError):
        return ""
