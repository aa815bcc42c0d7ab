"""A relay between fio's clients and its servers that makes all machines start together, and measures when they did.

fio's server looks for commands once a second, counted from the moment it was connected to, so clients that merely start
at the same time start their load up to a second apart. The relay therefore connects to all servers at the same moment,
waits until every one has loaded its job, and passes the command to run on half way between two looks.

Every machine has a client of its own, because a single client for all would end with the first that fails. A client
that is killed leaves its load running on the server; the relay then sends the command to quit in its place.

Source: fio 3.33, ``server.h`` (``struct fio_net_cmd``, ``FIO_NET_CMD_*``), ``server.c`` (``fio_handle_connection``),
``crc/crc16.c``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

HEADER = struct.Struct("<HHIQIHH")  # version, opcode, flags, tag, bytes that follow, two checksums
CHECKED_BYTES = 20  # of the header, by its first checksum
PDU_BYTES_MAX = 1 << 20
QUIT, LOADED, ENDED, STARTED, RUN = 1, 11, 12, 14, 16
LOOK_S = 1.0  # how often fio's server looks for commands
ARRIVAL_S = 3.0  # fio's client gives up after 5 s without an answer
LOADING_S = 15.0  # Judgement
DIAL_S = 15.0
PIECE = 1 << 16


class Reader(Protocol):
    """The half of a connection that is read."""

    async def read(self, n: int = -1, /) -> bytes:
        """Some bytes; none at the end."""


class Writer(Protocol):
    """The half of a connection that is written."""

    def write(self, data: bytes, /) -> Any:  # noqa: ANN401 - SSH's returns nothing of use either
        """Queue bytes."""

    async def drain(self) -> None:
        """Wait until they can be sent."""

    def close(self) -> None:
        """Close it."""


Dial = Callable[[], Awaitable[tuple[Reader, Writer]]]


@dataclass(slots=True)
class GateLane:
    """One machine in one step; times are of this machine's monotonic clock, None until it happened."""

    dial: Dial
    arrived: bool = False
    loaded: bool = False
    gone: bool = False
    connected_s: float | None = None
    run_sent: bool = False
    started_s: float | None = None
    ended_s: float | None = None
    error: str | None = None
    version: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Gate:
    """The relay of one step: a socket per machine in a folder; used inside an event loop."""

    def __init__(self, dials: Mapping[int, Dial], folder: Path) -> None:
        self.lanes = {index: GateLane(dial) for index, dial in dials.items()}
        self._folder = folder
        self._changed = asyncio.Condition()
        self._servers: list[asyncio.Server] = []
        self._run_at: float | None = None

    @staticmethod
    def name_of(index: int) -> str:
        """The socket of a machine; fio puts it into the names of the logs it is sent."""
        return f"host-{index + 1}"

    async def open(self) -> None:
        """Listen."""
        for index in self.lanes:
            path = self._folder / self.name_of(index)
            path.unlink(missing_ok=True)

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, index: int = index) -> None:
                await self._serve(self.lanes[index], reader, writer)

            self._servers.append(await asyncio.start_unix_server(serve, path))

    async def close(self) -> None:
        """End what still runs; loads without a client are told to quit."""
        for server in self._servers:
            server.close()
        tasks = [task for lane in self.lanes.values() for task in lane.tasks]
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 2 * LOOK_S) if tasks else None

    async def client_ended(self, index: int) -> None:
        """Nobody waits for this machine any longer."""
        await self._note(self.lanes[index], gone=True)

    async def _note(self, lane: GateLane, **changes: bool) -> None:
        async with self._changed:
            for name, value in changes.items():
                setattr(lane, name, value)
            self._changed.notify_all()

    async def _everyone(self, name: str, patience_s: float) -> None:
        """Wait until every machine is that far, has failed or has taken too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s), self._changed:
                await self._changed.wait_for(lambda: all(getattr(o, name) or o.gone for o in self.lanes.values()))

    async def _serve(self, lane: GateLane, reader: Reader, writer: Writer) -> None:
        await self._note(lane, arrived=True)
        await self._everyone("arrived", ARRIVAL_S)
        try:
            async with asyncio.timeout(DIAL_S):
                up_reader, up_writer = await lane.dial()
        except Exception as error:
            lane.error = f"cannot be reached ({_reason(error)})"
            await self._note(lane, gone=True)
            writer.close()
            return
        lane.connected_s = time.monotonic()
        lane.tasks = [
            asyncio.create_task(self._up(lane, reader, up_writer)),
            asyncio.create_task(self._down(lane, up_reader, writer)),
        ]
        await asyncio.gather(*lane.tasks, return_exceptions=True)
        await self._note(lane, gone=True)
        for end in (writer, up_writer):
            with contextlib.suppress(Exception):
                end.close()

    async def _up(self, lane: GateLane, reader: Reader, writer: Writer) -> None:
        """From the client to the server, with the command to run held back."""
        frames, quitting = _Frames(), False
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE):
                for frame, opcode in frames.of(data):
                    if opcode == RUN:
                        await self._hold(lane)
                        lane.run_sent = True
                    quitting = quitting or opcode == QUIT
                    lane.version = frames.version or lane.version
                    writer.write(frame)
                await writer.drain()
        if lane.run_sent and lane.ended_s is None and not quitting:
            with contextlib.suppress(Exception):
                writer.write(quit_command(lane.version))
                await writer.drain()
                await asyncio.sleep(LOOK_S * 1.1)  # until the server has looked
        writer.close()  # there is nobody left to tell anything

    async def _down(self, lane: GateLane, reader: Reader, writer: Writer) -> None:
        """From the server to the client, looked at on the way."""
        frames = _Frames()
        try:
            while data := await reader.read(PIECE):
                now = time.monotonic()
                for frame, opcode in frames.of(data):
                    if opcode in (LOADED, None):
                        await self._note(lane, loaded=True)
                    elif opcode == STARTED and lane.started_s is None:
                        lane.started_s = now
                    elif opcode == ENDED:
                        lane.ended_s = now
                    writer.write(frame)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def _hold(self, lane: GateLane) -> None:
        await self._everyone("loaded", LOADING_S)
        if self._run_at is None:
            connected = [
                other.connected_s for other in self.lanes.values() if other.connected_s is not None and not other.gone
            ]
            base, now = max(connected, default=time.monotonic()), time.monotonic()
            looks = int((now - base) / LOOK_S - 0.5) + 1 if now > base + 0.5 * LOOK_S else 0
            self._run_at = base + (looks + 0.5) * LOOK_S
        await asyncio.sleep(max(self._run_at - time.monotonic(), 0.0))


class _Frames:
    """Splits a stream into fio's commands; what is no such stream is passed on as it comes, with opcode None."""

    def __init__(self) -> None:
        self._pending = b""
        self._foreign = False
        self.version = 0

    def of(self, data: bytes) -> Iterator[tuple[bytes, int | None]]:
        """The commands that are whole now."""
        self._pending += data
        while not self._foreign and len(self._pending) >= HEADER.size:
            version, opcode, _, _, size, *_ = HEADER.unpack_from(self._pending)
            if size > PDU_BYTES_MAX:
                self._foreign = True
                break
            end = HEADER.size + size
            if len(self._pending) < end:
                return
            frame, self._pending = self._pending[:end], self._pending[end:]
            self.version = version
            yield frame, opcode
        if self._foreign and self._pending:
            frame, self._pending = self._pending, b""
            yield frame, None


