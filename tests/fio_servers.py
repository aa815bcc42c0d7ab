"""fio's own servers on loopback ports."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

START_S = 20.0


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, all different."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start one."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        ["fio", f"--server=127.0.0.1,{port}"], cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True
    )


def wait_for(port: int) -> None:
    """Until somebody listens there."""
    deadline = time.monotonic() + START_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, f"nobody listens on port {port}"
        time.sleep(0.05)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a server with the children that do its work."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


@contextlib.contextmanager
def fio_server(folder: Path) -> Iterator[str]:
    """One while it lasts: its address as fio's client takes it."""
    (port,) = free_ports(1)
    process = start(folder, port)
    try:
        wait_for(port)
        yield f"127.0.0.1,{port}"
    finally:
        end(process)
