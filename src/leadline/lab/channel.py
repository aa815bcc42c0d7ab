"""The host's end of a guest's channel: commands in, output and exit status out, over a virtio-serial socket."""

from __future__ import annotations

import base64
import io
import itertools
import json
import queue
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.core.model.errors import ToolError

CLOCK_COUNT = 8  # Judgement: enough that one finds the guest idle
PRELOAD_S = 120.0  # Judgement: ten times what it takes under software emulation on an idle machine
LEAVE = b"\x1d"  # Ctrl-], as telnet and virsh have it
Seen = Callable[[str, bytes], None]  # the stream ("out" or "err") and what came


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a command printed and how it ended."""

    status: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.out.decode(errors="replace")


class Channel:
    """A connection to a guest's agent; several commands may run at once."""

    def __init__(self, path: Path, guest: str) -> None:
        self.guest = guest
        self._ids = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._writing = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(path))
        threading.Thread(target=self._listen, name=f"leadline-guest-{guest}", daemon=True).start()

    def _listen(self) -> None:
        try:
            with self._socket.makefile("rb") as stream:
                for line in stream:
                    answer = json.loads(line)
                    answers = self._waiting.get(answer["id"])
                    if answers is not None:
                        answers.put(answer)
        except (OSError, ValueError):
            pass
        for answers in list(self._waiting.values()):
            answers.put(None)  # the guest is gone

    def _ask(
        self, op: str, timeout_s: float, seen: Seen | None = None, number: int | None = None, **fields: object
    ) -> tuple[CommandOutput, float]:
        number = next(self._ids) if number is None else number
        answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._waiting[number] = answers
        output: dict[str, list[bytes]] = {"out": [], "err": []}
        clock = float("nan")
        deadline = time.monotonic() + timeout_s
        try:
            with self._writing:
                self._socket.sendall(json.dumps({"id": number, "op": op, **fields}).encode() + b"\n")
            while True:
                left_s = deadline - time.monotonic()
                answer = answers.get(timeout=None if left_s == float("inf") else max(left_s, 0.001))
                if answer is None:
                    raise self._gone("it ended")
                if "status" in answer:
                    return CommandOutput(answer["status"], b"".join(output["out"]), b"".join(output["err"])), clock
                clock = answer.get("time", clock)
                for name in output.keys() & answer.keys():
                    data = base64.b64decode(answer[name])
                    output[name].append(data)
                    if seen is not None:
                        seen(name, data)
        except queue.Empty:
            raise self._gone(f"no answer within {timeout_s:.0f} s to {op}") from None
        except OSError as error:
            raise self._gone(str(error.strerror)) from error
        finally:
            del self._waiting[number]

    def _gone(self, problem: str) -> ToolError:
        return ToolError(
            f"guest {self.guest}", found=problem, expected="an answer", advice="Look at its console log: lab console."
        )

    def is_there(self, timeout_s: float) -> bool:
        """Whether the agent answers within a time."""
        try:
            self._ask("time", timeout_s)
        except ToolError:
            return False
        return True

    def clock_offset_s(self) -> float:
        """The guest's clock less ours, halfway between question and answer; of the quickest of several answers."""
        offsets = []
        for _ in range(CLOCK_COUNT):
            before = time.time()
            _, clock = self._ask("time", 30.0)
            after = time.time()
            offsets.append((after - before, clock - (before + after) / 2.0))
        return min(offsets)[1]

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        seen: Seen | None = None,
    ) -> CommandOutput:
        """A program in the guest.

        Raises:
            ToolError: the guest does not answer in time or ends.
        """
        return self._ask("run", timeout_s, seen, argv=list(argv), env=dict(env or {}), cwd=cwd)[0]

    def leadline(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 120.0,
        env: Mapping[str, str] | None = None,
        cwd: str = "/tmp",
        seen: Seen | None = None,
    ) -> CommandOutput:
        """Leadline in the guest; it is loaded there by the first command."""
        return self._ask("leadline", timeout_s, seen, argv=list(argv), env=dict(env or {}), cwd=cwd)[0]

    def preload(self) -> None:
        """Have Leadline loaded, which takes seconds; a guest that cannot says so when it is asked for more."""
        with suppress(ToolError):
            self.leadline(["--version"], timeout_s=PRELOAD_S)

    def shell(self, rows: int, columns: int, typed: Callable[[], bytes], seen: Seen) -> int:
        """A shell on a terminal in the guest until it ends or Ctrl-] is typed; its exit status.

        Args:
            rows: of the terminal.
            columns: of the terminal.
            typed: waits for what is typed and returns it; empty at the end of input.
            seen: is given what the shell shows.
        """
        number = next(self._ids)
        is_open, ended = threading.Event(), threading.Event()
        status = 0

        def shown(stream: str, data: bytes) -> None:
            is_open.set()
            if data:
                seen(stream, data)

        def show() -> None:
            nonlocal status
            try:
                status = self._ask("shell", float("inf"), shown, number, rows=rows, columns=columns)[0].status
            finally:
                ended.set()
                is_open.set()

        threading.Thread(target=show, daemon=True).start()
        is_open.wait()
        while not ended.is_set():
            data = typed()
            if not data or LEAVE in data:
                break
            self._ask("input", 10.0, shell=number, data=base64.b64encode(data).decode())
        return status

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file in the guest.

        Raises:
            ToolError: it cannot be written.
        """
        answer, _ = self._ask("put", 60.0, path=path, data=base64.b64encode(data).decode(), mode=mode)
        if answer.status:
            raise self._gone(answer.err.decode(errors="replace").strip())

    def fetch(self, path: str, folder: Path) -> Path:
        """Copy a file or folder of the guest into a folder here.

        Raises:
            ToolError: it is not there.
        """
        answer, _ = self._ask("get", 300.0, path=path)
        if answer.status:
            raise self._gone(answer.err.decode(errors="replace").strip())
        with tarfile.open(fileobj=io.BytesIO(answer.out)) as tar:
            tar.extractall(folder, filter="data")
        return folder / Path(path).name

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()
