"""A program in a guest, followed from here: what it prints is appended to files on this side as it comes."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from leadline.core.model.errors import ToolError
from leadline.core.system.processes import POLL_S
from leadline.lab.channel import Channel

GONE = 125  # the exit status of a program whose guest is gone, as the agent has it for what it could not start
END_S = 2.0  # Judgement: for a guest to end what was killed
_NOTED = 'echo $$ > "$0"; exec "$@"'  # the shell becomes the program, so its number is the program's
_numbers = itertools.count(1)


class Program:
    """A program of a guest: polled and sent signals like a process of this machine."""

    def __init__(self, channel: Channel, words: Sequence[str], output: Path, talk: Path) -> None:
        self._channel = channel
        self._note = f"/tmp/program-{next(_numbers)}.pid"
        self._status: int | None = None
        self._thread = threading.Thread(target=self._run, args=(list(words), output, talk), daemon=True)
        self._thread.start()

    def _run(self, words: list[str], output: Path, talk: Path) -> None:
        with output.open("ab", buffering=0) as out, talk.open("ab", buffering=0) as err:

            def keep(name: str, data: bytes) -> None:
                (out if name == "out" else err).write(data)

            try:
                asked = ["sh", "-c", _NOTED, self._note, *words]
                answer = self._channel.run(asked, timeout_s=float("inf"), cwd="/tmp", seen=keep)
                self._status = answer.status
            except ToolError as error:
                err.write(f"{error}\n".encode())
                self._status = GONE

    def poll(self) -> int | None:
        """Its exit status, None while it runs; what it printed is whole once it is known."""
        return self._status

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal; nothing happens where it or its guest is gone."""
        with suppress(ToolError):
            self._channel.run(["sh", "-c", f"kill -{int(sig)} $(cat {self._note})"], timeout_s=END_S)

    def end(self) -> None:
        """Kill it if it still runs."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)
            deadline = time.monotonic() + END_S
            while self.poll() is None and time.monotonic() < deadline:
                time.sleep(POLL_S)


@contextmanager
def running_in(channel: Channel, words: Sequence[str], *, output: Path, talk: Path) -> Iterator[Program]:
    """A program in a guest, killed on the way out: its standard output goes to ``output``, the rest to ``talk``."""
    program = Program(channel, words, output, talk)
    try:
        yield program
    finally:
        program.end()
