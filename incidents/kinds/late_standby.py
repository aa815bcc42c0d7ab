"""A standby that every commit waits for answers late: its host stands still again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.postgresql import query
from incidents.processes import start, stop, wait_for
from incidents.rig import SERVER_ROOT

WORKS_S = 0.02

KIND = Kind(
    summary="The synchronous standby stands still for {still_ms} ms, again and again.",
    truth=Truth(
        cause="standby-late",
        layers=("database", "network"),
        disk="no",
        visible_in=("active-sessions",),
        others=("network-latency",),
        innocent_layers=("storage-path", "datastore", "guest"),
        innocent_roles=("data", "wal"),
    ),
    usual=("transactions_per_s", "latency_ms", "cpu_busy_pct", "wal_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """How long it stands still."""
    return {"still_ms": generator.randrange(60, 300)}


_receivers: list[subprocess.Popen[bytes]] = []


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """pg_receivewal as the standby that acknowledges what it has flushed; its disk is memory."""
    folder = SERVER_ROOT / "standby"
    folder.mkdir(mode=0o700)
    os.chown(folder, stage.server.account.uid, stage.server.account.gid)
    command = [stage.server.programs / "pg_receivewal", "--synchronous", "--no-password", f"--directory={folder}"]
    command += [f"--dbname={stage.server.address().replace('dbname=bench', 'application_name=standby')}"]
    receiver = start([str(part) for part in command], account=stage.server.account)
    _receivers.append(receiver)
    try:
        wait_for("the standby", lambda: query("SELECT count(*) FROM pg_stat_replication").strip() == "1")
        query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        query("SELECT pg_reload_conf()")
        yield
    finally:
        query("ALTER SYSTEM RESET synchronous_standby_names")
        query("SELECT pg_reload_conf()")
        _receivers.remove(receiver)
        stop(receiver)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Stop the standby and let it go on, again and again."""
    over = threading.Event()
    receiver = _receivers[-1]

    def stand_still() -> None:
        while not over.is_set():
            receiver.send_signal(signal.SIGSTOP)
            over.wait(parameters["still_ms"] / 1000.0)
            receiver.send_signal(signal.SIGCONT)
            over.wait(WORKS_S)

    thread = threading.Thread(target=stand_still, daemon=True)
    thread.start()
    try:
        yield f"stopped the standby for {parameters['still_ms']} ms, again and again"
    finally:
        over.set()
        thread.join()
        receiver.send_signal(signal.SIGCONT)


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Each commit waits for the standby."""
    return [rises(numbers, "latency_ms", 3.0, unit=" ms")]
