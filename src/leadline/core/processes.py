"""External tools as processes that never outlive Leadline and are ended within a second."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from leadline.core.errors import ToolError
from leadline.core.tools import find_program

GRACE_S = 0.8  # after which a tool that was asked to end is killed
POLL_S = 0.05


@contextlib.contextmanager
def running(
    command: Sequence[str],
    *,
    output: Path,
    folder: Path,
    stop_signal: int = signal.SIGINT,
    variables: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A tool in a process group of its own, both its streams in a file; ended with its children on the way out.

    ``setpriv --pdeathsig`` makes the kernel end it when Leadline is killed. ``variables`` are added to its environment:
    the way for a password, which a command line would show to everybody.

    Raises:
        ToolError: it is not installed or cannot be started.
    """
    program = find_program(command[0])
    if program is None:
        raise ToolError(
            command[0],
            found="not installed",
            expected="the program, which does the work",
            advice="`leadline doctor` says how to install it.",
        )
    words = [program, *command[1:]]
    setpriv = shutil.which("setpriv")
    if setpriv is not None:
        words = [setpriv, "--pdeathsig", "KILL", "--", *words]
    with output.open("ab") as stream:
        process = _start(words, stream, folder, {**os.environ, **(variables or {})})
    try:
        yield process
    finally:
        end(process, stop_signal)


def _start(words: list[str], stream: IO[bytes], folder: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, cwd=folder, env=env, start_new_session=True
        )
    except OSError as error:
        raise ToolError(
            words[0], found=f"cannot be started ({error.strerror})", expected="a program", advice="Reinstall it."
        ) from error


def end(process: subprocess.Popen[bytes], stop_signal: int = signal.SIGINT) -> None:
    """Ask a process group to end, and kill it when it does not."""
    for number, patience_s in ((stop_signal, GRACE_S), (signal.SIGKILL, 5.0)):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # children that outlived it


def wait(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait until it ends; False when it has not after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while process.poll() is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True
