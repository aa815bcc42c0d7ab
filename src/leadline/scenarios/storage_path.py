"""The way of I/O from virtual machines through limits and queues to a device.

Model:
    A VM's workload issues requests to its disk. A request passes the disk's IOPS limit, which delays it; waits until
    fewer than ``adapter_depth`` requests of the VM are further on; waits at its host, in the order of the host's
    scheduler, until fewer than ``queue_depth`` of the host's requests are at the device; and is served by one of the
    device's ``parallelism`` servers. Events in virtual time; every random number comes from the seed and the name of
    what draws it, so that variants see the same arrivals and service times.

Assumptions:
    The limit counts operations in units of 32 KB, rounded up, and delays without end. It stands before the adapter's
    queue; behind it the rate and the latency the application sees would be the same, and only the place of waiting
    another. A host has a queue of its own to each device. A stream with a rate offers it whatever is outstanding. With
    a curve, a request that finds n - 1 others at the device takes what requests took on average with n outstanding,
    and beyond the last point the rate stays.

Parameters:
    ``vms``: name, count, workload (a shipped name, a file beside the scenario, or its text), host, device,
    adapter_depth, iops_limit, iops_burst (units that may go at once after an idle time), shares, reservation_iops and
    idle_credit (requests that go first after an idle time; all three for schedulers that know them), and ``disks`` for
    streams of a role, as wal. ``hosts``: name, queue_depth, scheduler.
    ``devices``: name, parallelism, service, write_service, sequential_service, mb_per_s; or curve (operations per
    second and mean latency by point, from the lowest load) with spread, the coefficient of variation around it.

Limits:
    No network, caches, errors, splitting or merging of requests, one path per device. Flushes (``sync_every``),
    verification, compression and the working set of a workload change nothing; its own timing is not used. A curve
    holds for the mix it was measured with.

Sources:
    C. Hogan, "VSAN 6.2 part 4: IOPS limit for object" (2016), for units of 32 KB.
    VMware, vSphere storage guide, "Change queue depth"; Broadcom KB 1267, for the depths of adapters and hosts.
    Little, "A proof for the queuing formula L = λW" (Operations Research 9, 1961), which each run is checked against.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import BaseModel, Field, field_validator, model_validator

from leadline import __version__, _core
from leadline.core.benchmark import Tick
from leadline.core.draws import NS_PER_S, DrawOf, Plain, ns_of
from leadline.core.errors import InputError
from leadline.core.result import Operation, Result
from leadline.core.run import percentiles
from leadline.core.scenario import (
    STRICT,
    Measure,
    Name,
    Outcome,
    Progress,
    Scenario,
    ScenarioMeta,
    Series,
    WorkloadOf,
    listed,
    named_streams,
    pooled,
    whole_windows,
)
from leadline.core.workload import Seconds, Stream

META = ScenarioMeta(
    policy_key="hosts.*.scheduler",
    policies=tuple(_core.SIMULATION_SCHEDULERS),
    columns=(
        ("iops", "per s"),
        ("latency_ms_mean", "mean ms"),
        ("latency_ms_p99", "p99 ms"),
        ("limit_count_mean", "limit"),
        ("adapter_count_mean", "adapter"),
        ("host_count_mean", "host"),
        ("device_count_mean", "device"),
    ),
)
WAYS = ("read", "write")
CORRELATION_MAX = 0.5  # Judgement: of 30 independent batches one set in 300 shows as much by chance
MS_PER_NS = 1e-6
_NAN = float("nan")
_Owned = tuple[str, list[Stream]]  # a VM, and the stream of each of its sources


class Disk(BaseModel):
    """A virtual disk: its device, its limit and what it is entitled to."""

    model_config = STRICT

    device: str | None = None
    iops_limit: Annotated[float, Field(gt=0, le=1e9)] | None = None
    iops_burst: Annotated[int, Field(ge=1, le=10**9)] = 1
    shares: Annotated[float, Field(gt=0)] = 1000.0
    reservation_iops: Annotated[float, Field(ge=0)] = 0.0
    idle_credit: Annotated[float, Field(ge=0, le=1e9)] = 0.0


class Vm(Disk):
    """Virtual machines of one kind with a disk each; streams of a role may have another."""

    name: Name
    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    workload: WorkloadOf
    host: str | None = None
    adapter_depth: Annotated[int, Field(ge=1, le=65_536)] = 64
    disks: dict[Literal["data", "wal", "temp", "backup"], Disk] = Field(default_factory=dict)

    @field_validator("workload")
    @classmethod
    def _is_io(cls, given: Any) -> Any:  # noqa: ANN401 - a workload
        if given.kind != "io":
            message = f"a workload of kind {given.kind}; a storage path takes streams of io"
            raise ValueError(message)
        return given

    def names(self) -> list[str]:
        """One name for each."""
        return [self.name] if self.count == 1 else [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class Host(BaseModel):
    """A host: how many requests it has at a device, and which goes next."""

    model_config = STRICT

    name: Name
    queue_depth: Annotated[int, Field(ge=1, le=65_536)] = 64
    scheduler: str = "fifo"

    @field_validator("scheduler")
    @classmethod
    def _known(cls, given: str) -> str:
        if given not in META.policies:
            message = f"no scheduler {given}; there are {', '.join(META.policies)}"
            raise ValueError(message)
        return given


class Device(BaseModel):
    """A device: what it takes for a request, and for how many at once."""

    model_config = STRICT

    name: Name
    parallelism: Annotated[int, Field(ge=1, le=65_536)] = 1
    service: DrawOf | None = None
    write_service: DrawOf | None = None
    sequential_service: DrawOf | None = None
    mb_per_s: Annotated[float, Field(gt=0)] | None = None
    curve: tuple[tuple[Annotated[float, Field(gt=0)], Annotated[Seconds, Field(gt=0)]], ...] = ()
    spread: Annotated[float, Field(ge=0, le=10)] = 0.0

    @model_validator(mode="after")
    def _one(self) -> Device:
        if (self.service is None) == (not self.curve):
            message = "a device has either a service time or a curve"
            raise ValueError(message)
        loads = [rate * latency for rate, latency in self.curve]
        if any(later <= earlier for earlier, later in pairwise(loads)):
            message = "the load of a curve (operations per second times latency) grows from point to point"
            raise ValueError(message)
        return self


class StoragePath(Scenario):
    """A scenario file of this system."""

    system: Literal["storage-path"] = "storage-path"
    vms: Annotated[tuple[Vm, ...], Field(min_length=1)]
    hosts: Annotated[tuple[Host, ...], Field(min_length=1)] = (Host(name="host"),)
    devices: Annotated[tuple[Device, ...], Field(min_length=1)]

    def loads(self) -> list[dict[str, Any]]:
        """The streams of all VMs."""
        return named_streams([(vm.name, stream) for vm in self.vms for stream in vm.workload.io])

    @model_validator(mode="after")
    def _fits(self) -> StoragePath:
        names = [name for vm in self.vms for name in vm.names()]
        for kind, held in (("VMs", names), ("hosts", _names(self.hosts)), ("devices", _names(self.devices))):
            if len(set(held)) != len(held):
                message = f"two {kind} have the same name"
                raise ValueError(message)
        for vm in self.vms:
            wanted = [("host", vm.host, _names(self.hosts))]
            wanted += [("device", disk.device, _names(self.devices)) for disk in (vm, *vm.disks.values())]
            for kind, name, known in wanted:
                if name is not None and name not in known:
                    message = f"VM {vm.name}: no {kind} {name}; there are {', '.join(known)}"
                    raise ValueError(message)
        return self


MODEL = StoragePath


def _names(items: Any) -> list[str]:  # noqa: ANN401 - hosts or devices
    return [item.name for item in items]


def _index(items: Any, name: str | None) -> int:  # noqa: ANN401 - hosts or devices
    return 0 if name is None else _names(items).index(name)


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run.

    Raises:
        InputError: the simulator refuses the scenario, or the run broke a law.
    """
    scenario = cast("StoragePath", scenario)  # read with MODEL
    timing = scenario.timing
    total_ns = (timing.warm_up_s + timing.measure_s) * NS_PER_S
    spec, streams = _spec(scenario)
    try:
        found = _core.simulate_storage_path(spec, lambda now_ns: progress(now_ns / total_ns))
    except _core.SimulationError as error:
        raise InputError(
            f"scenario {scenario.name}: {error.where}", found=error.found, expected=error.expected, advice=error.advice
        ) from error
    owned = list(zip(streams, found["vms"], strict=True))
    window = timing.window_s
    return Outcome(
        results=tuple(result for (name, own), vm in owned for result in _results(scenario, name, own, vm)),
        warm_up=_ticks([vm["warm_up"] for vm in found["vms"]], int(timing.warm_up_s / window + 1e-9), window),
        ticks=_ticks([vm["series"] for vm in found["vms"]], int(timing.measure_s / window + 1e-9), window),
        measures=(
            *(measure for (name, _), vm in owned for measure in _measures(scenario, name, vm)),
            *_device_measures(scenario, found["devices"]),
        ),
        series=tuple(series for (name, _), vm in owned for series in _series(scenario, name, vm["series"])),
        trace=found["trace"],
        event_count=found["event_count"],
        notes=_notes(owned),
    )


