"""A link with latency and a bandwidth between a client and a server of this machine, for TCP of any content."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

CHUNK_BYTES = 16_384


@dataclass
class Link:
    """A proxy to a port of this machine; what it counts and how slow it is may change while it runs.

    Attributes:
        round_trip_s: half of it is added in each direction.
        bits_per_s: of each direction, shared by all connections.
        turns: how often the server sent after the client had: exchanges that waited for each other.
        byte_counts: to the server, to the client.
    """

    port: int = 0
    round_trip_s: float = 0.0
    bits_per_s: float = float("inf")
    turns: int = 0
    byte_counts: list[int] = field(default_factory=lambda: [0, 0])
    free_at: list[float] = field(default_factory=lambda: [0.0, 0.0])
    last_way: int = 1

    def reset(self) -> None:
        """Count anew."""
        self.turns, self.byte_counts = 0, [0, 0]

    def passed(self, way: int, size: int, now: float) -> float:
        """When so many bytes, sent now, are at the other end."""
        self.byte_counts[way] += size
        self.turns += int(way == 1 and self.last_way == 0)
        self.last_way = way
        self.free_at[way] = max(now, self.free_at[way]) + size * 8.0 / self.bits_per_s
        return self.free_at[way] + self.round_trip_s / 2.0


async def _pump(link: Link, way: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads at once and writes when it is time: latency does not bound how much is under way."""
    loop = asyncio.get_running_loop()
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def read() -> None:
        while data := await reader.read(CHUNK_BYTES):
            under_way.put_nowait((link.passed(way, len(data), loop.time()), data))
        under_way.put_nowait((loop.time() + link.round_trip_s / 2.0, b""))

    async def write() -> None:
        while True:
            at, data = await under_way.get()
            await asyncio.sleep(max(at - loop.time(), 0.0))
            if not data:
                return
            writer.write(data)
            await writer.drain()

    with contextlib.suppress(ConnectionError, asyncio.CancelledError):
        await asyncio.gather(read(), write())
    writer.close()


@contextlib.contextmanager
def slow_link(to_port: int) -> Iterator[Link]:
    """A link to a port of this machine, on a thread of its own."""
    link, begun = Link(), threading.Event()
    loop = asyncio.new_event_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            beyond_reader, beyond_writer = await asyncio.open_connection("127.0.0.1", to_port)
            await asyncio.gather(_pump(link, 0, reader, beyond_writer), _pump(link, 1, beyond_reader, writer))

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        link.port = server.sockets[0].getsockname()[1]
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await server.serve_forever()
        own = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in own:
            task.cancel()
        await asyncio.gather(*own, return_exceptions=True)

    main = loop.create_task(run())
    thread = threading.Thread(target=loop.run_until_complete, args=(main,), name="slow-link", daemon=True)
    thread.start()
    assert begun.wait(20)
    try:
        yield link
    finally:
        loop.call_soon_threadsafe(main.cancel)
        thread.join(20)
        loop.close()
