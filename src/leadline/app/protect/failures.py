"""Node failure: what is lost is counted, what survives is read back, restored and compared with its source's hash.

Hashes are those of the streams' data, made again from the seed after the writing: they know nothing of what was stored,
and take no part in the throughput.
"""

from __future__ import annotations

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.app.protect.shards import Coder, aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.app.measure.nbd import Bytes
    from leadline.app.protect.nodes import Node, NodeLane
    from leadline.app.protect.streams import StreamPhase, StreamSource

COMBINATIONS_MAX = 64


@dataclass(slots=True)
class Reading:
    """Every stripe read with some nodes down: counts of stripes, bytes, seconds."""

    failed: tuple[int, ...]
    stripe_count: int = 0
    lost_count: int = 0  # too few shards left
    wrong_count: int = 0  # read, but not what was written
    restored_count: int = 0  # shards made from others
    read_bytes: int = 0
    seconds: float = 0.0

    @property
    def survived(self) -> bool:
        """Whether every stripe was read and is what was written."""
        return self.stripe_count > 0 and self.lost_count == 0 and self.wrong_count == 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "failed": list(self.failed),
            "survived": self.survived,
            "stripe_count": self.stripe_count,
            "lost_count": self.lost_count,
            "wrong_count": self.wrong_count,
            "restored_count": self.restored_count,
            "read_bytes": self.read_bytes,
            "seconds": self.seconds,
        }


@dataclass(slots=True)
class Rebuild:
    """Failed nodes replaced by empty ones and filled again; ``proof`` reads with other nodes down instead."""

    replaced: tuple[int, ...]
    read_bytes: int = 0
    written_bytes: int = 0
    lost_count: int = 0
    seconds: float = 0.0
    proof: Reading | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "replaced": list(self.replaced),
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "lost_count": self.lost_count,
            "seconds": self.seconds,
            "proof": None if self.proof is None else self.proof.to_dict(),
        }


def failed_sets(node_count: int, fail_count: int, seed: int) -> list[tuple[int, ...]]:
    """Which nodes fail together: every combination, or 64 of them drawn by the seed when there are more."""
    if comb(node_count, fail_count) <= COMBINATIONS_MAX:
        return list(combinations(range(node_count), fail_count))
    rng = np.random.default_rng(seed)
    chosen = {tuple(range(fail_count))}
    while len(chosen) < COMBINATIONS_MAX:
        chosen.add(tuple(sorted(int(i) for i in rng.choice(node_count, fail_count, replace=False))))
    return sorted(chosen)


