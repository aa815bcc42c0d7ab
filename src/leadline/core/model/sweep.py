"""Sweeps: one workload at many loads, in variants; which point is measured next.

A sweep is a function of its description and of what was measured already, so one that was ended goes on where it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadline.core.model.errors import UsageError
from leadline.core.model.workload import Stream, Workload

OIO, CLIENTS = "oio", "clients"
AXES = {"io": OIO, "database": CLIENTS}
LOAD_MAX = {OIO: 256, CLIENTS: 128}  # Judgement: where a sweep that still grows is ended when nobody said where
CHECK_LOADS_MIN = 3


@dataclass(frozen=True, slots=True)
class LoadVariant:
    """What is different besides the load; None is as the workload has it."""

    block: int | None = None
    read_pct: float | None = None
    jobs: int | None = None

    def label(self) -> str:
        """For people; empty when nothing is different."""
        parts = []
        if self.block is not None:
            parts.append(size_text(self.block))
        if self.read_pct is not None:
            parts.append(f"{self.read_pct:g} % read")
        if self.jobs is not None:
            parts.append(f"{self.jobs} job{'s' if self.jobs != 1 else ''}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Key:
    """A point of a sweep: index of its variant, its load, whether it is measured again at the end."""

    variant: int
    load: int
    again: bool = False

    def text(self) -> str:
        """As it stands in the run's id."""
        return f"v{self.variant}-{self.load}{'-again' if self.again else ''}"


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep is to do.

    Attributes:
        workload: plain data of the workload, with the timing of a point.
        target, roles: where, as in `leadline.core.contracts.benchmark.Target`, without a password.
        axis: ``oio`` or ``clients``.
        loads: ascending; with ``grows`` up to where operations stop growing.
        target_ms: the latency target, of ``percentile``.
    """

    id: str
    started: str
    seed: int
    workload: dict[str, Any]
    target: str
    axis: str
    loads: tuple[int, ...]
    grows: bool
    variants: tuple[LoadVariant, ...] = (LoadVariant(),)
    roles: dict[str, str] = field(default_factory=dict)
    target_ms: float | None = None
    percentile: str = "p99"

    def run_id(self, key: Key) -> str:
        """The id of a point's run: it begins with the sweep's."""
        return f"{self.id}.{key.text()}"

    def point_seed(self, key: Key) -> int:
        """The seed of a point's load."""
        words = (self.seed, key.variant, key.load, int(key.again))
        return int(np.random.SeedSequence(words).generate_state(1)[0] & 0x7FFFFFFF)


def next_key(sweep: Sweep, done: Collection[Key], ended: Mapping[int, int]) -> Key | None:
    """The point to measure next, None when all are.

    Loads that are given are measured in an order drawn by the seed, all variants mixed, so that what changes with time
    (a cache that fills, a disk that collects garbage) is not taken for an effect of load. Where the load grows until
    operations do not, the order is given: load by load, the variants of each in a drawn order; the lowest load is then
    measured once more, and shows what changed meanwhile.

    Args:
        sweep: what to do.
        done: points that were measured.
        ended: variant -> the load at which its operations had stopped growing.
    """
    return next((key for key in _keys(sweep, ended) if key not in done), None)


def _keys(sweep: Sweep, ended: Mapping[int, int]) -> list[Key]:
    drawn = np.random.default_rng(sweep.seed)
    variants = range(len(sweep.variants))
    if not sweep.grows:
        keys = [Key(variant, load) for load in sweep.loads for variant in variants]
        return [keys[i] for i in drawn.permutation(len(keys))]
    planned = []
    for load in sweep.loads:
        order = [int(i) for i in drawn.permutation(len(variants))]
        planned += [Key(variant, load) for variant in order if load <= ended.get(variant, load)]
    counts = {v: sum(key.variant == v for key in planned) for v in variants}
    return planned + [Key(v, sweep.loads[0], again=True) for v in variants if counts[v] >= CHECK_LOADS_MIN]


def point_workload(workload: Workload, axis: str, variant: LoadVariant, load: int) -> Workload:
    """The workload of a point.

    Streams with a rate of their own keep what they have: their load is offered, not outstanding.
    """
    if workload.database is not None:
        return workload.model_copy(update={"database": workload.database.model_copy(update={axis: load})})
    changes: dict[str, Any] = {OIO: load}
    if variant.block is not None:
        changes["block"] = {variant.block: 100.0}
    if variant.read_pct is not None:
        changes["read_pct"] = variant.read_pct
    if variant.jobs is not None:
        changes["jobs"] = variant.jobs
    streams = tuple(s.model_copy(update=changes) if is_swept(s) else s for s in workload.io)
    return workload.model_copy(update={"io": streams})


def is_swept(stream: Stream) -> bool:
    """Whether a sweep changes a stream."""
    return stream.rate_iops is None


def load_of(workload: Workload) -> int:
    """What is under way at once in a point: outstanding I/O of all jobs that are swept, or clients."""
    if workload.database is not None:
        return workload.database.clients
    return sum(stream.oio * stream.jobs for stream in workload.io if is_swept(stream))


def parse_loads(text: str, option: str, load_max: int) -> tuple[tuple[int, ...], bool]:
    """Loads as they are written, ascending, and whether they grow until operations do not.

    ``1,2,4`` are those; ``1..`` doubles up to ``load_max``, ``1,3..100`` goes on by the last factor up to 100.

    Raises:
        UsageError: they are none.

    >>> parse_loads("4,1", "--oio", 256), parse_loads("1..6", "--oio", 256)
    (((1, 4), False), ((1, 2, 4, 6), True))
    """
    listed, dots, last = text.partition("..")
    try:
        loads = sorted({int(part) for part in listed.split(",")})
        limit = int(last) if last else max(load_max, loads[-1])
    except ValueError:
        loads, limit = [], 0
    if not loads or loads[0] < 1 or (dots and limit < loads[-1]) or max(loads[-1], limit if dots else 1) > 65536:
        raise UsageError(
            option,
            found=text,
            expected="numbers from 1 to 65536 such as 1,2,4,8 or 1..64",
            advice="1..64 doubles until operations stop growing, at most up to 64.",
        )
    if dots:
        factor = max(loads[-1] / loads[-2], 1.25) if len(loads) > 1 else 2.0
        while loads[-1] < limit:
            loads.append(min(max(round(loads[-1] * factor), loads[-1] + 1), limit))
    return tuple(loads), bool(dots)


def size_text(size_bytes: int) -> str:
    """A size as workload files have it.

    >>> size_text(8192), size_text(2**20), size_text(1536)
    ('8k', '1m', '1536')
    """
    for power, letter in ((40, "t"), (30, "g"), (20, "m"), (10, "k")):
        if size_bytes and size_bytes % (1 << power) == 0:
            return f"{size_bytes >> power}{letter}"
    return str(size_bytes)
