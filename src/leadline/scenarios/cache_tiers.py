"""Disk groups: a cache device that buffers writes before capacity devices, filling and destaging.

Model:
    Every host has disk groups of one cache device and some capacity devices. What guests write, times the copies or
    parities written with it, fills the groups' write buffers at most as fast as the cache devices take it; destaging
    empties them at the speed of the capacity devices, above a level at which it starts. From ``slow_from_pct`` to
    ``slow_to_pct`` of the buffer, writes are admitted the slower the fuller it is (congestion), down to the speed of
    destaging. A fluid in steps of fixed length, not events: bytes are a level, requests a rate. A hybrid group has 70
    % of its cache device for reads and 30 % for writes, and what misses is fetched from a capacity device 1 MiB at a
    time, which keeps it from destaging; an all-flash group has all for writes and reads from the capacity devices. A
    failed cache device takes its group away; what was on it is written again to the others, behind what guests write.

Assumptions:
    Load, copies and rebuilds are spread evenly over all groups that work. Requests are small against the buffer.
    While something is to be destaged, reads that miss take at most half of the capacity devices' time. Of a buffer up
    to 600 GB are used, as of this architecture's first versions; ``buffer_max_gb`` says otherwise.

Parameters:
    ``policy`` (all-flash, hybrid), ``workload`` of all guests together, ``hosts``, and of each host ``groups``: name,
    count, fill_pct, ``cache`` (gb, mb_per_s of writes, latency), ``devices`` (count, mb_per_s of destaging, access
    time and read_mb_per_s of a read, used_gb). ``protection``: copies, or data and parity units. ``read_hit_pct``,
    which the system read-cache finds for a trace. ``failures``: at, group (as h1-g), part, kind, delay;
    ``rebuild_mb_per_s``.

Limits:
    Data overwritten in the buffer is destaged each time; a device's own reads and writes do not disturb each other;
    no network, no CPU. What an erasure code reads for a small write is counted, but takes no time. How fast real
    systems slow writes down is not published: the line between the two levels is the simplest rule that ends, as they
    do, where writes match destaging. An absent part that comes back before its rebuild begins is not simulated.

Sources:
    VMware, vSAN documentation, "Design considerations for flash caching devices", and its maximums: 5 disk groups a
    host, 7 capacity devices a group. D. Epping, "600GB write buffer limit for VSAN?" (2016). C. Hogan, "VSAN 6.0 part
    10: 10 % cache recommendation for AF-VSAN" (2015). Broadcom KB 326870 (delays until writes match destaging),
    326650 (destaging is expected below 70 % free), 2075456 (absent components are rebuilt after 60 minutes).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import BaseModel, Field, model_validator

from leadline import __version__, _core
from leadline.core.contracts.ignored_keys import Ignored
from leadline.core.contracts.scenario import (
    STRICT,
    Measure,
    Name,
    Outcome,
    Progress,
    Scenario,
    ScenarioMeta,
    Series,
    WorkloadOf,
    named_streams,
)
from leadline.core.model.result import Operation, Result
from leadline.core.model.workload import Percent, Seconds, Stream
from leadline.scenarios._cache_tiers import figures as measured
from leadline.scenarios._simulator import closed, run_system

META = ScenarioMeta(
    policy_key="policy",
    policies=("all-flash", "hybrid"),
    columns=(
        ("iops", "per s"),
        ("mib_per_s", "MiB/s"),
        ("latency_ms_mean", "mean ms"),
        ("fill_pct", "fill %"),
        ("congestion_pct", "cong. %"),
        ("destage_mib_per_s", "destaged"),
        ("slowed_after_s", "slowed s"),
    ),
)
WRITE_SHARES = {"all-flash": 1.0, "hybrid": 0.3}  # Source: vSAN documentation; the rest is the read cache
READ_HITS_PCT = {"all-flash": 0.0, "hybrid": 90.0}  # Source: the hit ratio the hybrid read cache is sized for
FETCH_BYTES = 1 << 20  # Source: a line of the hybrid read cache
BUFFER_MAX_GB = 600.0
GROUPS_MAX, DEVICES_MAX = 5, 7
DELAY_S = {"absent": 3600.0, "degraded": 0.0}  # Source: KB 2075456; a device known to be lost is rebuilt at once
FRONT_END = "front-end"
MB, GB = 1e6, 1e9
MS_PER_S = 1e3
STEPS_PER_WINDOW_MIN = 10
FILL_PER_STEP_MAX = 0.002  # Judgement: a buffer takes at least 500 steps to fill
STEPS_MAX = 20_000_000
PROTECTION = ("capacity_factor", "small_write_read_count", "small_write_written_count")
_NAN = float("nan")
_Front = list[tuple[str, str, np.ndarray[Any, Any]]]  # name, unit and values of a series
_Positive = Annotated[float, Field(gt=0, le=1e9)]


class Cache(BaseModel):
    """The cache device of a group."""

    model_config = STRICT

    gb: _Positive
    mb_per_s: _Positive
    latency: Annotated[Seconds, Field(gt=0, le=1)] = 1e-4


class Devices(BaseModel):
    """The capacity devices of a group."""

    model_config = STRICT

    count: Annotated[int, Field(ge=1, le=DEVICES_MAX)]
    mb_per_s: _Positive
    access: Annotated[Seconds, Field(gt=0, le=1)] = 1e-4
    read_mb_per_s: _Positive | None = None
    used_gb: Annotated[float, Field(ge=0, le=1e9)] = 0.0

    def read_s(self, size_bytes: float) -> float:
        """Seconds a device is busy with a read."""
        return self.access + size_bytes / ((self.read_mb_per_s or self.mb_per_s) * MB)


class Group(BaseModel):
    """Disk groups of one kind in each host."""

    model_config = STRICT

    name: Name
    count: Annotated[int, Field(ge=1, le=GROUPS_MAX)] = 1
    cache: Cache
    devices: Devices
    fill_pct: Percent = 0.0

    def names(self) -> list[str]:
        """One name for each."""
        return [self.name] if self.count == 1 else [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class Protection(BaseModel):
    """Copies, or data and parity units of a stripe."""

    model_config = STRICT

    copies: Annotated[int, Field(ge=1, le=4)] | None = None
    data: Annotated[int, Field(ge=1, le=16)] | None = None
    parity: Annotated[int, Field(ge=1, le=2)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Protection:
        if (self.copies is None) == (self.data is None) or (self.data is None) != (self.parity is None):
            message = "a protection has either copies, or data and parity units"
            raise ValueError(message)
        return self

    def units(self) -> tuple[int, int]:
        """Data units with parity units; 0 with copies."""
        return (0, self.copies) if self.copies is not None else (self.data or 0, self.parity or 0)

    def document(self) -> dict[str, Any]:
        """As the simulator takes it."""
        return {"code": {"data": self.data, "parity": self.parity}} if self.copies is None else {"copies": self.copies}


class Failure(BaseModel):
    """A part that fails; ``delay`` until its rebuild, of the kind's own when it is not given."""

    model_config = STRICT

    at: Annotated[Seconds, Field(ge=0)]
    group: str
    part: Literal["cache", "device"] = "cache"
    kind: Literal["absent", "degraded"] = "degraded"
    delay: Annotated[Seconds, Field(ge=0)] | None = None

    def document(self, group: int) -> dict[str, Any]:
        """As the simulator takes it."""
        delay = DELAY_S[self.kind] if self.delay is None else self.delay
        return {"at": self.at, "group": group, "part": self.part, "delay": delay}


