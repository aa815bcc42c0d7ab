"""Hosts that share an array by the windows of their queues: PARDA, and Storage I/O Control, version 1.

Model:
    A host lets at most w requests at once to the array; its VMs share that window by their shares (start-time fair
    queueing). Every period the host sets w' = (1 - gain) w + gain (threshold / latency × w + β) by the smoothed latency
    it saw at the array, β its VMs' shares. ``parda`` takes the latency each host sees itself, ``sioc-v1`` that of all
    hosts together; with ``none`` windows stay at their upper bound. Events in virtual time; random numbers come from
    the seed and the name of what draws them.

Assumptions:
    The array serves in order of arrival, so many at once as it has slots; reads and writes are alike to it. A VM that
    does not fill its part of the window lends its host only that part of its shares.

Parameters:
    ``control``; ``law``: threshold, period, gain, memory (weight of past latency), beta_per_1000_shares, window_min,
    window_max, adapts_to_idle; ``hosts``: name, vms (name, shares, workload of one stream); ``array``: slots, service.

Limits:
    One stream of I/O for each VM, without bursts; no limits of disks, no adapter queues; the array has no cache, and
    treats hosts alike. Latency is not normalised by request size. Gain, memory and β have no published default in the
    product: those here are judgement. No intervals: look at several seeds.

Sources:
    Gulati, Ahmad and Waldspurger, "PARDA: proportional allocation of resources for distributed storage access" (FAST
    2009), sections 3.2 to 3.4. VMware, vSphere resource management, "Storage I/O control": threshold 30 ms, 4 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import BaseModel, Field, field_validator, model_validator

from leadline import __version__
from leadline.core.contracts.ignored_keys import Ignored, unhonoured
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
    whole_windows,
)
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.run import percentiles
from leadline.core.model.workload import Seconds, Stream
from leadline.scenarios import _simulator
from leadline.scenarios._draws import DrawOf, ns_of
from leadline.scenarios._simulator import (
    Column,
    Completed,
    Figures,
    Little,
    Number,
    arrivals_of,
    pooled,
    run_system,
    timed,
)

META = ScenarioMeta(
    policy_key="control",
    policies=("none", "parda", "sioc-v1"),
    columns=(("iops", "per s"), ("latency_ms_mean", "mean ms"), ("latency_ms_p99", "p99 ms")),
)
_BY_LATENCY = ("threshold", "period", "gain", "memory", "beta_per_1000_shares", "window_min", "adapts_to_idle")
# Keys of ``law`` that not every control honours.
HONOURED = {"none": (), "parda": _BY_LATENCY, "sioc-v1": _BY_LATENCY}
MS_PER_NS = 1e-6
_NAN = float("nan")


class Law(BaseModel):
    """How windows follow latency; the defaults are those of the model."""

    model_config = STRICT

    threshold: Annotated[Seconds, Field(gt=0)] = 0.030
    period: Annotated[Seconds, Field(gt=0)] = 4.0
    gain: Annotated[float, Field(gt=0, le=1)] = 0.8
    memory: Annotated[float, Field(ge=0, lt=1)] = 0.2
    beta_per_1000_shares: Annotated[float, Field(gt=0)] = 4.0
    window_min: Annotated[float, Field(ge=1)] = 4.0
    window_max: Annotated[float, Field(ge=1, le=65_536)] = 32.0
    adapts_to_idle: bool = True


class Vm(BaseModel):
    """A virtual machine and its part of its host's window."""

    model_config = STRICT

    name: Name
    shares: Annotated[int, Field(ge=1, le=10**6)] = 1000
    workload: WorkloadOf

    @field_validator("workload")
    @classmethod
    def _is_one_stream(cls, given: Any) -> Any:  # noqa: ANN401 - a workload
        if given.kind != "io" or len(given.io) != 1 or given.io[0].burst is not None or given.io[0].gap_s:
            message = "a VM before a shared array has one stream of io, without bursts"
            raise ValueError(message)
        return given

    @property
    def stream(self) -> Stream:
        """What it does."""
        return self.workload.io[0]


