"""External tools as processes that never outlive Leadline and are ended within a second."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from leadline.core.model.errors import ToolError
from leadline.core.system.secret import child_environment
from leadline.core.system.tools import require_program

GRACE_S = 0.8  # after which a tool that was asked to end is killed
POLL_S = 0.05
COMPLAINT_BYTES_MAX = 64 * 1024
# Source: strerror(ENOMEM) of the C library, and what programs say of malloc().
_MEMORY = re.compile(r"allocate|out of memory|MemoryError|std::bad_alloc", re.IGNORECASE)
# Memory in KiB, files in blocks of 512 bytes, CPU time in seconds: at the first it gets a signal, at the second it is
# killed. A bound above one that is there already cannot be set and need not be. Source: POSIX ulimit; dash(1).
_BOUNDED = (
    'for bound in "-v $1" "-f $2" "-S -t $3" "-H -t $4" "-c 0"; do ulimit $bound 2>/dev/null; done; shift 4; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """What a tool that reads a file from elsewhere may take; a damaged file makes some take all there is."""

    wall_s: float
    cpu_s: int
    memory_bytes: int
    output_bytes: int

    def around(self, words: Sequence[str]) -> list[str]:
        """The command behind a shell that bounds itself and becomes the command: no instant of it is unbounded."""
        numbers = (self.memory_bytes >> 10, self.output_bytes >> 9, self.cpu_s, self.cpu_s + 5)
        return ["/bin/sh", "-c", _BOUNDED, "sh", *map(str, numbers), *words]


@contextlib.contextmanager
def running(
    command: Sequence[str],
    *,
    output: Path | tuple[Path, Path],
    folder: Path,
    stop_signal: int = signal.SIGINT,
    variables: Mapping[str, str] | None = None,
    descriptors: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """A tool in a process group of its own, both its streams in a file; ended with its children on the way out.

    Where ``output`` is two files, the second is for what it complains of.

    ``setpriv --pdeathsig`` makes the kernel end it when Leadline is killed. ``variables`` are added to our environment,
    without its passwords. ``descriptors`` stay open in it: the way for a target, whose path it would read in its own
    way, and for a password, which a command line would show to everybody and an environment to others of this user (see
    `leadline.core.system.secret.in_memory`).

    Raises:
        ToolError: it is not installed or cannot be started.
    """
    words = [require_program(command[0], "the program, which does the work"), *command[1:]]
    setpriv = shutil.which("setpriv")
    if setpriv is not None:
        words = [setpriv, "--pdeathsig", "KILL", "--", *words]
    files = output if isinstance(output, tuple) else (output, output)
    with files[0].open("ab") as stream, files[1].open("ab") as complaints:
        process = _start(words, (stream, complaints), folder, child_environment(variables), descriptors)
    try:
        yield process
    finally:
        end(process, stop_signal)


def _start(
    words: list[str],
    streams: tuple[IO[bytes], IO[bytes]],
    folder: Path,
    env: dict[str, str],
    descriptors: Sequence[int],
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            cwd=folder,
            env=env,
            start_new_session=True,
            pass_fds=tuple(descriptors),
        )
    except OSError as error:
        raise ToolError(
            words[0], found=f"cannot be started ({error.strerror})", expected="a program", advice="Reinstall it."
        ) from error


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """How a tool ended: its exit status, what it complained of, and the limit it met, in words, if it met one."""

    status: int
    complaint: str
    limit: str | None


def run_limited(
    command: Sequence[str], *, output: Path, limits: ToolLimits, variables: Mapping[str, str] | None = None
) -> ToolEnd:
    """Run a tool that reads what a user gave, its output in a file, its time, memory and output bounded.

    Raises:
        ToolError: it is not installed or cannot be started.
    """
    errors = output.with_name(f"{output.name}.errors")
    output.write_bytes(b"")
    errors.write_bytes(b"")
    bounded = limits.around([require_program(command[0], "the program, which does the work"), *command[1:]])
    with running(bounded, output=(output, errors), folder=output.parent, variables=variables) as process:
        in_time = wait(process, limits.wall_s)
    with errors.open("rb") as stream:
        complaint = stream.read(COMPLAINT_BYTES_MAX).decode("utf-8", errors="replace").strip()
    status = process.returncode
    if not in_time:
        return ToolEnd(status, complaint, f"took longer than {limits.wall_s:g} s")
    if status == -signal.SIGXCPU:
        return ToolEnd(status, complaint, f"needed more than {limits.cpu_s} s of CPU time")
    if status == -signal.SIGXFSZ or output.stat().st_size >= limits.output_bytes:
        return ToolEnd(status, complaint, f"wrote more than {limits.output_bytes >> 20} MiB")
    if status and _MEMORY.search(complaint):
        return ToolEnd(status, complaint, f"needed more than {limits.memory_bytes >> 20} MiB of memory")
    return ToolEnd(status, complaint, None)


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


def wait(process: subprocess.Popen[bytes], timeout_s: float, look: Callable[[], None] | None = None) -> bool:
    """Wait until it ends; False when it has not after ``timeout_s``. ``look`` is called meanwhile, again and again."""
    deadline = time.monotonic() + timeout_s
    while process.poll() is None:
        if look is not None:
            look()
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True
