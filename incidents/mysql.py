"""MariaDB as the second database of the incidents: its data and its redo log on the rig's disks, under sysbench."""

from __future__ import annotations

import pwd
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from incidents.processes import RigError, run, start, stop, wait_for
from incidents.recorders import Recorder
from incidents.rig import Rig

TABLES, ROWS = 4, 40_000
SETTINGS = {
    "innodb_buffer_pool_size": "32M",  # less than the tables: reads reach the disk
    "innodb_flush_method": "O_DIRECT",
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_log_file_size": "256M",
    "innodb_buffer_pool_dump_at_shutdown": "OFF",
    "performance_schema": "ON",
    "performance_schema_instrument": "wait/%=ON",
    "performance_schema_consumer_events_waits_current": "ON",
    "skip_networking": "ON",
    "skip_log_bin": "ON",
}
# sysbench prints seconds since its start; the shell puts the time before each line.
STAMPED = 'stdbuf -oL "$@" 2>&1 | while IFS= read -r line; do printf "%(%Y-%m-%dT%H:%M:%S%z)T %s\\n" -1 "$line"; done'


@dataclass(frozen=True)
class Server:
    """A running server."""

    socket: Path

    def load(self, clients: int, rate: int | None, script: str, seconds: int) -> list[str]:
        """The command of a load: one of sysbench's OLTP scripts."""
        return ["bash", "-c", STAMPED, "load", *self.sysbench(script, clients, rate, seconds), "run"]

    def more(self, stack: ExitStack, script: str, clients: int) -> None:
        """A second application, as fast as it can, until the stack closes."""
        command = [*self.sysbench(script, clients, None, 600), "run"]
        stack.callback(stop, start(command), signal.SIGTERM, 5.0)

    def session(self, stack: ExitStack, sql: str) -> None:
        """A session that runs SQL again and again until the stack closes."""
        loop = f"while :; do printf '%s\\n' {shlex.quote(sql)}; done | {' '.join(self._client())}"
        stack.callback(stop, start(["bash", "-c", loop]), signal.SIGTERM, 5.0)

    def _client(self) -> list[str]:
        return ["mariadb", f"--socket={self.socket}", "--user=root", "bench"]

    def sysbench(self, script: str, clients: int, rate: int | None, seconds: int) -> list[str]:
        """The command of sysbench but for what it shall do: prepare or run."""
        command = ["sysbench", script, f"--mysql-socket={self.socket}", "--mysql-user=root", "--mysql-db=bench"]
        command += [f"--tables={TABLES}", f"--table-size={ROWS}", f"--threads={clients}", f"--time={seconds}"]
        command += ["--report-interval=1", "--percentile=95", "--db-ps-mode=disable", "--mysql-ignore-errors=all"]
        command += ["--rand-type=uniform"]  # the default asks for the same few rows, which memory holds
        return command if rate is None else [*command, f"--rate={rate}"]

    def recorders(self) -> tuple[Recorder, ...]:
        """What each session waits for, and the server's status variables."""
        program = str(Path(__file__).with_name("mysql_history.py"))
        return tuple(
            Recorder(name, file, (sys.executable, program, mode, str(self.socket)))
            for name, file, mode in (
                ("active-sessions", "mysql_active_sessions.csv", "history"),
                ("mysql-status", "mysql_status.tsv", "status"),
            )
        )


def start_server(rig: Rig) -> Server:
    """Create a server with data and redo log on their own disks, start it, and fill it.

    Raises:
        RigError: it does not come up; the message quotes its log.
    """
    entry = pwd.getpwnam("nobody")
    data, redo = rig.disks["data"].mount / "mysql", rig.disks["wal"].mount / "mysql_redo"
    temporary = rig.disks["data"].mount / "mysql_tmp"
    for folder in (data, redo, temporary):
        folder.mkdir()
    socket, log = temporary / "mysql.sock", rig.work / "mariadb.log"
    options = [f"--{name}={setting}" for name, setting in SETTINGS.items()]
    run(
        "mariadb-install-db",
        "--no-defaults",
        f"--datadir={data}",
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
    )
    shutil.move(data / "ib_logfile0", redo)
    for folder in (data, redo, temporary):
        run("chown", "-R", f"{entry.pw_uid}:{entry.pw_gid}", folder)
    command = ["mariadbd", "--no-defaults", "--user=nobody", f"--datadir={data}", f"--socket={socket}"]
    command += [
        f"--innodb_log_group_home_dir={redo}",
        f"--pid-file={data / 'mariadb.pid'}",
        f"--tmpdir={temporary}",
        *options,
    ]
    with log.open("wb") as file:
        process = start(command, file)
    rig.stack.callback(stop, process, signal.SIGTERM)
    ask = ["mariadb", f"--socket={socket}", "--user=root", "--execute=SELECT 1"]
    try:
        wait_for("MariaDB", lambda: subprocess.run(ask, capture_output=True, check=False).returncode == 0)
    except RigError as error:
        raise RigError(f"{error}; its log ends: {log.read_text()[-400:]}") from error
    server = Server(socket)
    run("mariadb", f"--socket={socket}", "--user=root", "--execute=CREATE DATABASE bench")
    run(*server.sysbench("oltp_read_write", 2, None, 1), "prepare")
    return server
