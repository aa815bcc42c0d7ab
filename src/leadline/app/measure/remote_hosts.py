"""A machine that is loaded over SSH: checked first, its target opened and locked, its counters copied.

fio loads it by a server behind the connection, vdbench by runs of its own (`vdbench_servers`). The server listens on a
socket in a folder only its user may enter: no port is opened, and no other user of that machine can make it run
anything. The load ends, and what was made is removed, when the connection ends, whatever the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.app.measure.fio_gate import Reader, Writer
from leadline.app.measure.remote_scripts import (
    CHECK,
    CLOCK,
    HOLD,
    SAMPLE,
    SAMPLED,
    SERVE,
    RemoteFacts,
    objection,
    read_check,
)
from leadline.core.model.errors import ToolError
from leadline.core.system.ssh import Login, answer, command_of, connect, reason

if TYPE_CHECKING:
    import asyncssh

CLOCK_COUNT = 7
READY_S = 20.0
END_S = 5.0


@dataclass(frozen=True, slots=True)
class MachineWish:
    """What a machine is needed for.

    Attributes:
        path: its target, a folder or device.
        destroy: whether it may be overwritten.
        name: of the folder that is made in a folder.
        sizes: lengths of the files that are made there.
        samples: where its counters are copied to.
        vdbench: folder or name of vdbench there, if that makes the load; empty where fio does.
    """

    path: str
    destroy: bool
    name: str
    sizes: tuple[int, ...]
    samples: Path
    every_s: float = 1.0
    vdbench: str = ""

    @property
    def needed_bytes(self) -> int:
        """How much is written."""
        return sum(self.sizes)


@dataclass(slots=True)
class RemoteMachine:
    """A machine with its target open; ``ready_at`` is fio's socket there, or vdbench's folder and target."""

    connection: asyncssh.SSHClientConnection
    checked: RemoteFacts
    clock_offset_s: float
    clock_error_s: float
    ready_at: str = ""
    notes: list[str] = field(default_factory=list)
    _server: Any = None
    _sampler: asyncio.Task[None] | None = None

    async def dial(self) -> tuple[Reader, Writer]:
        """A connection to its fio server."""
        return await self.connection.open_unix_connection(self.ready_at)

    async def close(self) -> bool:
        """End the server and remove what was made; whether the machine said so."""
        removed = False
        if self._sampler is not None:
            self._sampler.cancel()
            await asyncio.gather(self._sampler, return_exceptions=True)
        if self._server is not None:
            with contextlib.suppress(Exception):
                self._server.stdin.write_eof()
                done = await asyncio.wait_for(self._server.wait(check=False), END_S)
                removed = done.exit_status == 0
        self.connection.close()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.connection.wait_closed(), END_S)
        return removed


async def open_machine(login: Login, wish: MachineWish) -> RemoteMachine:
    """Log in, look whether the target may be loaded, start the server and the copying.

    Raises:
        ToolError: it cannot be reached or must not be loaded; nothing is left there.
    """
    connection = await connect(login)
    machine: RemoteMachine | None = None
    try:
        checked = read_check(await answer(connection, CHECK, wish.path, wish.vdbench))
        _require_loadable(login, checked, wish)
        offset, error = await _clock(connection)
        machine = RemoteMachine(connection, checked, offset, error)
        machine.notes.append(_clock_note(offset, error))
        await _serve(machine, wish)
        machine._sampler = asyncio.create_task(_sample(machine, wish))
    except BaseException:
        if machine is not None:
            await machine.close()
        connection.close()
        raise
    return machine


def _require_loadable(login: Login, checked: RemoteFacts, wish: MachineWish) -> None:
    tool = "vdbench" if wish.vdbench else "fio"
    if wish.vdbench and (checked.vdbench is None or checked.java is None):
        raise ToolError(
            login.host,
            found=f"no vdbench there ({wish.vdbench})" if checked.vdbench is None else "no Java there",
            expected="vdbench under the same path on every host, and Java on the PATH of a login over SSH",
            advice="Install it there, or leave the host out. See docs/guides/hosts.md.",
        )
    why_not = objection(checked, wish.path, wish.needed_bytes, destroy=wish.destroy, tool=tool)
    if why_not is not None:
        raise ToolError(login.host, found=why_not, expected="a target to load", advice="Name another target.")


async def _clock(connection: asyncssh.SSHClientConnection) -> tuple[float, float]:
    """How far its clock is ahead of ours (s), and how wrong that may be: half of the quickest answer's way.

    Source: RFC 5905, section 8: the offset is known to half of the round trip.
    """
    best = (float("nan"), float("inf"))
    with contextlib.suppress(OSError, ValueError, TimeoutError):
        async with asyncio.timeout(END_S), connection.create_process(command_of(CLOCK)) as process:
            for _ in range(CLOCK_COUNT):
                before = time.time()
                process.stdin.write("\n")
                clock_line = await process.stdout.readline()
                after = time.time()
                half = (after - before) / 2.0
                if half < best[1]:
                    best = (float(clock_line) - before - half, half)
            process.stdin.write_eof()
    return best


def _clock_note(offset_s: float, error_s: float) -> str:
    if offset_s != offset_s:  # noqa: PLR0124 - NaN is not measured
        return "its clock could not be compared"
    if abs(offset_s) <= error_s:
        return f"clock: no difference ({1000 * error_s:.0f} ms could be told)"
    return f"clock: {abs(offset_s):.3f} s {'ahead' if offset_s > 0 else 'behind'} (give or take {error_s:.3f} s)"


async def _serve(machine: RemoteMachine, wish: MachineWish) -> None:
    import asyncssh  # noqa: PLC0415

    checked = machine.checked
    words = (str(checked.kind), wish.path, checked.identity, wish.name, *map(str, wish.sizes))
    command = command_of(HOLD if wish.vdbench else SERVE, *words)
    machine._server = await machine.connection.create_process(command, errors="replace")
    try:
        answer_line = str(await asyncio.wait_for(machine._server.stdout.readline(), READY_S)).strip()
    except (OSError, TimeoutError, asyncssh.Error) as error:
        answer_line = f"failed {reason(error)}"
    word, _, rest = answer_line.partition(" ")
    if word != "ready":
        where, expected = ("vdbench", "a target that is open") if wish.vdbench else ("fio --server", "a server")
        raise ToolError(where, found=rest[:160] or "no word of it", expected=expected, advice="Start it there by hand.")
    machine.ready_at = rest


async def _sample(machine: RemoteMachine, wish: MachineWish) -> None:
    """Append what the machine copies, as it comes; a cut last block is one the importer leaves out."""
    import asyncssh  # noqa: PLC0415

    command = command_of(SAMPLE, f"{wish.every_s:g}", *SAMPLED)
    try:
        async with machine.connection.create_process(command, encoding=None) as process:
            with wish.samples.open("ab", buffering=0) as stream:
                while data := await process.stdout.read(1 << 16):
                    stream.write(data)
    except (OSError, asyncssh.Error) as error:
        machine.notes.append(f"its counters were not copied any more: {reason(error)}")
