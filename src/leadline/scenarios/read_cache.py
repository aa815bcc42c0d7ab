"""Read caches on a trace of block accesses: which share of them hits, by policy and by size.

Model:
    A trace is a sequence of lines, the unit the cache fetches: made from parts that read by a Zipf distribution or
    scan, mixed by weight, or recorded from a disk. Each cache sees the same trace; its policy says what it holds.
    Curves give the hits of every size: of LRU exactly and in one pass, from how many other lines were used since a
    line's last use; of the other policies by simulating each size. Arithmetic on a sequence, without events: time is
    where windows end.

Assumptions:
    A line that missed is there when the next access comes. Caches start empty; the warm-up fills them. A hit takes
    ``hit_time``, a miss ``miss_time``, whatever else goes on.

Parameters:
    ``trace``: rate_iops (of a made one, accesses in order at that rate), block, ``parts`` (name, weight, size, zipf:
    the exponent, or none for a scan, run: blocks read one after the other); or files, disk, reads_only. ``line``, 1m
    for a hybrid disk group. ``caches``: name, policy (arc, lru, s3-fifo), size. ``curve``: policies, sizes.

Limits:
    Lines of one size, no writes into the cache, no prefetching beyond the line. A recorded trace that is shorter than
    the warm-up has no accesses to measure. S3-FIFO's small queue is a tenth of the cache.

Sources:
    Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies" (IBM Systems Journal 9, 1970).
    Megiddo and Modha, "ARC" (FAST 2003). Yang et al., "FIFO queues are all you need for cache eviction" (SOSP 2023).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, field_validator, model_validator

from leadline import __version__, _core
from leadline.core.contracts.ignored_keys import Ignored
from leadline.core.contracts.scenario import (
    STRICT,
    FileOf,
    Measure,
    Name,
    Outcome,
    Progress,
    Scenario,
    ScenarioMeta,
    Series,
)
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.workload import Seconds, Size
from leadline.scenarios import _simulator
from leadline.scenarios._simulator import Column, run_system

META = ScenarioMeta(
    policy_key="caches.*.policy",
    policies=tuple(_core.READ_CACHE_POLICIES),
    columns=(
        ("hit_pct", "hits %"),
        ("iops", "per s"),
        ("fetch_mib_per_s", "fetched MiB/s"),
        ("latency_ms_mean", "mean ms"),
        ("size_mib", "MiB"),
    ),
)
MIB = 2.0**20
MS_PER_S = 1e3
TRACE = "trace"
_NAN = float("nan")
_Bytes = Annotated[Size, Field(ge=512)]


def _known(given: str) -> str:
    if given not in META.policies:
        message = f"no policy {given}; there are {', '.join(META.policies)}"
        raise ValueError(message)
    return given


Policy = Annotated[str, BeforeValidator(_known)]


class Part(BaseModel):
    """One kind of access; parts have blocks of their own."""

    model_config = STRICT

    name: Name
    weight: Annotated[float, Field(gt=0)] = 1.0
    size: _Bytes
    zipf: Annotated[float, Field(ge=0, le=5)] | None = None
    run: Annotated[int, Field(ge=1, le=1_000_000)] = 1


class Trace(BaseModel):
    """Accesses made from parts, or the recorded ones of a disk."""

    model_config = STRICT

    rate_iops: Annotated[float, Field(gt=0, le=1e9)] = 10_000.0
    block: _Bytes = 4096
    parts: tuple[Part, ...] = ()
    files: tuple[FileOf, ...] = ()
    disk: str | None = None
    reads_only: bool = True

    @model_validator(mode="after")
    def _one(self) -> Trace:
        if bool(self.parts) == bool(self.files):
            message = "a trace has either parts or files"
            raise ValueError(message)
        if len({part.name for part in self.parts}) != len(self.parts):
            message = "two parts have the same name"
            raise ValueError(message)
        small = [part.name for part in self.parts if part.size < self.block]
        if small:
            message = f"part {small[0]} is smaller than a block"
            raise ValueError(message)
        return self


class Cache(BaseModel):
    """A cache that sees the trace."""

    model_config = STRICT

    name: Name
    policy: Policy = "lru"
    size: _Bytes


class Curve(BaseModel):
    """Policies and sizes of which the hits are told."""

    model_config = STRICT

    policies: tuple[Policy, ...] = ("lru",)
    sizes: Annotated[tuple[_Bytes, ...], Field(min_length=1, max_length=200)]


class ReadCache(Scenario):
    """A scenario file of this system."""

    system: Literal["read-cache"] = "read-cache"
    trace: Trace
    line: _Bytes = 4096
    caches: Annotated[tuple[Cache, ...], Field(min_length=1)]
    curve: Curve | None = None
    hit_time: Seconds = 1e-4
    miss_time: Seconds = 5e-3

    def ignored(self) -> Iterator[Ignored]:
        """What a made trace and a recorded one have no use for."""
        if self.trace.files:
            yield Ignored("trace.rate_iops", "a recorded trace ignores it", "parts instead of files")
        else:
            for key in ("trace.disk", "trace.reads_only"):
                yield Ignored(key, "a trace made from parts ignores it", "files instead of parts")

    @field_validator("caches")
    @classmethod
    def _apart(cls, given: tuple[Cache, ...]) -> tuple[Cache, ...]:
        if len({cache.name for cache in given}) != len(given):
            message = "two caches have the same name"
            raise ValueError(message)
        return given

    @model_validator(mode="after")
    def _fits(self) -> ReadCache:
        if self.line % self.trace.block:
            message = f"a line of {self.line} bytes is not a number of blocks of {self.trace.block}"
            raise ValueError(message)
        return self


MODEL = ReadCache


class CacheFigures(_simulator.Outcome):
    """What the simulator measured.

    ``ends``: uses before the end of the warm-up and of each window; ``caches``: hits of each cache in these spans;
    ``curves``: hits after the warm-up at each point of each curve.
    """

    distinct: int
    ends: tuple[int, ...]
    caches: tuple[Column, ...]
    curves: tuple[tuple[int, ...], ...]


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("ReadCache", scenario)  # read with MODEL
    trace = scenario.trace
    recorded = [
        _core.trace_uses([(path, path) for path in trace.files], trace.disk, trace.reads_only, scenario.line)
        for _ in trace.files[:1]
    ]
    figures = run_system("read-cache", _document(scenario), CacheFigures, progress, recorded)
    uses = np.diff(figures.ends)  # of each window
    window = scenario.timing.window_s
    pairs = zip(scenario.caches, figures.caches, strict=True)
    hits = [(cache, column[1:]) for cache, column in pairs]
    total = int(np.sum(uses))
    return Outcome(
        results=tuple(_result(scenario, cache, column, total) for cache, column in hits),
        warm_up=(),
        ticks=tuple(Tick((n + 1) * window, float(count) / window) for n, count in enumerate(uses)),
        measures=(
            *(
                measure
                for cache, column in hits
                for measure in _measures(scenario, cache.name, cache.size, np.sum(column), total)
            ),
            *(measure for point in _curve(scenario, figures) for measure in _measures(scenario, *point, total)),
            Measure(TRACE, "working_set_mib", figures.distinct * scenario.line / MIB, "mib"),
        ),
        series=tuple(
            Series(cache.name, "hit_pct", "pct", tuple(_shares(column, uses).tolist())) for cache, column in hits
        ),
        trace=figures.trace,
        event_count=figures.event_count,
        notes=(
            *(f"{count}: {message}" for uses_of in recorded for _, message, count in uses_of.notes),
            *(() if total else ("no accesses in the measured time",)),
        ),
    )


def _document(scenario: ReadCache) -> dict[str, Any]:
    timing, trace = scenario.timing, scenario.trace
    windows = timing.window_count
    curve = scenario.curve
    return {
        "seed": scenario.seed,
        "parts": [
            {
                "name": part.name,
                "weight": part.weight,
                "blocks": part.size // trace.block,
                "kind": "scan" if part.zipf is None else {"zipf": part.zipf},
                "run": part.run,
            }
            for part in trace.parts
        ],
        "rate": trace.rate_iops,
        "block_bytes": trace.block,
        "line_bytes": scenario.line,
        "ends": [timing.warm_up_s + n * timing.window_s for n in range(windows + 1)],
        "caches": [{"policy": cache.policy, "bytes": cache.size} for cache in scenario.caches],
        "curves": []
        if curve is None
        else [{"policy": policy, "bytes": list(curve.sizes)} for policy in curve.policies],
    }


def _curve(scenario: ReadCache, figures: CacheFigures) -> Iterator[tuple[str, int, float]]:
    """Name, size and hits of each point."""
    if scenario.curve is None:
        return
    for policy, points in zip(scenario.curve.policies, figures.curves, strict=True):
        for size, hits in zip(scenario.curve.sizes, points, strict=True):
            yield f"{policy} {size / MIB:g} MiB", size, float(hits)


def _shares(hits: np.ndarray[Any, Any], uses: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Percent; NaN in a window without accesses."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(uses > 0, 100.0 * hits / uses, _NAN)


def _latency_ms(scenario: ReadCache, share: float) -> float:
    return (share * scenario.hit_time + (1.0 - share) * scenario.miss_time) * MS_PER_S


def _measures(scenario: ReadCache, name: str, size: int, hits: float, total: int) -> Iterator[Measure]:
    share, seconds = (hits / total if total else _NAN), scenario.timing.measure_s
    fetched = (total - hits) * scenario.line
    yield Measure(name, "hit_pct", 100.0 * share, "pct")
    yield Measure(name, "iops", total / seconds, "per_s")
    yield Measure(name, "miss_count", total - hits, "count")
    yield Measure(name, "fetched_mib", fetched / MIB, "mib")
    yield Measure(name, "fetch_mib_per_s", fetched / MIB / seconds, "mib_per_s")
    yield Measure(name, "latency_ms_mean", _latency_ms(scenario, share), "ms")
    yield Measure(name, "size_mib", size / MIB, "mib")


def _result(scenario: ReadCache, cache: Cache, hits: np.ndarray[Any, Any], total: int) -> Result:
    """As load tools give it; two times for hits and misses make no histogram."""
    seconds, share = scenario.timing.measure_s, float(np.sum(hits)) / total if total else _NAN
    operation = Operation("read", total / seconds, _NAN, total, {"mean": _latency_ms(scenario, share)})
    return Result("simulation", cache.name, (operation,), seconds, tool_version=__version__)