def _spec(scenario: StoragePath) -> tuple[dict[str, Any], list[_Owned]]:
    """What the simulator takes, and each VM's name with the stream of each of its sources."""
    vms: list[dict[str, Any]] = []
    disks: list[dict[str, Any]] = []
    owned: list[_Owned] = []
    for kind in scenario.vms:
        for name in kind.names():
            place = {"": len(disks)}
            disks.append(_disk(scenario, name, kind))
            for role, own in kind.disks.items():
                place[role] = len(disks)
                disks.append(_disk(scenario, f"{name}/{role}", own))
            sources, streams = [], []
            for stream in kind.workload.io:
                for source in _sources(stream):
                    sources.append({**source, "disk": place.get(stream.role or "", place[""])})
                    streams.append(stream)
            host = _index(scenario.hosts, kind.host)
            vms.append({"name": name, "host": host, "adapter_depth": kind.adapter_depth, "sources": sources})
            owned.append((name, streams))
    timing = scenario.timing
    times = {"warm_up": timing.warm_up_s, "measured": timing.measure_s, "window": timing.window_s}
    return {
        "seed": scenario.seed,
        **{name: ns_of(seconds) for name, seconds in times.items()},
        "vms": vms,
        "disks": disks,
        "hosts": [host.model_dump() for host in scenario.hosts],
        "devices": [_device(device) for device in scenario.devices],
    }, owned


