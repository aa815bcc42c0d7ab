"""The command line in this process: what a shell would start, without the second that starting Python takes.

Tests of what only a process shows (signals, closed pipes, limits of the shell) start `BIN`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from leadline.core.system import secret
from leadline.faces.cli.main import run as entry

BIN = Path(sys.executable).parent / "leadline"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leadline(
    *words: str | os.PathLike[str], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command: its exit status and what it printed; stdin is empty.

    Args:
        words: the command without ``leadline``.
        cwd: folder to run in; the present one by default.
        env: the whole environment; the present one by default.
    """
    arguments = [os.fspath(word) for word in words]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        with redirect_stdout(out), redirect_stderr(err), _as_process(arguments, cwd or Path(), env):
            status = _status()
        printed = []
        for stream in (out, err):
            stream.seek(0)
            printed.append(stream.read())
    return subprocess.CompletedProcess(["leadline", *arguments], status, *printed)


def _status() -> int:
    try:
        entry()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except BaseException:  # what the interpreter does at the end of a process
        traceback.print_exc()
        return 1


@contextmanager
def _as_process(arguments: list[str], cwd: Path, env: Mapping[str, str] | None) -> Iterator[None]:
    """The surroundings of a process of its own, and the old ones back."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        with (
            Path(os.devnull).open(encoding="utf-8") as nothing,
            mock.patch.object(sys, "argv", ["leadline", *arguments]),
            mock.patch.object(sys, "stdin", nothing),
            mock.patch.dict(os.environ, env or {}, clear=env is not None),
            mock.patch.object(secret, "_taken", {}),
            mock.patch.object(secret, "_known", set()),
            chdir(cwd),
        ):
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