def quit_command(version: int) -> bytes:
    """The command that makes a server end its load.

    >>> len(quit_command(97)), hex(crc16(b"123456789"))
    (24, '0xbb3d')
    """
    head = HEADER.pack(version, QUIT, 0, 0, 0, 0, 0)[:CHECKED_BYTES]
    return head + struct.pack("<HH", crc16(head), 0)


def crc16(data: bytes) -> int:
    """CRC-16 with the polynomial 0x8005, reflected, as fio and the Linux kernel compute it."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0xA001 if value & 1 else 0)
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # asyncio's own text repeats the address
    return str(getattr(error, "reason", "") or error)[:120] or type(error).__name__


def dial_address(address: str) -> Dial:
    """How to connect to a server named as fio's client takes it: ``host[,port]``, ``ip6:host,port``, ``sock:path``."""

    async def dial() -> tuple[Reader, Writer]:
        if address.startswith("sock:"):
            return await asyncio.open_unix_connection(address.removeprefix("sock:"))
        rest = address
        for prefix in ("ip4:", "ip6:", "ip:"):
            rest = rest.removeprefix(prefix)
        host, _, port = rest.partition(",")
        return await asyncio.open_connection(host, int(port or DEFAULT_PORT))

    return dial


DEFAULT_PORT = 8765