class CacheTiers(Scenario):
    """A scenario file of this system."""

    system: Literal["cache-tiers"] = "cache-tiers"
    policy: Literal["all-flash", "hybrid"] = "all-flash"
    workload: WorkloadOf
    hosts: Annotated[int, Field(ge=1, le=64)] = 1
    groups: Annotated[tuple[Group, ...], Field(min_length=1)]
    protection: Protection = Protection(copies=2)
    read_hit_pct: Percent | None = None
    buffer_max_gb: _Positive = BUFFER_MAX_GB
    destage_from_pct: Percent = 30.0
    slow_from_pct: Percent = 80.0  # Judgement: no number is published
    slow_to_pct: Percent = 100.0
    failures: tuple[Failure, ...] = ()
    rebuild_mb_per_s: _Positive = 500.0  # Judgement: half of what a link of 10 Gbit/s takes

    @model_validator(mode="after")
    def _fits(self) -> CacheTiers:
        names, count = self.group_names(), sum(group.count for group in self.groups)
        unknown = [failure.group for failure in self.failures if failure.group not in names]
        steps = self.window_steps() * (self.timing.warm_up_s + self.timing.measure_s) / self.timing.window_s
        for is_wrong, message in (
            (self.workload.kind != "io", f"a workload of kind {self.workload.kind}; cache tiers take streams of io"),
            (len(set(names)) != len(names), "two groups have the same name"),
            (count > GROUPS_MAX, f"{count} groups in a host; there are at most {GROUPS_MAX}"),
            (self.slow_from_pct > self.slow_to_pct, "slow_from_pct is above slow_to_pct"),
            (steps > STEPS_MAX, f"{steps:,.3g} steps, at most {STEPS_MAX:,}; simulate less time, or larger buffers"),
            (bool(unknown), f"no group {', '.join(unknown)}; there are {', '.join(names)}"),
        ):
            if is_wrong:
                raise ValueError(message)
        return self

    def ignored(self) -> Iterator[Ignored]:
        """What tiers without failures have no use for."""
        if not self.failures:
            yield Ignored("rebuild_mb_per_s", "tiers without failures ignore it", "failures")

    def group_names(self) -> list[str]:
        """Every group of every host."""
        names = [name for group in self.groups for name in group.names()]
        return [f"h{host}-{name}" for host in range(1, self.hosts + 1) for name in names]

    def each_group(self) -> list[Group]:
        """What each of `group_names` is."""
        return [group for group in self.groups for _ in group.names()] * self.hosts

    def buffer_bytes(self, group: Group) -> float:
        """What a group buffers of writes."""
        return min(group.cache.gb * WRITE_SHARES[self.policy], self.buffer_max_gb) * GB

    def window_steps(self) -> int:
        """Steps of a window, so that no buffer fills in few of them."""
        fastest = min(self.buffer_bytes(group) / (group.cache.mb_per_s * MB) for group in self.groups)
        return max(STEPS_PER_WINDOW_MIN, int(np.ceil(self.timing.window_s / (FILL_PER_STEP_MAX * fastest))))

    def loads(self) -> list[dict[str, Any]]:
        """The streams of the workload."""
        return named_streams([("guests", stream) for stream in self.workload.io])


