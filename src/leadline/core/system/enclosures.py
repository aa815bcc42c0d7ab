"""What a server that is made for a load runs in: a control group with its limits, and namespaces of its own.

In namespaces of its own a server sees no other process, no network but its own loopback, no shared memory of others: as
much of a machine of its own as one kernel gives. Its files and sockets lie in folders as before. The client that loads
it stays outside the control group, as people and their programs are outside of the machine they ask.

Source: namespaces(7), unshare(1) and nsenter(1) of util-linux.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from leadline.core.system.cgroups import ControlGroup
from leadline.core.system.secret import child_environment

PROBE_S = 10.0  # Judgement: what starting a shell may take on a busy machine
_OPTIONS = ("--net", "--ipc", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child=KILL")
_NETWORK = 0x40000000  # CLONE_NEWNET; Source: Linux, include/uapi/linux/sched.h
_LOOPBACK = 'ip link set lo up && exec "$@"'


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Where a server runs: in ``group`` where there is one, in namespaces of its own where ``is_apart``."""

    group: ControlGroup | None = None
    is_apart: bool = False

    def around(self, command: list[str]) -> list[str]:
        """The command of a server, inside; nothing of it runs outside."""
        if self.is_apart:
            command = ["unshare", *_OPTIONS, "--", "sh", "-c", _LOOPBACK, "sh", *command]
        return command if self.group is None else self.group.enter(command)

    def beside(self, process: int, command: list[str]) -> list[str]:
        """The command of a client that reaches the loopback of a server, whose process is named."""
        return ["nsenter", f"--net=/proc/{process}/ns/net", "--", *command] if self.is_apart else command

    def connected(self, process: int, address: tuple[str, int], timeout_s: float) -> socket.socket:
        """A connection from beside a server, whose process is named, to an address that it listens at.

        Raises:
            OSError: nobody listens there, or the process is gone.
        """
        if not self.is_apart:
            return socket.create_connection(address, timeout_s)
        # A socket stays in the network it was made in; the thread that enters it ends, so that nothing else does.
        with ThreadPoolExecutor(1) as visitor:
            return visitor.submit(_connected_inside, process, address, timeout_s).result()


OPEN = Enclosure()


def _connected_inside(process: int, address: tuple[str, int], timeout_s: float) -> socket.socket:
    with Path(f"/proc/{process}/ns/net").open("rb") as network:
        if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), _NETWORK):
            raise OSError(ctypes.get_errno(), "cannot be entered", network.name)
    return socket.create_connection(address, timeout_s)


def why_not_apart() -> str:
    """Why no process can have namespaces of its own here; empty where one can."""
    missing = [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed"
    if os.geteuid() != 0:
        return "only root may make them"
    try:
        done = subprocess.run(
            Enclosure(is_apart=True).around(["true"]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_S,
            check=False,
            env=child_environment(None),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.decode(errors="replace").strip().splitlines() or ["refused"])[0]