class Host(BaseModel):
    """A host and its virtual machines."""

    model_config = STRICT

    name: Name
    vms: Annotated[tuple[Vm, ...], Field(min_length=1)]


class Array(BaseModel):
    """What all hosts share."""

    model_config = STRICT

    slots: Annotated[int, Field(ge=1, le=65_536)] = 1
    service: DrawOf


class Parda(Scenario):
    """A scenario file of this system."""

    system: Literal["parda"] = "parda"
    control: Literal["none", "parda", "sioc-v1"] = "parda"
    law: Law = Law()
    hosts: Annotated[tuple[Host, ...], Field(min_length=1, max_length=1000)]
    array: Array

    def loads(self) -> list[dict[str, Any]]:
        """The streams of all VMs."""
        return named_streams([(vm.name, vm.stream) for host in self.hosts for vm in host.vms])

    def ignored(self) -> Iterator[Ignored]:
        """What windows that stay at their upper bound have no use for; shares of a VM that is alone on such a host."""
        yield from unhonoured(HONOURED, self.control, "law", "control")
        if self.control == "none" and all(len(host.vms) == 1 for host in self.hosts):
            because = "control none ignores it across hosts, and each host has one VM"
            yield Ignored("hosts.*.vms.*.shares", because, "a control that honours it: parda, sioc-v1")

    @model_validator(mode="after")
    def _fits(self) -> Parda:
        names = ["array", *(host.name for host in self.hosts), *(vm.name for host in self.hosts for vm in host.vms)]
        if len(set(names)) != len(names):
            message = "two hosts or VMs have the same name, or one is named array"
            raise ValueError(message)
        if self.law.window_max < self.law.window_min:
            message = "window_max is below window_min"
            raise ValueError(message)
        return self


MODEL = Parda


class VmFigures(Completed):
    """Requests of a VM; columns are by window, from the beginning of the run."""

    counts: Column
    latency_ms: Column


class HostFigures(Figures):
    """The window of a host after each period, its mean time at the array, ns, and its VMs."""

    windows: Column
    array_mean: Number
    vms: tuple[VmFigures, ...]


class ArrayFigures(_simulator.Outcome):
    """What the simulator measured; ``busy_mean``: slots of the array in use."""

    busy_mean: Number
    little: Little | None
    hosts: tuple[HostFigures, ...]


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("Parda", scenario)  # read with MODEL
    figures = run_system("parda", _document(scenario), ArrayFigures, progress)
    hosts = list(zip(scenario.hosts, figures.hosts, strict=True))
    pairs = [pair for host, part in hosts for pair in zip(host.vms, part.vms, strict=True)]
    before = scenario.timing.warm_up_count
    return Outcome(
        results=tuple(_result(scenario, vm, part) for vm, part in pairs),
        warm_up=_ticks(scenario, pairs, 0, before),
        ticks=_ticks(scenario, pairs, before, scenario.timing.window_count),
        measures=(
            *(measure for vm, part in pairs for measure in _measures(scenario, vm.name, part)),
            *(measure for host, part in hosts for measure in _host_measures(scenario, host.name, part)),
            *_array_measures(scenario, figures),
        ),
        series=(
            *(series for vm, part in pairs for series in _series(scenario, vm.name, part)),
            *(_windows(scenario, host.name, part.windows) for host, part in hosts),
        ),
        trace=figures.trace,
        event_count=figures.event_count,
    )


def _document(scenario: Parda) -> dict[str, Any]:
    law = scenario.law
    spec = {
        "is_controlled": scenario.control != "none",
        "law": {
            **law.model_dump(),
            "threshold": ns_of(law.threshold),
            "period": ns_of(law.period),
            "is_latency_shared": scenario.control == "sioc-v1",
        },
        "hosts": [{"name": host.name, "vms": [_vm(vm) for vm in host.vms]} for host in scenario.hosts],
        "slots": scenario.array.slots,
        "service": scenario.array.service.document(),
    }
    return timed(scenario, spec)