MODEL = CacheTiers


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("CacheTiers", scenario)  # read with MODEL
    timing = scenario.timing
    warm, count = timing.warm_up_count, timing.window_count
    scheme = _core.protection_scheme(*scenario.protection.units())
    figures = run_system("cache-tiers", _document(scenario, warm + count), measured.TierFigures, progress)
    front = _front(figures, warm)
    groups = list(zip(scenario.group_names(), scenario.each_group(), figures.groups, strict=True))
    slowed = [group.slowed for group in figures.groups if not isnan(group.slowed)]
    return Outcome(
        results=tuple(_results(scenario, figures.loads, warm)),
        warm_up=measured.ticks_of(figures.loads, slice(0, warm), timing.window_s),
        ticks=measured.ticks_of(figures.loads, slice(warm, None), timing.window_s),
        measures=(
            *_front_measures(front, slowed),
            *(measure for group in groups for measure in _group_measures(scenario, warm, *group)),
            *(Measure("protection", key, value, "count") for key, value in zip(PROTECTION, scheme, strict=True)),
            *(
                measure
                for number, rebuild in enumerate(figures.rebuilds, 1)
                for measure in measured.rebuild_measures(f"rebuild-{number}", rebuild)
            ),
        ),
        series=(
            *(Series(FRONT_END, name, unit, tuple(values.tolist())) for name, unit, values in front),
            *(series for name, _, group in groups for series in measured.group_series(name, group, warm)),
        ),
        trace=figures.trace,
        event_count=figures.event_count,
        notes=(f"the buffer slowed writes from {min(slowed):,.4g} s on",) if slowed else (),
    )


def _document(scenario: CacheTiers, windows: int) -> dict[str, Any]:
    names, groups = scenario.group_names(), scenario.each_group()
    reads = [stream for stream in scenario.workload.io if stream.read_pct > 0]
    block = float(np.mean([stream.mean_block_bytes for stream in reads])) if reads else 0.0
    fetch_bytes = FETCH_BYTES if scenario.policy == "hybrid" else block
    fetches = [group.devices.read_s(fetch_bytes) for group in groups]
    steps, window = scenario.window_steps(), scenario.timing.window_s
    hit_pct = READ_HITS_PCT[scenario.policy] if scenario.read_hit_pct is None else scenario.read_hit_pct
    latencies = [group.cache.latency for group in groups]
    spec = {
        "groups": [
            _group(scenario, name, group, fetch) for name, group, fetch in zip(names, groups, fetches, strict=True)
        ],
        "loads": [load for stream in scenario.workload.io for load in _loads(stream)],
        "protection": scenario.protection.document(),
        "read_hits": hit_pct / 100.0,
        "write_latency": float(np.mean(latencies)),
        "hit_latency": float(np.mean(latencies)),
        "miss_latency": float(np.mean(fetches)),
        "destage_from": scenario.destage_from_pct / 100.0,
        "slow_from": scenario.slow_from_pct / 100.0,
        "slow_to": scenario.slow_to_pct / 100.0,
        "failures": [failure.document(names.index(failure.group)) for failure in scenario.failures],
        "rebuild_rate": scenario.rebuild_mb_per_s * MB,
        "step": window / steps,
        "window_steps": steps,
    }
    return {"windows": windows, "spec": spec}


