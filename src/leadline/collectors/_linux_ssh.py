"""A Linux machine's counters over SSH: a shell there waits for a line and answers with its files, sample after sample.

Nothing is installed or written there, and nothing goes on when the connection ends: the shell's input is over then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from leadline.core.model.errors import ToolError
from leadline.core.system.ssh import Login, command_of, connect, reason

if TYPE_CHECKING:
    import asyncssh

ANSWER_S = 10.0
CLOSE_S = 5.0
ANSWER_BYTES_MAX = 8 << 20  # Judgement: a hundred times the files of a machine with a thousand CPUs
_END = b"~\n"
_T = TypeVar("_T")
# Words: the files to copy. First it names those that cannot be read there. One process is started per sample.
SCRIPT = r"""
n=$#
while [ "$n" -gt 0 ]; do
    f=$1
    shift
    n=$((n - 1))
    if cat "$f" >/dev/null 2>&1; then set -- "$@" "$f"; else echo "- $f"; fi
done
echo '~'
once='/proc/sys/kernel/hostname /proc/sys/kernel/osrelease'
while read -r _; do
    awk 'FNR == 1 { print "## " FILENAME }
        FILENAME == "/proc/stat" && !/^(cpu|ctxt|procs_)/ { next }
        FILENAME == "/proc/vmstat" && !/^(pgpg|pswp|pgmajfault)/ { next }
        { print }' $once "$@" 2>/dev/null
    echo '~'
    once=
done
"""


class RemoteLinuxRecorder:
    """Appends a block per sample; one connection stays open.

    The time of a block is ours, half way between question and answer, so that all that is recorded here has one clock.

    Args:
        login: the machine, and who logs in.
        stream: what blocks are appended to; it is closed with the recorder.
        paths: the files to copy.

    Raises:
        ToolError: it cannot be reached, its key is not known, it refuses the login, or it is no Linux machine.
    """

    def __init__(self, login: Login, stream: IO[bytes], paths: tuple[str, ...]) -> None:
        self.notes: list[str] = []
        self._login = login
        self._stream = stream
        self._connection: asyncssh.SSHClientConnection | None = None
        self._shell: asyncssh.SSHClientProcess[bytes] | None = None
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        try:
            self._begin(paths)
        except BaseException:
            self.close()
            raise

    def sample(self) -> None:
        """Append a block.

        Raises:
            ToolError: the connection is lost, there is no answer in time, or the file cannot be written.
        """
        before = datetime.now(UTC)
        block = self._run(self._ask())
        moment = before + (datetime.now(UTC) - before) / 2
        if not block.startswith(b"## /proc/"):
            raise self._failed("an answer without counters", "awk and /proc there", "Log in by hand and try awk.")
        try:
            self._stream.write(f"# {moment.isoformat(timespec='milliseconds')}\n".encode() + block)
        except OSError as error:
            raise ToolError(
                self._stream.name, found=str(error.strerror), expected="space to write to", advice="Free some."
            ) from error

    def close(self) -> None:
        """Give up the connection and the file."""
        with suppress(Exception):
            self._runner.run(self._end())
        self._runner.close()
        self._stream.close()

    def _begin(self, paths: tuple[str, ...]) -> None:
        unread = self._run(self._open(paths)).decode(errors="replace").split("\n")
        missing = [line.removeprefix("- ") for line in unread if line.startswith("- ")]
        if "/proc/stat" in missing:
            raise self._failed("no /proc/stat", "a Linux machine", "Record it with its system's own tools.")
        self.notes += [f"{name} left out: it cannot be read there" for name in missing]

    async def _open(self, paths: tuple[str, ...]) -> bytes:
        self._connection = await connect(self._login)
        self._shell = await self._connection.create_process(command_of(SCRIPT, *paths), encoding=None)
        return await self._answer(self._shell)

    async def _ask(self) -> bytes:
        if self._shell is None:
            raise ConnectionError("it was closed")
        self._shell.stdin.write(b"\n")
        return await self._answer(self._shell)

    async def _answer(self, shell: asyncssh.SSHClientProcess[bytes]) -> bytes:
        """What the shell prints until its mark."""
        answer = bytearray()
        async with asyncio.timeout(ANSWER_S):
            while not (answer.endswith(b"\n" + _END) or answer == _END):
                data = await shell.stdout.read(1 << 16)
                if not data:
                    raise ConnectionError("the connection ended")
                answer += data
                if len(answer) > ANSWER_BYTES_MAX:
                    raise ConnectionError(f"an answer of more than {ANSWER_BYTES_MAX >> 20} MiB")
        return bytes(answer[: -len(_END)])

    async def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            async with asyncio.timeout(CLOSE_S):
                await self._connection.wait_closed()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of some work on the connection.

        Raises:
            ToolError: the connection is lost, or there is no answer in time.
        """
        import asyncssh  # noqa: PLC0415 - takes a tenth of a second, and only this needs it

        try:
            return self._runner.run(work)
        except (OSError, TimeoutError, asyncssh.Error) as error:
            advice = "What was sampled until then is kept. Is the machine up, and not overloaded?"
            raise self._failed(reason(error), "an answer over SSH", advice) from error

    def _failed(self, cause: str, expected: str, advice: str) -> ToolError:
        return ToolError(f"ssh://{self._login.host}", found=cause, expected=expected, advice=advice)


def expanded(identity: str) -> str:
    """The path of a key, with the user's home for ``~``; empty for none."""
    return str(Path(identity).expanduser()) if identity else ""
