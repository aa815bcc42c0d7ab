"""A write cache before a slow device: what it speeds up, and what a power loss takes away.

Model:
    A write is acknowledged when it is on the disk (write-through), in memory (ram-write-back), in a log on a device
    of its own (log-structured), or in memory on its way to that log (log-behind-ram). Memory is flushed block by
    block; the log is appended to with everything that waits, one after the other on its device, and destaged in
    batches. Events in virtual time. At the beginning of each window the contents are rebuilt from the disk and the
    log alone, as after a power loss, and compared block by block with what was acknowledged.

Assumptions:
    The disk does one request at a time: a seek that grows with the square root of the distance, a random part of a
    revolution, the transfer; what follows the last block on the disk has only the transfer. What a device has
    finished survives a power loss, what it is doing does not. A block that is written again before it was flushed is
    flushed once.

Parameters:
    ``cache``, its ``size``; ``workload`` with one stream of writes: block, oio and jobs or rate_iops, random_pct,
    working_set. ``order`` in which memory is flushed and a batch destaged: arrival or address. ``ram`` time of a
    write to memory; ``log``: latency, mb_per_s; ``batch`` destaged at once; ``disk``: seek_least, seek_most, rpm,
    mb_per_s.

Limits:
    Room in the log is freed a batch at a time, so that a full log stalls and then takes a batch in a moment: the mean
    latency is then far above the percentiles. Writes of one size only. No reads, no mirror of the memory in another
    machine, no battery, no caches within the devices, no cost of finding things in the log.

Sources:
    StarWind, "Log-structured Write Cache" (2018). Rosenblum and Ousterhout, "The design and implementation of a
    log-structured file system" (SOSP 1991). Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE
    Computer 27, 1994).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import BaseModel, Field, field_validator, model_validator

from leadline import __version__, _core
from leadline.core.contracts.ignored_keys import Ignored, unhonoured
from leadline.core.contracts.scenario import (
    STRICT,
    Measure,
    Outcome,
    Progress,
    Scenario,
    ScenarioMeta,
    Series,
    WorkloadOf,
    named_streams,
    whole_windows,
)
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.run import percentiles
from leadline.core.model.workload import Seconds, Size, Stream
from leadline.scenarios import _simulator
from leadline.scenarios._draws import NS_PER_S, ns_of
from leadline.scenarios._simulator import Column, Figures, Interval, Spread, pooled, run_system, timed

META = ScenarioMeta(
    policy_key="cache",
    policies=tuple(_core.WRITE_CACHES),
    columns=(
        ("iops", "per s"),
        ("latency_ms_mean", "mean ms"),
        ("latency_ms_p99", "p99 ms"),
        ("disk_sequential_pct", "disk seq. %"),
        ("log_blocks_mean", "per append"),
        ("fill_pct", "fill %"),
        ("lost_mib_max", "lost MiB"),
    ),
)
# Keys that not every write cache honours.
HONOURED = {
    "write-through": (),
    "ram-write-back": ("ram", "order"),
    "log-structured": ("log", "batch", "order"),
    "log-behind-ram": ("ram", "log", "batch", "order"),
}
GUESTS = "guests"
BLOCKS_MAX = 20_000_000
SIZE_DEFAULT = 1 << 30
MIB, MB = 2.0**20, 1e6
MS_PER_NS = 1e-6
SECONDS_PER_MINUTE = 60.0
_NAN = float("nan")
_Positive = Annotated[float, Field(gt=0, le=1e9)]
_Short = Annotated[Seconds, Field(ge=0, le=10)]


class Log(BaseModel):
    """The log's device: time of an append before its transfer, and bandwidth."""

    model_config = STRICT

    latency: _Short = 5e-5
    mb_per_s: _Positive = 490.0


class Disk(BaseModel):
    """Where data ends up; without rpm and seeks, a device that only transfers."""

    model_config = STRICT

    seek_least: _Short = 0.0
    seek_most: _Short = 0.0
    rpm: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    mb_per_s: _Positive

    def document(self) -> dict[str, float]:
        """As the simulator takes it: ns, bytes per second."""
        turn = SECONDS_PER_MINUTE / self.rpm if self.rpm else 0.0
        times = {"seek_least": self.seek_least, "seek_most": self.seek_most, "rotation": turn}
        return {**{name: seconds * NS_PER_S for name, seconds in times.items()}, "bytes_per_second": self.mb_per_s * MB}


