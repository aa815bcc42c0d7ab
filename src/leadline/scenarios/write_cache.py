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
from leadline.core.contracts.benchmark import Tick
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
    pooled,
    whole_windows,
)
from leadline.core.model.draws import NS_PER_S, ns_of
from leadline.core.model.result import Operation, Result
from leadline.core.model.run import percentiles
from leadline.core.model.workload import Seconds, Size, Stream

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

    def plain(self) -> tuple[float, float, float, float]:
        """As the simulator takes it: ns, bytes per second."""
        turn = SECONDS_PER_MINUTE / self.rpm if self.rpm else 0.0
        return self.seek_least * NS_PER_S, self.seek_most * NS_PER_S, turn * NS_PER_S, self.mb_per_s * MB


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
        if reads > 0 or stream.burst is not None:
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


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("WriteCache", scenario)  # read with MODEL
    timing = scenario.timing
    found = _core.simulate_write_cache(_spec(scenario), timing.clock(progress))
    warm, count = timing.warm_up_count, timing.window_count
    series = _series(scenario, found, count)
    return Outcome(
        results=(_result(scenario, found),),
        warm_up=_ticks(scenario, found["warm_up"], warm),
        ticks=_ticks(scenario, found["counts"], count),
        measures=_measures(scenario, found, series),
        series=tuple(Series(GUESTS, name, unit, tuple(values.tolist())) for name, (unit, values) in series.items()),
        trace=found["trace"],
        event_count=found["event_count"],
        notes=("too few writes for an interval; measure longer",) if found["latency_interval"] is None else (),
    )


def _spec(scenario: WriteCache) -> dict[str, Any]:
    stream, timing = scenario.stream, scenario.timing
    batch = scenario.size // 8 if scenario.batch is None else scenario.batch
    rate = 0.0 if stream.rate_iops is None else stream.rate_iops.write
    spans = {"warm_up": timing.warm_up_s, "measured": timing.measure_s, "window": timing.window_s, "ram": scenario.ram}
    return {
        "seed": scenario.seed,
        "cache": scenario.cache,
        "is_sorted": scenario.order == "address",
        "blocks": scenario.working_set_bytes // scenario.block_bytes,
        "block_bytes": scenario.block_bytes,
        "outstanding": stream.oio * stream.jobs if stream.rate_iops is None else None,
        "rate": rate,
        "random_share": stream.random_pct / 100.0,
        "cache_blocks": scenario.cache_blocks,
        "log_latency": scenario.log.latency * NS_PER_S,
        "log_bytes_per_second": scenario.log.mb_per_s * MB,
        "batch_blocks": max(batch // scenario.block_bytes, 1),
        "backing": scenario.disk.plain(),
        **{name: ns_of(seconds) for name, seconds in spans.items()},
    }


def _series(scenario: WriteCache, found: dict[str, Any], count: int) -> dict[str, tuple[str, np.ndarray[Any, Any]]]:
    """Name to unit and values [count]."""
    window, block = scenario.timing.window_s, scenario.block_bytes
    lost, held = np.asarray(found["looks"], dtype=np.float64).reshape(-1, 2).T
    return {
        "iops": ("per_s", whole_windows(found["counts"], count, 0.0) / window),
        "latency_ms": ("ms", whole_windows(found["latency_ms"], count, _NAN)),
        "disk_mib_per_s": ("mib_per_s", whole_windows(found["written"], count, 0.0) * block / window / MIB),
        "fill_pct": ("pct", whole_windows(100.0 * held / scenario.cache_blocks, count, _NAN)),
        "lost_mib": ("mib", whole_windows(lost * block / MIB, count, _NAN)),
    }


def _measures(
    scenario: WriteCache, found: dict[str, Any], series: dict[str, tuple[str, np.ndarray[Any, Any]]]
) -> tuple[Measure, ...]:
    count, interval = found["count"], found["latency_interval"] or (_NAN, _NAN, 0, _NAN)
    histogram = pooled([found])
    known = {} if histogram is None else percentiles(histogram)
    (writes, sequential), (appends, blocks) = found["backing"], found["log"]
    mean_ms = _NAN if found["mean"] is None else found["mean"] * MS_PER_NS
    lost, fill = series["lost_mib"][1], series["fill_pct"][1]
    return (
        Measure(GUESTS, "iops", count / scenario.timing.measure_s, "per_s"),
        Measure(GUESTS, "latency_ms_mean", mean_ms, "ms", interval[1] * MS_PER_NS),
        *(Measure(GUESTS, f"latency_ms_{p}", known.get(p, (_NAN, 0))[0], "ms") for p in ("p50", "p99")),
        Measure(GUESTS, "disk_iops", writes / scenario.timing.measure_s, "per_s"),
        Measure(GUESTS, "disk_sequential_pct", 100.0 * sequential / writes if writes else _NAN, "pct"),
        Measure(GUESTS, "log_blocks_mean", blocks / appends if appends else _NAN, "count"),
        Measure(GUESTS, "fill_pct", float(np.nanmean(fill)), "pct"),
        Measure(GUESTS, "lost_mib_mean", float(np.nanmean(lost)), "mib"),
        Measure(GUESTS, "lost_mib_max", float(np.nanmax(lost)), "mib"),
    )


def _result(scenario: WriteCache, found: dict[str, Any]) -> Result:
    """As load tools give it."""
    seconds, count = scenario.timing.measure_s, found["count"]
    mean = {} if found["mean"] is None else {"mean": found["mean"] * MS_PER_NS}
    size = count * scenario.block_bytes / seconds
    operation = Operation("write", count / seconds, size, count, mean, pooled([found]))
    return Result("simulation", scenario.stream.name, (operation,), seconds, tool_version=__version__)


def _ticks(scenario: WriteCache, counts: Any, count: int) -> tuple[Tick, ...]:  # noqa: ANN401 - an array
    window = scenario.timing.window_s
    rates = whole_windows(counts, count, 0.0) / window
    return tuple(Tick((n + 1) * window, float(own), float(own) * scenario.block_bytes) for n, own in enumerate(rates))