def _disk(scenario: StoragePath, name: str, own: Disk) -> dict[str, Any]:
    limit = own.iops_limit
    return {
        "name": name,
        "device": _index(scenario.devices, own.device),
        "limit": None if limit is None else (limit, own.iops_burst),
        "shares": own.shares,
        "reservation_iops": own.reservation_iops,
        "limit_iops": float("inf") if limit is None else limit,
        "idle_credit": own.idle_credit,
    }


def _sources(stream: Stream) -> Iterator[dict[str, Any]]:
    """What issues a stream's requests: one source, or with a rate one for each direction."""
    common = {
        "think": ns_of(stream.think_time_s),
        "even": stream.arrivals == "even",
        "burst": None if stream.burst is None else (ns_of(stream.burst.on_s), ns_of(stream.burst.off_s)),
        "sizes": list(stream.block.items()),
        "random_share": stream.random_pct / 100.0,
    }
    if stream.rate_iops is None:
        outstanding = stream.oio * stream.jobs
        share = stream.read_pct / 100.0
        yield {**common, "name": stream.name, "outstanding": outstanding, "rate": 0.0, "read_share": share}
        return
    for way, rate in zip(WAYS, (stream.rate_iops.read, stream.rate_iops.write), strict=True):
        if rate > 0:
            share = float(way == "read")
            yield {**common, "name": f"{stream.name}/{way}", "outstanding": None, "rate": rate, "read_share": share}


def _device(own: Device) -> dict[str, Any]:
    # What a curve says is multiplied by a number of mean 1.
    around: Plain = ("lognormal", [1.0, own.spread], []) if own.spread else ("constant", [1.0], [])
    read = around if own.service is None else own.service.plain()
    return {
        "name": own.name,
        "parallelism": own.parallelism,
        "read": read,
        "write": read if own.write_service is None else own.write_service.plain(),
        "sequential": None if own.sequential_service is None else own.sequential_service.plain(),
        "bytes_per_second": float("inf") if own.mb_per_s is None else own.mb_per_s * 1e6,
        "curve": [(rate, latency * NS_PER_S) for rate, latency in own.curve],
    }