class WriteCache(Scenario):
    """A scenario file of this system."""

    system: Literal["write-cache"] = "write-cache"
    cache: str = "log-structured"
    size: Size
    workload: WorkloadOf
    order: Literal["arrival", "address"] = "address"
    ram: _Short = 5e-6
    log: Log = Log()
    batch: Size | None = None
    disk: Disk

    @field_validator("cache")
    @classmethod
    def _known(cls, given: str) -> str:
        if given not in META.policies:
            message = f"no write cache {given}; there are {', '.join(META.policies)}"
            raise ValueError(message)
        return given

    @model_validator(mode="after")
    def _fits(self) -> WriteCache:
        streams = self.workload.io if self.workload.kind == "io" else ()
        if len(streams) != 1 or len(streams[0].block) != 1:
            message = "a write cache takes a workload of one stream of io with one block size"
            raise ValueError(message)
        stream = streams[0]
        reads = stream.read_pct if stream.rate_iops is None else stream.rate_iops.read
        if reads > 0 or stream.burst is not None or stream.request_burst is not None:
            message = "a write cache takes writes only (read_pct: 0), and no bursts"
            raise ValueError(message)
        if not self.block_bytes <= self.working_set_bytes <= BLOCKS_MAX * self.block_bytes:
            message = f"a working set of {self.working_set_bytes:,} bytes; there are 1 to {BLOCKS_MAX:,} blocks"
            raise ValueError(message)
        return self

    @property
    def stream(self) -> Stream:
        """The one stream."""
        return self.workload.io[0]

    @property
    def block_bytes(self) -> int:
        """Size of a write."""
        return next(iter(self.stream.block))

    @property
    def working_set_bytes(self) -> int:
        """What is written to."""
        return self.stream.working_set or SIZE_DEFAULT

    @property
    def cache_blocks(self) -> int:
        """Blocks there is room for."""
        return self.size // self.block_bytes

    def loads(self) -> list[dict[str, Any]]:
        """The stream."""
        return named_streams([(GUESTS, self.stream)])

    def ignored(self) -> Iterator[Ignored]:
        """What the cache does not honour."""
        yield from unhonoured(HONOURED, self.cache, "", "cache")


MODEL = WriteCache


class Look(Figures):
    """What a power loss would take at the end of a window, and what waits for the disk."""

    lost_blocks: int
    held_blocks: int


class BackingFigures(Figures):
    """Writes of the disk, and how many of them followed the one before."""

    write_count: int
    sequential_count: int


class LogFigures(Figures):
    """Appends to the log, and blocks in them."""

    append_count: int
    block_count: int


class WriteFigures(Spread, _simulator.Outcome):
    """What the simulator measured; columns are by window."""

    latency_interval: Interval | None
    counts: Column
    latency_ms: Column
    written: Column
    looks: tuple[Look, ...]
    backing: BackingFigures
    log: LogFigures
    warm_up_counts: Column


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("WriteCache", scenario)  # read with MODEL
    timing = scenario.timing
    figures = run_system("write-cache", _document(scenario), WriteFigures, progress)
    warm, count = timing.warm_up_count, timing.window_count
    series = _series(scenario, figures, count)
    return Outcome(
        results=(_result(scenario, figures),),
        warm_up=_ticks(scenario, figures.warm_up_counts, warm),
        ticks=_ticks(scenario, figures.counts, count),
        measures=_measures(scenario, figures, series),
        series=tuple(Series(GUESTS, name, unit, tuple(values.tolist())) for name, (unit, values) in series.items()),
        trace=figures.trace,
        event_count=figures.event_count,
        notes=("too few writes for an interval; measure longer",) if figures.latency_interval is None else (),
    )


