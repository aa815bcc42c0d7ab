"""What the tests of fleets share: a vCenter of ours, fio servers as its workers, and what is in it."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from leadline.app.fleet.offer import VcenterSite, site_of
from leadline.core.contracts.collector import Access
from leadline.core.system.secret import Secret
from leadline.core.system.tools import find_program
from tests.conftest import ROOT

PLACES = os.pathsep.join([str(ROOT / ".tools" / "bin"), os.environ.get("PATH", "")])
VCSIM, FIO = shutil.which("vcsim-fleet", path=PLACES), find_program("fio")
SECRET = "not-to-be-seen-anywhere"
WAIT_S = 60.0  # for what takes a second on a machine that is not busy

needs_simulator = [
    pytest.mark.real,
    pytest.mark.skipif(VCSIM is None, reason="vcsim-fleet is not built (scripts/setup.sh does, where Go is)"),
    pytest.mark.skipif(FIO is None, reason="fio is not installed"),
]


@dataclass
class Estate:
    """A running simulator, the port of the fio servers its workers answer with, and a folder for the test."""

    port: int
    fio_port: int
    folder: Path

    @property
    def access(self) -> Access:
        return Access("127.0.0.1", "bench", Secret(SECRET), self.port, verify=False)

    @contextlib.contextmanager
    def site(self) -> Iterator[VcenterSite]:
        with site_of(self.access) as site:
            yield site

    def names(self) -> set[str]:
        """Of all VMs."""
        from pyVmomi import vim

        with self.site() as site:
            return {own["name"] for _, own in site.all(vim.VirtualMachine, ["name"])}

    def machine(self, name: str) -> Any:
        from pyVmomi import vim

        with self.site() as site:
            return next(own for _, own in site.all(vim.VirtualMachine, ["name", "config"]) if own["name"] == name)

    def file(self, **changes: Any) -> Path:
        """A fleet file of two workers with little load; ``load__rounds`` changes a key within ``load``."""
        held: dict[str, Any] = {
            "vcenter": {"host": "127.0.0.1", "port": self.port, "user": "bench", "verify": False},
            "template": "fio-template",
            "count": 2,
            "place": {"datastores": ["LocalDS_0", "LocalDS_1"]},
            "disks": {"count": 4, "size": "1g"},
            "load": {
                "workload": "hci-8k-50-50",
                "paths": "/proc/self/cwd",  # the folder of each fio server: none shares files with another
                "working_set": "4m",
                "warm_up_s": 0,
                "measure_s": 1,
                "rounds": 1,
                "fio_port": self.fio_port,
            },
            "address_wait_s": WAIT_S,
        }
        for key, value in changes.items():
            outer, _, inner = key.partition("__")
            if inner:
                held[outer][inner] = value
            else:
                held[outer] = value
        path = self.folder / "fleet.yaml"
        path.write_text(yaml.safe_dump(held))
        return path


def free_port(*addresses: str) -> int:
    """A port that is free at all of the addresses."""
    while True:
        with contextlib.ExitStack() as stack:
            probes = [stack.enter_context(socket.socket()) for _ in addresses]
            probes[0].bind((addresses[0], 0))
            port = int(probes[0].getsockname()[1])
            try:
                for probe, address in zip(probes[1:], addresses[1:], strict=True):
                    probe.bind((address, port))
            except OSError:
                continue
            return port


@contextlib.contextmanager
def estate(folder: Path, *words: str, workers: int = 2) -> Iterator[Estate]:
    """A vCenter with so many workers' addresses to give, each with a fio server in a folder of its own."""
    addresses = [f"127.0.0.{2 + index}" for index in range(workers)]
    fio_port = free_port(*addresses)
    secret = folder / "password.txt"
    secret.write_text(f"{SECRET}\n")
    words = ("-password-file", str(secret), "-addresses", ",".join(addresses), *words)
    with contextlib.ExitStack() as stack:
        for number, address in enumerate(addresses, start=1):
            (folder / f"worker-{number}").mkdir()
            stack.enter_context(_server(folder / f"worker-{number}", address, fio_port))
        simulator = subprocess.Popen([str(VCSIM), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.enter_context(simulator)
        stack.callback(_end, simulator)
        assert simulator.stdout is not None
        assert select.select([simulator.stdout], [], [], WAIT_S)[0], "the simulator does not start"
        port = int(simulator.stdout.readline().strip().rpartition(":")[2])
        for address in addresses:
            until(lambda address=address: _answers(address, fio_port))
        yield Estate(port, fio_port, folder)


def _end(simulator: subprocess.Popen[str]) -> None:
    """It removes its files when its input is closed."""
    assert simulator.stdin is not None
    simulator.stdin.close()
    try:
        simulator.wait(20)
    except subprocess.TimeoutExpired:
        simulator.kill()


@contextlib.contextmanager
def _server(folder: Path, address: str, port: int) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    words = [str(FIO), f"--server={address},{port}"]
    process = subprocess.Popen(words, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


def until(is_so: Any) -> None:
    """Wait for something to be so."""
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.1)
