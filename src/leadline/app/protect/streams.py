"""Backup streams of simulated VMs: incompressible data that can be made again, cut into stripes, written as shards.

Streams are threads: making a stripe, encoding it and writing it all release Python's lock (measured against processes
in docs/decisions). Each stream has a lane to every node, so that one slow node holds back only what waits for it.
"""

from __future__ import annotations

import hashlib
import struct
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.protect.shards import Coder, ProtectionScheme, aligned
from leadline.core.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.app.measure.nbd import Bytes
    from leadline.app.protect.nodes import Node, NodeLane

_BASE_WORDS = 4 * 1024**2  # 32 MiB of random words: more than compressors look back
_UNITS_IN_FLIGHT = 6  # of data per stream, the same for every scheme, so that none waits for fewer writes
_POLL_S = 0.05


class StreamSource:
    """The data of every stream: a function of the seed, the stream and the stripe.

    A stripe is a stretch of one random block, every word changed by a key of the stripe's own: no two blocks of any two
    stripes are alike, and nothing in them compresses, at the speed of memory instead of a generator's.
    """

    def __init__(self, seed: int, stripe_bytes: int) -> None:
        self._seed = seed
        words = _BASE_WORDS + stripe_bytes // 8
        self._base = np.random.Generator(np.random.SFC64(seed)).integers(0, 2**64, words, dtype=np.uint64)

    def fill(self, stream: int, stripe: int, out: Bytes) -> None:
        """Write the stripe's data into a buffer [stripe bytes]."""
        digest = hashlib.blake2b(struct.pack("<QQQ", self._seed, stream, stripe), digest_size=16).digest()
        key, start = struct.unpack("<QQ", digest)
        words = out.view(np.uint64)
        start %= _BASE_WORDS
        np.bitwise_xor(self._base[start : start + len(words)], np.uint64(key), out=words)


