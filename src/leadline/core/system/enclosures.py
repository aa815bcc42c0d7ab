"""What a server that is made for a load runs in: a control group with its limits, and namespaces of its own.

In namespaces of its own a server sees no other process, no network but its own loopback, no shared memory of others: as
much of a machine of its own as one kernel gives. Its files and sockets lie in folders as before. The client that loads
it stays outside the control group, as people and their programs are outside of the machine they ask.

Source: namespaces(7), unshare(1) and nsenter(1) of util-linux.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from leadline.core.system.cgroups import ControlGroup
from leadline.core.system.secret import child_environment

PROBE_S = 10.0  # Judgement: what starting a shell may take on a busy machine
_OPTIONS = ("--net", "--ipc", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child=KILL")
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


OPEN = Enclosure()


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
