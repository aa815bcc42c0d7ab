"""A hypervisor's CPU scheduler, and guests whose transactions wait for it.

Model:
    Users of a guest begin transactions of several bursts of CPU with waits between them. The guest gives a burst to an
    idle vCPU or queues it. The hypervisor gives a vCPU with something to do a hardware thread of its home node: of an
    idle core if there is one, else beside another, where both run at (1 + gain) / 2. First goes the hypervisor's own
    work, then VMs below their reservation, then the VM that had the least by its shares; a VM at its limit waits. A
    quantum ends a turn when another of the same rank waits. A vCPU ahead of its slowest sibling by more than
    ``co_stop`` is stopped until that is below ``co_start``. Schedulers: ``default``; ``sca-v1``, one thread of each
    core only; ``sca-v2``, the threads of a core only to one VM. Events in virtual time.

Assumptions:
    The guest has no steal clock: it counts a vCPU as busy from waking to sleeping, waiting for a thread included. Its
    run queue is every task that runs or waits for a vCPU. A burst stays on its vCPU. VMs wider than a node are spread
    over all nodes. The hypervisor's work for a VM's I/O (``overhead_pct`` of the guest's CPU time) runs beside it on
    the same node, first of all, and is charged to nobody. A host's use counts cores with at least one thread in use.

Parameters:
    ``host``: nodes, cores_per_node, hyper_threading, thread_gain_pct, scheduler, quantum_s, co_stop_s, co_start_s,
    remote_penalty_pct (what work takes longer with all memory remote), balance_s, memory_move_s. ``vms``: name, count,
    vcpus, shares (default 1000 a vCPU), reservation_cores, limit_cores, vnuma, overhead_pct, and ``load``: users with
    think_time, or per_s; scale, which multiplies either; bursts, burst (CPU time on a core of its own), wait.

Limits:
    No clock rates, power management or affinity; caches only as far as the thread gain and the remote penalty tell.
    No time slices within the guest. The waits of a transaction do not depend on the load: storage is another system.

Sources:
    VMware, "The CPU scheduler in VMware vSphere 5.1" (2013), for shares, co-scheduling, threads and nodes.
    VMware, "Performance of vSphere 6.7 scheduling options" (2019), for sca-v1 and sca-v2.
    VMware, vSphere resource management guide, for shares of 1000 a vCPU; Little as in ``storage-path``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import BaseModel, Field, field_validator, model_validator

from leadline import __version__, _core
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
    listed,
    whole_windows,
)
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.run import percentiles
from leadline.core.model.workload import Seconds
from leadline.scenarios._draws import Draw, DrawOf, ns_of
from leadline.scenarios._hypervisor_cpu.figures import HostFigures, Level, VmFigures
from leadline.scenarios._simulator import Column, Interval, Little, pooled, run_system, timed

META = ScenarioMeta(
    policy_key="host.scheduler",
    policies=tuple(_core.SIMULATION_CPU_SCHEDULERS),
    columns=(
        ("transactions_per_s", "per s"),
        ("latency_ms_mean", "mean ms"),
        ("latency_ms_p99", "p99 ms"),
        ("guest_pct", "guest %"),
        ("host_pct", "host %"),
        ("ready_pct", "ready %"),
        ("co_stop_pct", "co-stop %"),
    ),
)
SHARES_PER_VCPU = 1000.0
# Keys of ``host`` that not every scheduler honours: sca-v1 leaves second threads alone.
HONOURED = {"default": ("thread_gain_pct",), "sca-v1": (), "sca-v2": ("thread_gain_pct",)}
OF_NODES = ("host.remote_penalty_pct", "host.balance_s", "host.memory_move_s", "vms.*.vnuma")
CORRELATION_MAX = 0.5  # Judgement: as in storage-path
MS_PER_NS = 1e-6
_NAN = float("nan")
_Share = Annotated[float, Field(ge=0, le=1000)]
_Length = Annotated[Seconds, Field(gt=0)]


class Load(BaseModel):
    """Transactions: who begins them, and what each needs."""

    model_config = STRICT

    users: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    think_time: DrawOf = Draw(mean=0.0)
    per_s: Annotated[float, Field(gt=0, le=1e7)] | None = None
    scale: Annotated[float, Field(gt=0, le=1e4)] = 1.0
    bursts: Annotated[int, Field(ge=1, le=10_000)] = 1
    burst: DrawOf
    wait: DrawOf = Draw(mean=0.0)

    @model_validator(mode="after")
    def _one(self) -> Load:
        if (self.users is None) == (self.per_s is None):
            message = "a load has either users or a rate per_s"
            raise ValueError(message)
        return self


class Vm(BaseModel):
    """Virtual machines of one kind."""

    model_config = STRICT

    name: Name
    count: Annotated[int, Field(ge=1, le=1000)] = 1
    vcpus: Annotated[int, Field(ge=1, le=1024)]
    shares: Annotated[float, Field(gt=0)] | None = None
    reservation_cores: Annotated[float, Field(ge=0)] = 0.0
    limit_cores: Annotated[float, Field(gt=0)] | None = None
    vnuma: bool = True
    overhead_pct: Annotated[float, Field(ge=0, le=100)] = 0.0
    load: Load

    @model_validator(mode="after")
    def _may_have_its_reservation(self) -> Vm:
        if self.limit_cores is not None and self.reservation_cores > self.limit_cores:
            message = f"reservation_cores {self.reservation_cores:g} is above limit_cores {self.limit_cores:g}"
            raise ValueError(message)
        return self

    def names(self) -> list[str]:
        """One name for each."""
        return [self.name] if self.count == 1 else [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class Host(BaseModel):
    """A host; times as the hypervisor has them when nobody changed them."""

    model_config = STRICT

    name: Name = "host"
    nodes: Annotated[int, Field(ge=1, le=64)] = 1
    cores_per_node: Annotated[int, Field(ge=1, le=1024)]
    hyper_threading: bool = True
    thread_gain_pct: Annotated[float, Field(ge=0, le=100)] = 25.0  # Judgement: the middle of what is published
    scheduler: str = "default"
    quantum_s: _Length = 0.2
    co_stop_s: _Length = 0.003
    co_start_s: _Length = 0.002
    remote_penalty_pct: _Share = 20.0  # Judgement: a third of the time on memory, of which remote takes 60 % longer
    balance_s: _Length = 2.0
    memory_move_s: _Length = 30.0  # Judgement: pages follow slowly

    @field_validator("scheduler")
    @classmethod
    def _known(cls, given: str) -> str:
        if given not in META.policies:
            message = f"no scheduler {given}; there are {', '.join(META.policies)}"
            raise ValueError(message)
        return given


class HypervisorCpu(Scenario):
    """A scenario file of this system."""

    system: Literal["hypervisor-cpu"] = "hypervisor-cpu"
    host: Host
    vms: Annotated[tuple[Vm, ...], Field(min_length=1)]

    def ignored(self) -> Iterator[Ignored]:
        """What the scheduler does not honour, and what the host's or a VM's other keys leave without effect."""
        yield from unhonoured(HONOURED, self.host.scheduler, "host", "scheduler")
        if not self.host.hyper_threading:
            yield Ignored("host.thread_gain_pct", "cores with one thread ignore it", "hyper_threading: true")
        if self.host.nodes == 1:
            for key in OF_NODES:
                yield Ignored(key, "a host of one node ignores it", "nodes above 1")
        if all(vm.vcpus == 1 for vm in self.vms):
            for key in ("host.co_stop_s", "host.co_start_s"):
                yield Ignored(key, "VMs with one vCPU ignore it", "a VM with several vCPUs")
        for vm in self.vms:
            if vm.load.users is None:
                yield Ignored(f"vms.{vm.name}.load.think_time", "a load with a rate ignores it", "users")
            if vm.load.bursts == 1:
                yield Ignored(f"vms.{vm.name}.load.wait", "a transaction of one burst ignores it", "bursts above 1")

    @model_validator(mode="after")
    def _fits(self) -> HypervisorCpu:
        names = [self.host.name, *(name for vm in self.vms for name in vm.names())]
        if len(set(names)) != len(names):
            message = "two VMs, or a VM and the host, have the same name"
            raise ValueError(message)
        return self


MODEL = HypervisorCpu


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("HypervisorCpu", scenario)  # read with MODEL
    timing = scenario.timing
    names = [(name, vm) for vm in scenario.vms for name in vm.names()]
    figures = run_system("hypervisor-cpu", _document(scenario, names), HostFigures, progress)
    window = timing.window_s
    vms = [(name, vm, part) for (name, vm), part in zip(names, figures.vms, strict=True)]
    host_pct = _pct(scenario, figures.cores, _cores(scenario))
    return Outcome(
        results=tuple(_result(scenario, name, part) for name, _, part in vms),
        warm_up=_ticks([part.warm_up_counts for part in figures.vms], timing.warm_up_count, window),
        ticks=_ticks([part.counts for part in figures.vms], scenario.timing.window_count, window),
        measures=(
            *(measure for name, vm, part in vms for measure in _measures(scenario, name, vm, part, figures)),
            *_host_measures(scenario, figures),
        ),
        series=(
            *(series for name, vm, part in vms for series in _series(scenario, name, vm, part)),
            Series(scenario.host.name, "host_pct", "pct", host_pct),
        ),
        trace=figures.trace,
        event_count=figures.event_count,
        notes=_notes([(name, part) for name, _, part in vms]),
    )


def _cores(scenario: HypervisorCpu) -> int:
    return scenario.host.nodes * scenario.host.cores_per_node


def _document(scenario: HypervisorCpu, names: Sequence[tuple[str, Vm]]) -> dict[str, Any]:
    host = scenario.host
    lengths = {
        "quantum": host.quantum_s,
        "co_stop": host.co_stop_s,
        "co_start": host.co_start_s,
        "balance_every": host.balance_s,
        "memory_move": host.memory_move_s,
    }
    spec = {
        "measured": ns_of(scenario.timing.measure_s),
        "host": {
            "name": host.name,
            "nodes": host.nodes,
            "cores_per_node": host.cores_per_node,
            "threads_per_core": 2 if host.hyper_threading else 1,
            "thread_gain": host.thread_gain_pct / 100.0,
            "policy": host.scheduler,
            "remote_penalty": host.remote_penalty_pct / 100.0,
            **{name: ns_of(seconds) for name, seconds in lengths.items()},
        },
        "vms": [_vm(name, vm) for name, vm in names],
    }
    return timed(scenario, spec)


def _vm(name: str, vm: Vm) -> dict[str, Any]:
    load = vm.load
    users: dict[str, Any] = {"poisson": 0.0 if load.per_s is None else load.per_s * load.scale}
    if load.users is not None:
        users = {"closed": {"count": max(round(load.users * load.scale), 1), "think": load.think_time.document()}}
    return {
        "name": name,
        "vcpus": vm.vcpus,
        "shares": SHARES_PER_VCPU * vm.vcpus if vm.shares is None else vm.shares,
        "reservation": vm.reservation_cores,
        "limit": vm.limit_cores,
        "has_vnuma": vm.vnuma,
        "overhead": vm.overhead_pct / 100.0,
        "load": {
            "users": users,
            "burst_count": load.bursts,
            "burst": load.burst.document(),
            "wait": load.wait.document(),
        },
    }


def _result(scenario: HypervisorCpu, name: str, part: VmFigures) -> Result:
    """Transactions of a VM, as load tools give them."""
    seconds = scenario.timing.measure_s
    operations = []
    if part.count:
        mean = {"mean": part.mean * MS_PER_NS}
        operations.append(Operation("transaction", part.count / seconds, _NAN, part.count, mean, pooled([part])))
    return Result("simulation", name, tuple(operations), seconds, tool_version=__version__)


def _ticks(counts: list[Column], count: int, window_s: float) -> tuple[Tick, ...]:
    rates = np.sum([whole_windows(part, count, 0.0) for part in counts], axis=0) / window_s
    return tuple(Tick((n + 1) * window_s, float(rates[n])) for n in range(count))


def _pct(scenario: HypervisorCpu, level: Level, whole: float) -> tuple[float, ...]:
    values = whole_windows(level.series, scenario.timing.window_count, _NAN)
    return tuple((100.0 * values / whole).tolist())


def _series(scenario: HypervisorCpu, name: str, vm: Vm, part: VmFigures) -> Iterator[Series]:
    count, states = scenario.timing.window_count, part.states
    rates = whole_windows(part.counts, count, 0.0) / scenario.timing.window_s
    yield Series(name, "transactions_per_s", "per_s", tuple(rates.tolist()))
    yield Series(name, "latency_ms", "ms", tuple(whole_windows(part.latency_ms, count, _NAN).tolist()))
    idle = _pct(scenario, states.wait, vm.vcpus)
    yield Series(name, "guest_pct", "pct", tuple(100.0 - value for value in idle))
    for state, level in (("run", states.run), ("ready", states.ready), ("co_stop", states.co_stop)):
        yield Series(name, f"{state}_pct", "pct", _pct(scenario, level, vm.vcpus))
    queue = whole_windows(part.run_queue.series, count, _NAN)
    yield Series(name, "run_queue_count", "count", tuple(queue.tolist()))


def _measures(scenario: HypervisorCpu, name: str, vm: Vm, part: VmFigures, figures: HostFigures) -> Iterator[Measure]:
    rate, latency = part.rate_interval or Interval(), part.latency_interval or Interval()
    yield Measure(name, "transactions_per_s", part.count / scenario.timing.measure_s, "per_s", rate.half_width)
    histogram = pooled([part])
    known = {} if histogram is None else percentiles(histogram)
    yield Measure(name, "latency_ms_mean", part.mean * MS_PER_NS, "ms", latency.half_width * MS_PER_NS)
    for percentile in ("p50", "p99"):
        yield Measure(name, f"latency_ms_{percentile}", known.get(percentile, (_NAN, 0))[0], "ms")
    shares = 100.0 * part.spent / part.spent.sum(axis=1, keepdims=True)
    run, ready, stopped, idle = shares.mean(axis=0).tolist()
    yield Measure(name, "guest_pct", 100.0 - idle, "pct")
    yield Measure(name, "host_pct", 100.0 * figures.cores.mean / _cores(scenario), "pct")
    for state, value, most in zip(
        ("run", "ready", "co_stop"), (run, ready, stopped), shares.max(axis=0)[:3].tolist(), strict=True
    ):
        yield Measure(name, f"{state}_pct", value, "pct")
        yield Measure(name, f"{state}_pct_max", most, "pct")  # of the vCPU with the most
    yield Measure(name, "run_queue_count_mean", part.run_queue.mean, "count")
    yield Measure(name, "run_queue_count_max", part.run_queue.max, "count")
    yield Measure(name, "used_cores", vm.vcpus * run / 100.0, "count")
    yield Measure(name, "numa_migration_count", part.migration_count, "count")
    little = part.little or Little()
    yield Measure(name, "little_imbalance_pct", 100.0 * little.imbalance, "pct")


def _host_measures(scenario: HypervisorCpu, figures: HostFigures) -> Iterator[Measure]:
    cores = _cores(scenario)
    threads = cores * (2 if scenario.host.hyper_threading else 1)
    yield Measure(scenario.host.name, "cores_pct", 100.0 * figures.cores.mean / cores, "pct")
    yield Measure(scenario.host.name, "threads_pct", 100.0 * figures.threads.mean / threads, "pct")


def _notes(parts: Sequence[tuple[str, VmFigures]]) -> tuple[str, ...]:
    """What to beware of, with the VMs it holds for."""
    names_of: dict[str, list[str]] = {}
    for name, part in parts:
        text = _doubt(part)
        if text:
            names_of.setdefault(text, []).append(name)
    return tuple(f"{listed(names)}: {text}" for text, names in names_of.items())


def _doubt(part: VmFigures) -> str:
    rate, latency = part.rate_interval, part.latency_interval
    if rate is None or latency is None:
        return "too few transactions for an interval; measure longer"
    if part.steady_after is None:
        return "response times drift while measured: more is offered than is done, or the warm-up is too short"
    if max(rate.correlation, latency.correlation) > CORRELATION_MAX:
        return "neighbouring batches are alike, so that the intervals are too narrow; measure longer"
    return ""