class Trials:
    """Failures tried on what one phase left on the nodes."""

    def __init__(self, nodes: Sequence[Node], source: StreamSource, phase: StreamPhase, stop: threading.Event) -> None:
        self._nodes = nodes
        self._phase = phase
        self._stop = stop
        self._coder = Coder(phase.load.scheme, phase.load.unit_bytes)
        self._hashes = self._per_stream(lambda stream: _hashes(source, phase, stream, stop))

    def read_without(self, failed: tuple[int, ...]) -> Reading:
        """Take nodes down, read everything, bring them back."""
        for index in failed:
            self._nodes[index].fail()
        try:
            total = Reading(failed)
            begin = time.perf_counter()
            for part in self._per_stream(lambda stream: self._read(stream, failed)):
                total.stripe_count += part.stripe_count
                total.lost_count += part.lost_count
                total.wrong_count += part.wrong_count
                total.restored_count += part.restored_count
                total.read_bytes += part.read_bytes
            total.seconds = time.perf_counter() - begin
        finally:
            for index in failed:
                self._nodes[index].heal()
        return total

    def rebuild(self, replaced: tuple[int, ...]) -> Rebuild:
        """Replace nodes by empty ones and fill them; then read with as many others down, so that the new are needed."""
        for index in replaced:
            self._nodes[index].fail()
            self._nodes[index].heal()
            self._nodes[index].prepare(self._phase.load.region_bytes)
        total = Rebuild(replaced)
        begin = time.perf_counter()
        for part in self._per_stream(lambda stream: self._fill(stream, replaced)):
            total.read_bytes += part.read_bytes
            total.written_bytes += part.written_bytes
            total.lost_count += part.lost_count
        total.seconds = time.perf_counter() - begin
        others = [index for index in range(len(self._nodes)) if index not in replaced]
        if not self._stop.is_set():
            total.proof = self.read_without(
                tuple(islice(others, min(len(replaced), self._phase.load.scheme.tolerated)))
            )
        return total

    def _per_stream(self, work: Any) -> list[Any]:  # noqa: ANN401 - any work on a stream's index
        count = self._phase.load.vm_count
        with ThreadPoolExecutor(count) as pool:
            try:
                return list(pool.map(work, range(count)))
            except KeyboardInterrupt:
                self._stop.set()
                raise

    def _read(self, stream: int, failed: tuple[int, ...]) -> Reading:
        lanes = _Lanes(self._nodes, stream)
        part = Reading(failed)
        buffers = _buffers(self._coder)
        try:
            for slot, expected in enumerate(self._hashes[stream]):
                if self._stop.is_set():
                    break
                part.stripe_count += 1
                sources = self._gather(lanes, stream, slot, buffers, part)
                if sources is None:
                    part.lost_count += 1
                    continue
                wanted = tuple(i for i in range(self._coder.scheme.data_count) if i not in sources)
                if self._coder.scheme.data_count > 1:
                    out = [buffers[i] for i in wanted]
                    self._coder.restore(sources, [buffers[i] for i in sources], wanted, out)
                    data = [buffers[i] for i in range(self._coder.scheme.data_count)]
                    part.restored_count += len(wanted)
                else:
                    data = [buffers[sources[0]]]
                part.wrong_count += _hash(data) != expected
        finally:
            lanes.close()
        return part

    def _gather(
        self, lanes: _Lanes, stream: int, slot: int, buffers: list[Bytes], tally: Reading | Rebuild
    ) -> tuple[int, ...] | None:
        """Read what is needed of a stripe into its buffers; None when too many of its nodes do not answer."""
        load = self._phase.load
        places = {i: load.node_of(stream, slot, i, len(self._nodes)) for i in range(load.scheme.shard_count)}
        present = [shard for shard, node in places.items() if lanes.by_node[node] is not None]
        have: set[int] = set()
        while len(present) >= load.scheme.data_count:
            sources = self._coder.sources(present)
            for shard in sources:
                lane = lanes.by_node[places[shard]]
                if shard in have or lane is None:
                    continue
                try:
                    lane.read(slot * load.unit_bytes, buffers[shard])
                except OSError:
                    present.remove(shard)
                    break
                have.add(shard)
                tally.read_bytes += load.unit_bytes
            else:
                return sources
        return None

    def _fill(self, stream: int, replaced: tuple[int, ...]) -> Rebuild:
        load = self._phase.load
        lanes = _Lanes(self._nodes, stream, without=replaced)
        targets = {index: self._nodes[index].open(stream, writing=True) for index in replaced}
        part = Rebuild(replaced)
        buffers = _buffers(self._coder)
        try:
            for slot in range(len(self._hashes[stream])):
                if self._stop.is_set():
                    break
                places = {load.node_of(stream, slot, i, len(self._nodes)): i for i in range(load.scheme.shard_count)}
                wanted = tuple(sorted(places[node] for node in replaced if node in places))
                if not wanted:
                    continue
                sources = self._gather(lanes, stream, slot, buffers, part)
                if sources is None:
                    part.lost_count += 1
                    continue
                self._coder.restore(sources, [buffers[i] for i in sources], wanted, [buffers[i] for i in wanted])
                for node, lane in targets.items():
                    if node in places:
                        lane.write(slot * load.unit_bytes, buffers[places[node]])
                        part.written_bytes += load.unit_bytes
            for lane in targets.values():
                lane.sync()
        finally:
            lanes.close()
            for lane in targets.values():
                lane.close()
        return part


class _Lanes:
    """A stream's lanes for reading; None for a node that is down, which only asking tells."""

    def __init__(self, nodes: Sequence[Node], stream: int, without: tuple[int, ...] = ()) -> None:
        self.by_node: list[NodeLane | None] = []
        for index, node in enumerate(nodes):
            try:
                self.by_node.append(None if index in without else node.open(stream, writing=False))
            except OSError:
                self.by_node.append(None)

    def close(self) -> None:
        for lane in self.by_node:
            if lane is not None:
                lane.close()


def _buffers(coder: Coder) -> list[Bytes]:
    return [aligned(coder.unit_bytes) for _ in range(coder.scheme.shard_count)]


def _hashes(source: StreamSource, phase: StreamPhase, stream: int, stop: threading.Event) -> list[bytes]:
    """What each slot of a stream must hold."""
    buffer = aligned(phase.load.stripe_bytes)
    hashes = []
    for slot in range(min(phase.stripes[stream], phase.load.slot_count)):
        if stop.is_set():
            break
        source.fill(stream, phase.latest(stream, slot), buffer)
        hashes.append(_hash([buffer]))
    return hashes


def _hash(parts: list[Bytes]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.data)
    return digest.digest()