def _document(scenario: WriteCache) -> dict[str, Any]:
    stream = scenario.stream
    batch = scenario.size // 8 if scenario.batch is None else scenario.batch
    spec = {
        "kind": scenario.cache,
        "is_sorted": scenario.order == "address",
        "blocks": scenario.working_set_bytes // scenario.block_bytes,
        "block_bytes": scenario.block_bytes,
        "outstanding": stream.oio * stream.jobs if stream.rate_iops is None else None,
        "rate": 0.0 if stream.rate_iops is None else stream.rate_iops.write,
        "random_share": stream.random_pct / 100.0,
        "cache_blocks": scenario.cache_blocks,
        "ram": ns_of(scenario.ram),
        "log_latency": scenario.log.latency * NS_PER_S,
        "log_bytes_per_second": scenario.log.mb_per_s * MB,
        "batch_blocks": max(batch // scenario.block_bytes, 1),
        "backing": scenario.disk.document(),
    }
    return timed(scenario, spec)


def _series(scenario: WriteCache, figures: WriteFigures, count: int) -> dict[str, tuple[str, np.ndarray[Any, Any]]]:
    """Name to unit and values [count]."""
    window, block = scenario.timing.window_s, scenario.block_bytes
    lost = np.array([look.lost_blocks for look in figures.looks], dtype=np.float64)
    in_use = np.array([look.held_blocks for look in figures.looks], dtype=np.float64)
    return {
        "iops": ("per_s", whole_windows(figures.counts, count, 0.0) / window),
        "latency_ms": ("ms", whole_windows(figures.latency_ms, count, _NAN)),
        "disk_mib_per_s": ("mib_per_s", whole_windows(figures.written, count, 0.0) * block / window / MIB),
        "fill_pct": ("pct", whole_windows(100.0 * in_use / scenario.cache_blocks, count, _NAN)),
        "lost_mib": ("mib", whole_windows(lost * block / MIB, count, _NAN)),
    }


def _measures(
    scenario: WriteCache, figures: WriteFigures, series: dict[str, tuple[str, np.ndarray[Any, Any]]]
) -> tuple[Measure, ...]:
    interval = figures.latency_interval or Interval()
    histogram = pooled([figures])
    known = {} if histogram is None else percentiles(histogram)
    backing, log = figures.backing, figures.log
    sequential = 100.0 * backing.sequential_count / backing.write_count if backing.write_count else _NAN
    lost, fill = series["lost_mib"][1], series["fill_pct"][1]
    return (
        Measure(GUESTS, "iops", figures.count / scenario.timing.measure_s, "per_s"),
        Measure(GUESTS, "latency_ms_mean", figures.mean * MS_PER_NS, "ms", interval.half_width * MS_PER_NS),
        *(Measure(GUESTS, f"latency_ms_{p}", known.get(p, (_NAN, 0))[0], "ms") for p in ("p50", "p99")),
        Measure(GUESTS, "disk_iops", backing.write_count / scenario.timing.measure_s, "per_s"),
        Measure(GUESTS, "disk_sequential_pct", sequential, "pct"),
        Measure(GUESTS, "log_blocks_mean", log.block_count / log.append_count if log.append_count else _NAN, "count"),
        Measure(GUESTS, "fill_pct", float(np.nanmean(fill)), "pct"),
        Measure(GUESTS, "lost_mib_mean", float(np.nanmean(lost)), "mib"),
        Measure(GUESTS, "lost_mib_max", float(np.nanmax(lost)), "mib"),
    )


def _result(scenario: WriteCache, figures: WriteFigures) -> Result:
    """As load tools give it."""
    seconds, count = scenario.timing.measure_s, figures.count
    mean = {"mean": figures.mean * MS_PER_NS} if count else {}
    size = count * scenario.block_bytes / seconds
    operation = Operation("write", count / seconds, size, count, mean, pooled([figures]))
    return Result("simulation", scenario.stream.name, (operation,), seconds, tool_version=__version__)


def _ticks(scenario: WriteCache, counts: Column, count: int) -> tuple[Tick, ...]:
    window = scenario.timing.window_s
    rates = (whole_windows(counts, count, 0.0) / window).tolist()
    return tuple(Tick((n + 1) * window, rate, rate * scenario.block_bytes) for n, rate in enumerate(rates))