def _results(scenario: StoragePath, name: str, streams: list[Stream], vm: dict[str, Any]) -> Iterator[Result]:
    """One result for each stream, as load tools give them."""
    seconds = scenario.timing.measure_s
    several = sum(kind.count for kind in scenario.vms) > 1
    for stream in dict.fromkeys(own.name for own in streams):
        operations = []
        for index, way in enumerate(WAYS):
            done = [vm["done"][2 * n + index] for n, own in enumerate(streams) if own.name == stream]
            count, size = sum(own["count"] for own in done), sum(own["bytes"] for own in done)
            if count:
                mean = sum(own["mean"] * own["count"] for own in done if own["count"]) / count * MS_PER_NS
                histogram = pooled(done)
                operations.append(Operation(way, count / seconds, size / seconds, count, {"mean": mean}, histogram))
        job = f"{name}/{stream}" if several else stream
        yield Result("simulation", job, tuple(operations), seconds, tool_version=__version__)


def _ticks(parts: list[dict[str, Any]], count: int, window_s: float) -> tuple[Tick, ...]:
    rates = np.sum([whole_windows(part["count"], count, 0.0) for part in parts], axis=0) / window_s
    sizes = np.sum([whole_windows(part["bytes"], count, 0.0) for part in parts], axis=0) / window_s
    return tuple(Tick((n + 1) * window_s, float(rates[n]), float(sizes[n])) for n in range(count))


def _series(scenario: StoragePath, name: str, part: dict[str, Any]) -> Iterator[Series]:
    window = scenario.timing.window_s
    count = int(scenario.timing.measure_s / window + 1e-9)
    rates = whole_windows(part["count"], count, 0.0) / window
    yield Series(name, "iops", "per_s", tuple(rates.tolist()))
    for key in ("latency_ms", "latency_ms_max"):
        yield Series(name, key, "ms", tuple(whole_windows(part[key], count, _NAN).tolist()))


def _measures(scenario: StoragePath, name: str, vm: dict[str, Any]) -> Iterator[Measure]:
    done = sum(way["count"] for way in vm["done"])
    rate, latency = (vm[key] or (_NAN, _NAN, 0, _NAN) for key in ("rate_interval", "latency_interval"))
    yield Measure(name, "iops", done / scenario.timing.measure_s, "per_s", rate[1])
    histogram = pooled(vm["done"])
    known = {} if histogram is None else percentiles(histogram)
    mean = sum(way["mean"] * way["count"] for way in vm["done"] if way["count"]) / done * MS_PER_NS if done else _NAN
    yield Measure(name, "latency_ms_mean", mean, "ms", latency[1] * MS_PER_NS)
    for percentile in ("p50", "p99"):
        yield Measure(name, f"latency_ms_{percentile}", known.get(percentile, (_NAN, 0))[0], "ms")
    for stage, inside, most, stay in vm["stages"]:
        yield Measure(name, f"{stage}_count_mean", _NAN if inside is None else inside, "count")
        yield Measure(name, f"{stage}_count_max", most, "count")
        yield Measure(name, f"{stage}_ms_mean", _NAN if stay is None else stay * MS_PER_NS, "ms")
    little = vm["little"] or (_NAN, _NAN, _NAN, _NAN)
    yield Measure(name, "outstanding_count_mean", little[0], "count")
    yield Measure(name, "little_imbalance_pct", 100.0 * little[3], "pct")


def _device_measures(scenario: StoragePath, devices: list[tuple[float | None, float | None]]) -> Iterator[Measure]:
    for own, (busy, inside) in zip(scenario.devices, devices, strict=True):
        share = _NAN if busy is None or own.curve else 100.0 * busy / own.parallelism
        yield Measure(own.name, "utilisation_pct", share, "pct")
        yield Measure(own.name, "device_count_mean", _NAN if inside is None else inside, "count")


def _notes(owned: Sequence[tuple[_Owned, dict[str, Any]]]) -> tuple[str, ...]:
    """What to beware of, with the VMs it holds for."""
    found: dict[str, list[str]] = {}
    for (name, streams), vm in owned:
        if any(stream.sync_every for stream in streams):
            found.setdefault("flushes are not simulated", []).append(name)
        text = _doubt(vm)
        if text:
            found.setdefault(text, []).append(name)
    return tuple(f"{listed(names)}: {text}" for text, names in found.items())


def _doubt(vm: dict[str, Any]) -> str:
    intervals = [vm[key] for key in ("rate_interval", "latency_interval")]
    if any(own is None for own in intervals):
        return "too few requests for an interval; measure longer"
    if vm["steady_after"] is None:
        return "latency drifts while measured: more is offered than is done, or the warm-up is too short"
    if any(own[3] > CORRELATION_MAX for own in intervals):
        return "neighbouring batches are alike, so that the intervals are too narrow; measure longer"
    return ""