def _vm(vm: Vm) -> dict[str, Any]:
    stream = vm.stream
    rate = None if stream.rate_iops is None else stream.rate_iops.read + stream.rate_iops.write
    arrivals = arrivals_of(stream, rate)
    return {"name": vm.name, "shares": vm.shares, "arrivals": arrivals, "sizes": list(stream.block.items())}


def _result(scenario: Parda, vm: Vm, part: VmFigures) -> Result:
    seconds, count = scenario.timing.measure_s, part.count
    way = {100.0: "read", 0.0: "write"}.get(vm.stream.read_pct, "io")
    mean = {"mean": part.mean * MS_PER_NS} if count else {}
    done = Operation(way, count / seconds, part.bytes / seconds, count, mean, pooled([part]))
    return Result("simulation", vm.name, (done,) if count else (), seconds, tool_version=__version__)


def _ticks(scenario: Parda, pairs: list[tuple[Vm, VmFigures]], before: int, count: int) -> tuple[Tick, ...]:
    """So many windows of all VMs together, after those before."""
    window = scenario.timing.window_s
    rates = np.array([whole_windows(part.counts, before + count, 0.0)[before:] for _, part in pairs]) / window
    sizes = np.array([vm.stream.mean_block_bytes for vm, _ in pairs])
    return tuple(Tick((n + 1) * window, float(rates[:, n].sum()), float(rates[:, n] @ sizes)) for n in range(count))


def _series(scenario: Parda, name: str, part: VmFigures) -> Iterator[Series]:
    window, before, count = scenario.timing.window_s, scenario.timing.warm_up_count, scenario.timing.window_count
    rates = whole_windows(part.counts, before + count, 0.0)[before:] / window
    yield Series(name, "iops", "per_s", tuple(rates.tolist()))
    latencies = whole_windows(part.latency_ms, before + count, _NAN)[before:]
    yield Series(name, "latency_ms", "ms", tuple(latencies.tolist()))


def _windows(scenario: Parda, name: str, windows: Column) -> Series:
    """A host's window [requests] at the end of each measured window of time."""
    timing = scenario.timing
    ends = timing.warm_up_s + timing.window_s * np.arange(1, scenario.timing.window_count + 1)
    settings = np.floor(ends / scenario.law.period + 1e-9).astype(int) - 1
    all_windows = np.concatenate([[scenario.law.window_max], windows])
    return Series(name, "window_count", "count", tuple(all_windows[np.minimum(settings + 1, len(windows))].tolist()))


def _measures(scenario: Parda, name: str, part: VmFigures) -> Iterator[Measure]:
    yield Measure(name, "iops", part.count / scenario.timing.measure_s, "per_s")
    yield Measure(name, "latency_ms_mean", part.mean * MS_PER_NS, "ms")
    histogram = pooled([part])
    known = {} if histogram is None else percentiles(histogram)
    for percentile in ("p50", "p99"):
        yield Measure(name, f"latency_ms_{percentile}", known.get(percentile, (_NAN, 0))[0], "ms")


def _host_measures(scenario: Parda, name: str, part: HostFigures) -> Iterator[Measure]:
    windows = _windows(scenario, name, part.windows).values
    yield Measure(name, "window_count_mean", float(np.mean(windows)), "count")
    yield Measure(name, "array_ms_mean", part.array_mean * MS_PER_NS, "ms")


def _array_measures(scenario: Parda, figures: ArrayFigures) -> Iterator[Measure]:
    yield Measure("array", "utilisation_pct", 100.0 * figures.busy_mean / scenario.array.slots, "pct")
    little = figures.little or Little()
    yield Measure("array", "array_count_mean", little.in_system_mean, "count")
    yield Measure("array", "array_ms_mean", little.residence_seconds_mean * 1e3, "ms")
    yield Measure("array", "little_imbalance_pct", 100.0 * little.imbalance, "pct")
