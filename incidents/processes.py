"""Programs of the incident rig: started in sessions of their own, ended politely and in order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

START_TIMEOUT_S = 15.0


class RigError(Exception):
    """What the rig needs is missing, or did not start; the message says what to do."""


@dataclass(frozen=True)
class Account:
    """Whom a program runs as."""

    uid: int = 0
    gid: int = 0


ROOT = Account()


def start(
    command: Sequence[str | Path],
    output: IO[bytes] | None = None,
    account: Account = ROOT,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that Ctrl-C reaches only us and we end programs in order."""
    return subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        env=environment,
    )


def stop(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM, timeout_s: float = 20.0) -> None:
    """End a program and what it started, politely first."""
    for number in (how, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout_s)
            break


def run(*command: str | Path, account: Account = ROOT) -> str:
    """Run a program to its end; what it printed.

    Raises:
        RigError: it failed, with what it said.
    """
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
    )
    if done.returncode:
        raise RigError(f"{' '.join(map(str, command))} failed ({done.returncode}): {done.stderr.strip()}")
    return done.stdout


def wait_for(name: str, ready: Callable[[], bool]) -> None:
    """Wait until a program is ready.

    Raises:
        RigError: it is not within ``START_TIMEOUT_S``.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while not ready():
        if time.monotonic() > deadline:
            raise RigError(f"{name} did not come up within {START_TIMEOUT_S:.0f} s")
        time.sleep(0.05)