def _group(scenario: CacheTiers, name: str, group: Group, fetch_s: float) -> dict[str, Any]:
    return {
        "name": name,
        "cache_bytes": group.cache.gb * GB,
        "cache_write": group.cache.mb_per_s * MB,
        "write_share": WRITE_SHARES[scenario.policy],
        "buffer_bytes_max": scenario.buffer_max_gb * GB,
        "fill": group.fill_pct / 100.0,
        "device_count": group.devices.count,
        "device_write": group.devices.mb_per_s * MB,
        "fetch_seconds": fetch_s,
        "device_used": group.devices.used_gb * GB,
    }


def _loads(stream: Stream) -> list[dict[str, Any]]:
    """One load, or with a rate one for each direction."""
    burst = None if stream.burst is None else (stream.burst.on_s, stream.burst.off_s)
    common = {"bytes": stream.mean_block_bytes, "burst": burst, "outstanding": None, "rate": 0.0}
    if stream.rate_iops is None:
        outstanding = closed(stream, stream.oio * stream.jobs)["closed"]["outstanding"]
        return [{**common, "outstanding": float(outstanding), "read_share": stream.read_pct / 100.0}]
    rates = zip((1.0, 0.0), (stream.rate_iops.read, stream.rate_iops.write), strict=True)
    return [{**common, "rate": rate, "read_share": share} for share, rate in rates if rate > 0]


def _front(figures: measured.TierFigures, warm: int) -> _Front:
    """The series of all groups together."""
    loads, groups = figures.loads, figures.groups
    reads, writes, sizes, inside = (
        np.sum(columns, axis=0)[warm:]
        for columns in (
            [load.reads for load in loads],
            [load.writes for load in loads],
            [load.bytes for load in loads],
            [load.inside for load in loads],
        )
    )
    rates = reads + writes
    with np.errstate(divide="ignore", invalid="ignore"):
        latency = np.where(rates > 0, inside / rates * MS_PER_S, _NAN)
    fill = np.mean([group.fill for group in groups], axis=0)[warm:]
    congestion = np.mean([group.congestion for group in groups], axis=0)[warm:]
    destaged = np.sum([group.destage for group in groups], axis=0)[warm:]
    return [
        ("iops", "per_s", rates),
        ("mib_per_s", "mib_per_s", sizes / measured.MIB),
        ("latency_ms", "ms", latency),
        ("fill_pct", "pct", 100.0 * fill),
        ("destage_mib_per_s", "mib_per_s", destaged / measured.MIB),
        ("congestion_pct", "pct", 100.0 * congestion),
        ("outstanding_count", "count", inside),
    ]


def _front_measures(front: _Front, slowed: list[float]) -> Iterator[Measure]:
    means = {name: (float(np.mean(values)), unit) for name, unit, values in front if name != "latency_ms"}
    yield from (Measure(FRONT_END, name, value, unit) for name, (value, unit) in means.items())
    rate, inside = means["iops"][0], means["outstanding_count"][0]
    yield Measure(FRONT_END, "latency_ms_mean", inside / rate * MS_PER_S if rate > 0 else _NAN, "ms")
    yield Measure(FRONT_END, "slowed_after_s", min(slowed, default=_NAN), "s")


def _group_measures(
    scenario: CacheTiers, warm: int, name: str, group: Group, figures: measured.GroupFigures
) -> Iterator[Measure]:
    yield Measure(name, "buffer_gib", scenario.buffer_bytes(group) / measured.GIB, "gib")
    yield Measure(
        name, "read_cache_gib", group.cache.gb * (1.0 - WRITE_SHARES[scenario.policy]) * GB / measured.GIB, "gib"
    )
    shares = {"fill": figures.fill, "congestion": figures.congestion, "read_busy": figures.read_busy}
    for key, values in shares.items():
        yield Measure(name, f"{key}_pct", 100.0 * float(np.mean(values[warm:])), "pct")
    yield Measure(name, "destage_mib_per_s", float(np.mean(figures.destage[warm:])) / measured.MIB, "mib_per_s")
    yield Measure(name, "slowed_after_s", figures.slowed, "s")


def _results(scenario: CacheTiers, figures: Sequence[measured.LoadFigures], warm: int) -> Iterator[Result]:
    """One result for each stream, as load tools give them; a fluid has no histogram."""
    loads, seconds = iter(figures), scenario.timing.measure_s
    for stream in scenario.workload.io:
        operations = []
        for load in [next(loads) for _ in _loads(stream)]:
            total = float(np.sum(load.reads[warm:] + load.writes[warm:]))
            mean_ms = float(np.sum(load.inside[warm:])) / total * MS_PER_S if total > 0 else _NAN
            for way, rates in (("read", load.reads), ("write", load.writes)):
                rate = float(np.mean(rates[warm:]))
                if rate > 0:
                    size = rate * stream.mean_block_bytes
                    operations.append(Operation(way, rate, size, rate * seconds, {"mean": mean_ms}))
        yield Result("simulation", stream.name, tuple(operations), seconds, tool_version=__version__)