@dataclass(frozen=True, slots=True)
class WriteLoad:
    """What is written in one phase: so many streams, each a ring of stripes, for a time or once around."""

    scheme: ProtectionScheme
    vm_count: int
    unit_bytes: int
    size_bytes: int
    seconds: float | None
    seed: int

    @property
    def stripe_bytes(self) -> int:
        """Data in a stripe."""
        return self.scheme.data_count * self.unit_bytes

    @property
    def slot_count(self) -> int:
        """Stripes a stream keeps; in a timed phase later ones overwrite the oldest."""
        return max(-(-self.size_bytes // self.stripe_bytes), 1)

    @property
    def region_bytes(self) -> int:
        """Room a stream needs on a node."""
        return self.slot_count * self.unit_bytes

    def node_of(self, stream: int, slot: int, shard: int, node_count: int) -> int:
        """Where a shard lies: placement rotates with the stripe, so that parity is spread over all nodes."""
        return (stream + slot + shard) % node_count


@dataclass(slots=True)
class StreamPhase:
    """What one phase wrote: times in seconds, sizes in bytes."""

    load: WriteLoad
    stripes: list[int]  # written by each stream
    node_bytes: list[int]
    seconds: float = float("nan")
    cpu_s: float = float("nan")
    stream_cpu_s: float = 0.0
    encode_cpu_s: float = 0.0
    stored_bytes: float = float("nan")
    sent_bytes: int = 0  # by an encoder beside the streams
    relayed_bytes: int = 0  # by an encoder on the stripe's first node: the data to it, the other shards from it
    is_direct: bool = True
    is_complete: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def logical_bytes(self) -> int:
        """Data the streams wrote."""
        return sum(self.stripes) * self.load.stripe_bytes

    @property
    def kept_bytes(self) -> int:
        """Data that is still there at the end; less than written when a timed phase went around its ring."""
        return sum(min(count, self.load.slot_count) for count in self.stripes) * self.load.stripe_bytes

    def latest(self, stream: int, slot: int) -> int:
        """The stripe that a slot holds."""
        count = self.load.slot_count
        return slot + (self.stripes[stream] - 1 - slot) // count * count


class Writers:
    """Runs phases over the same nodes; ``stop`` ends one early, within the time of the writes under way."""

    def __init__(self, nodes: Sequence[Node], source: StreamSource, stop: threading.Event) -> None:
        self._nodes = nodes
        self._source = source
        self._stop = stop

    def run(self, load: WriteLoad) -> StreamPhase:
        """Write a phase on emptied nodes, to the last fdatasync or flush.

        Raises:
            ToolError: a node fails while written to.
        """
        for node in self._nodes:
            node.prepare(load.region_bytes)
        phase = StreamPhase(load, [0] * load.vm_count, [0] * len(self._nodes))
        coder = Coder(load.scheme, load.unit_bytes)
        barrier = threading.Barrier(load.vm_count + 1)
        ends: list[float] = []
        failures: list[BaseException] = []

        def stream(index: int) -> None:
            try:
                with ExitStack() as stack:
                    lanes = [self._lane(stack, node, index) for node in self._nodes]
                    writer = _Stream(self._source, coder, phase, index, lanes)
                    barrier.wait()
                    writer.write(self._stop)
                ends.append(time.perf_counter())
            except (OSError, NodeFailure) as error:
                failures.append(error)
                self._stop.set()
                barrier.abort()
            except threading.BrokenBarrierError:
                pass

        threads = [threading.Thread(target=stream, args=(i,), daemon=True) for i in range(load.vm_count)]
        for thread in threads:
            thread.start()
        begin, cpu = _started(barrier)
        _join(threads, self._stop)
        if failures:
            raise _failed(failures[0], self._nodes) from failures[0]
        phase.seconds = max(ends, default=begin) - begin
        phase.cpu_s = _cpu_s() - cpu
        phase.is_complete = not self._stop.is_set()
        phase.sent_bytes, phase.relayed_bytes = self._network_bytes(phase)
        phase.stored_bytes = sum(node.stored_bytes() for node in self._nodes)
        return phase

    @staticmethod
    def _lane(stack: ExitStack, node: Node, index: int) -> NodeLane:
        lane = node.open(index, writing=True)
        stack.callback(lane.close)
        return lane

    def _network_bytes(self, phase: StreamPhase) -> tuple[int, int]:
        """From what was written to each node; the request headers of NBD are counted, TCP's are not."""
        unit, scheme = phase.load.unit_bytes, phase.load.scheme
        sent = sum(
            written + written // unit * node.overhead_bytes
            for written, node in zip(phase.node_bytes, self._nodes, strict=True)
        )
        # Of each stripe the first shard stays on the node that encodes; the data come to that node instead.
        shard_bytes = sum(phase.stripes) * (unit + self._nodes[0].overhead_bytes)
        return sent, sent - shard_bytes + sum(phase.stripes) * scheme.data_count * unit


class NodeFailure(Exception):
    """A write to a node failed."""

    def __init__(self, node_index: int, error: OSError) -> None:
        self.node_index = node_index
        super().__init__(error.strerror or str(error))


class _Stream:
    """One VM's stream: stripes in a few buffers, written to all nodes at once."""

    def __init__(
        self, source: StreamSource, coder: Coder, phase: StreamPhase, index: int, lanes: list[NodeLane]
    ) -> None:
        load = phase.load
        scheme, unit = load.scheme, load.unit_bytes
        self._source, self._coder, self._phase, self._index, self._lanes = source, coder, phase, index, lanes
        depth = max(-(-_UNITS_IN_FLIGHT // scheme.data_count), 2)
        buffer_count = scheme.shard_count if scheme.data_count > 1 else 1  # copies are written from one buffer
        self._buffers = [aligned(buffer_count * unit) for _ in range(depth)]
        self._pending: list[list[Future[None]]] = [[] for _ in range(depth)]
        self._node_bytes = [0] * len(lanes)
        phase.is_direct &= all(lane.is_direct for lane in lanes)

    def write(self, stop: threading.Event) -> None:
        """Stripe after stripe until the ring is full or the time is over; then all nodes make it durable."""
        load = self._phase.load
        end = None if load.seconds is None else time.perf_counter() + load.seconds
        stripe, stream_cpu, encode_cpu = 0, 0.0, 0.0
        with ExitStack() as stack:
            # A lane is one thread: its writes are in order, and the count of its node needs no lock.
            pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in self._lanes]
            while not stop.is_set() and not _is_over(load, stripe, end):
                turn = stripe % len(self._buffers)
                _settle(self._pending[turn])
                shards = self._shards(self._buffers[turn])
                begin = time.thread_time()
                self._source.fill(self._index, stripe, self._buffers[turn][: load.stripe_bytes])
                filled_at = time.thread_time()
                self._coder.encode(shards)
                stream_cpu, encode_cpu = stream_cpu + filled_at - begin, encode_cpu + time.thread_time() - filled_at
                self._pending[turn] = self._send(pools, stripe, shards)
                stripe += 1
            if stop.is_set():
                for pool in pools:  # what is queued is dropped; at most one write per lane is waited for
                    pool.shutdown(wait=False, cancel_futures=True)
            else:
                _settle([one for pending in self._pending for one in pending])
                _settle([pool.submit(lane.sync) for pool, lane in zip(pools, self._lanes, strict=True)])
        self._report(stripe, stream_cpu, encode_cpu)

    def _shards(self, buffer: Bytes) -> list[Bytes]:
        scheme, unit = self._phase.load.scheme, self._phase.load.unit_bytes
        if scheme.data_count == 1:
            return [buffer] * scheme.shard_count
        return [buffer[i * unit : (i + 1) * unit] for i in range(scheme.shard_count)]

    def _send(self, pools: list[ThreadPoolExecutor], stripe: int, shards: list[Bytes]) -> list[Future[None]]:
        load = self._phase.load
        slot = stripe % load.slot_count
        sent = []
        for shard_index, shard in enumerate(shards):
            node = load.node_of(self._index, slot, shard_index, len(self._lanes))
            sent.append(pools[node].submit(self._write_one, node, slot * load.unit_bytes, shard))
        return sent

    def _write_one(self, node: int, offset: int, shard: Bytes) -> None:
        try:
            self._lanes[node].write(offset, shard)
        except OSError as error:
            raise NodeFailure(node, error) from error
        self._node_bytes[node] += shard.nbytes

    def _report(self, stripe_count: int, stream_cpu_s: float, encode_cpu_s: float) -> None:
        phase = self._phase
        with phase._lock:
            phase.stripes[self._index] = stripe_count
            phase.stream_cpu_s += stream_cpu_s
            phase.encode_cpu_s += encode_cpu_s
            for node, written in enumerate(self._node_bytes):
                phase.node_bytes[node] += written


def _is_over(load: WriteLoad, stripe: int, end: float | None) -> bool:
    return stripe >= load.slot_count if end is None else time.perf_counter() >= end


def _settle(pending: list[Future[None]]) -> None:
    wait(pending)
    for one in pending:
        one.result()


def _started(barrier: threading.Barrier) -> tuple[float, float]:
    """When the streams start together, and the CPU seconds used until then; a failing one breaks the barrier."""
    cpu = _cpu_s()
    try:
        barrier.wait()
    except threading.BrokenBarrierError:
        pass
    except KeyboardInterrupt:
        barrier.abort()
        raise
    return time.perf_counter(), cpu


def _join(threads: list[threading.Thread], stop: threading.Event) -> None:
    """Wait for the streams; Ctrl-C stops them and is not lost: the phase is then not complete."""
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join(_POLL_S)
            except KeyboardInterrupt:
                stop.set()


def _cpu_s() -> float:
    return time.process_time()


def _failed(error: BaseException, nodes: Sequence[Node]) -> ToolError:
    where = nodes[error.node_index].name if isinstance(error, NodeFailure) else "a node"
    cause = getattr(error, "strerror", None) or str(error)
    return ToolError(
        where, found=f"writing failed: {cause}", expected="a node that takes writes", advice="See its log."
    )
