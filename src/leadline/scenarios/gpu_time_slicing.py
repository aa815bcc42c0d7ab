"""Virtual machines that use one GPU in turns: NVIDIA's time-sliced vGPUs.

Model:
    A VM's job repeats a step, on the CPU and then on the GPU. The GPU serves one VM at a time, for a slice each. Best
    effort goes round those with work and leaves a slice when the work ends. Equal share goes round all VMs there are,
    fixed share round all places the profile admits; a VM without work, and an empty place, let their slice pass. Strict
    round robin shortens a VM's slices for what its earlier ones overran; without it the one scheduled least is next.
    Events in virtual time; random numbers belong to a VM by its name.

Assumptions:
    Each VM has CPUs of its own. A slice ends with the kernel under way. With best effort a VM goes on as long as nobody
    else has work.

Parameters:
    ``gpu``: policy (best-effort, equal-share, fixed-share), max_vms (places), strict, averaging_factor, time_slice
    (left out: NVIDIA's default for so many places), kernel (length; 0 for slices that end at once), switch (lost at
    each change
    of the VM). ``vms``: name, count, start, stagger (between the starts of its copies), steps (then it leaves; left
    out: it never does), cpu and gpu (times of a step).

Limits:
    One engine; copies do not overlap kernels; no MIG, no frame-rate limiter, no CPU contention. How NVIDIA lengthens
    the slice of a VM that is alone is not published. A step's parts are those of your job: profile it.

Sources:
    NVIDIA, "AI Enterprise user guide" 5.0 (2024), chapter 7: policies, strict round robin, averaging factor 33, and
    table 1: 2 ms and 480 Hz for up to 8 vGPUs, 1 ms and 960 Hz for more.
    NVIDIA, vGPU knowledge base (2025), "vGPU schedulers": best effort.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan, nan
from typing import Annotated, Any, Literal, NamedTuple, cast

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
from leadline.scenarios import _simulator
from leadline.scenarios._draws import NS_PER_S, DrawOf, ns_of
from leadline.scenarios._simulator import Column, Number, Spread, pooled, run_system, timed

META = ScenarioMeta(
    policy_key="gpu.policy",
    policies=tuple(_core.SIMULATION_GPU_POLICIES),
    columns=(
        ("steps_per_s", "steps/s"),
        ("latency_ms_mean", "step ms"),
        ("latency_ms_p99", "p99 ms"),
        ("slowdown", "times"),
        ("gpu_pct", "GPU %"),
        ("run_s", "run s"),
    ),
)
NS_PER_MS = 1e6
FEW_VMS_MAX = 8  # Source: NVIDIA as above, table 1
SLICES_S = {(True, True): 1 / 480, (True, False): 1 / 960, (False, True): 2e-3, (False, False): 1e-3}
STEP = "step"
# Keys of ``gpu`` that not every policy honours.
HONOURED = {
    "best-effort": (),
    "equal-share": ("strict", "averaging_factor"),
    "fixed-share": ("strict", "averaging_factor"),
}


class Gpu(BaseModel):
    """How a GPU is shared."""

    model_config = STRICT

    policy: str = "best-effort"
    max_vms: Annotated[int, Field(ge=1, le=1000)] = 8
    strict: bool = True
    averaging_factor: Annotated[int, Field(ge=1, le=60)] = 33
    time_slice: Annotated[Seconds, Field(gt=0, le=1)] | None = None
    kernel: Annotated[Seconds, Field(ge=0, le=10)] = 0.0
    switch: Annotated[Seconds, Field(ge=0, le=1)] = 0.0

    @field_validator("policy")
    @classmethod
    def _known(cls, given: str) -> str:
        if given not in META.policies:
            message = f"no policy {given}; there are {', '.join(META.policies)}"
            raise ValueError(message)
        return given

    @property
    def slice_s(self) -> float:
        """The slice, s; strict round robin has a frequency instead, whose inverse it is."""
        has_frequency = self.strict and self.policy != "best-effort"
        return self.time_slice or SLICES_S[has_frequency, self.max_vms <= FEW_VMS_MAX]


class Vm(BaseModel):
    """Virtual machines of one kind with a job each."""

    model_config = STRICT

    name: Name
    count: Annotated[int, Field(ge=1, le=1000)] = 1
    start: Annotated[Seconds, Field(ge=0, le=1e7)] = 0.0
    stagger: Annotated[Seconds, Field(ge=0, le=1e7)] = 0.0
    steps: Annotated[int, Field(ge=1, le=10**9)] | None = None
    cpu: DrawOf
    gpu: DrawOf

    def names(self) -> list[str]:
        """One name for each."""
        return [self.name] if self.count == 1 else [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class GpuTimeSlicing(Scenario):
    """A scenario file of this system."""

    system: Literal["gpu-time-slicing"] = "gpu-time-slicing"
    gpu: Gpu = Gpu()
    vms: Annotated[tuple[Vm, ...], Field(min_length=1)]

    def ignored(self) -> Iterator[Ignored]:
        """What the policy does not honour; the corrections of a round that is not strict; the stagger of one VM."""
        yield from unhonoured(HONOURED, self.gpu.policy, "gpu", "policy")
        if not self.gpu.strict:
            yield Ignored("gpu.averaging_factor", "a round that is not strict ignores it", "strict: true")
        for vm in self.vms:
            if vm.count == 1:
                yield Ignored(f"vms.{vm.name}.stagger", "one VM ignores it", "a count above 1")

    @model_validator(mode="after")
    def _fits(self) -> GpuTimeSlicing:
        names = [name for vm in self.vms for name in vm.names()]
        if len(set(names)) != len(names):
            message = "two VMs have the same name"
            raise ValueError(message)
        if len(names) > self.gpu.max_vms:
            message = f"{len(names)} VMs on a GPU with places for {self.gpu.max_vms}; raise gpu.max_vms"
            raise ValueError(message)
        return self


MODEL = GpuTimeSlicing


class VmFigures(Spread):
    """Steps of a VM, ns; columns are by window."""

    gpu: int
    finished: Number
    alone: Number
    counts: Column
    step_ms: Column
    warm_up_counts: Column


class GpuFigures(_simulator.Outcome):
    """What the simulator measured."""

    busy_mean: Number
    vms: tuple[VmFigures, ...]


class Job(NamedTuple):
    """A VM with its kind, its start, ns, and what was measured of it."""

    name: str
    kind: Vm
    start_ns: int
    figures: VmFigures


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("GpuTimeSlicing", scenario)  # read with MODEL
    timing = scenario.timing
    starts = list(_starts(scenario))
    figures = run_system("gpu-time-slicing", _document(scenario), GpuFigures, progress)
    jobs = [Job(*start, vm) for start, vm in zip(starts, figures.vms, strict=True)]
    return Outcome(
        results=tuple(_result(scenario, job) for job in jobs if job.figures.count),
        warm_up=_ticks([vm.warm_up_counts for vm in figures.vms], timing.warm_up_count, timing.window_s),
        ticks=_ticks([vm.counts for vm in figures.vms], timing.window_count, timing.window_s),
        measures=(
            *(measure for job in jobs for measure in _measures(scenario, job)),
            Measure("gpu", "utilisation_pct", 100.0 * figures.busy_mean, "pct"),
        ),
        series=tuple(series for job in jobs for series in _series(scenario, job)),
        trace=figures.trace,
        event_count=figures.event_count,
        notes=_notes(jobs),
    )


def _starts(scenario: GpuTimeSlicing) -> Iterator[tuple[str, Vm, int]]:
    """Every VM with its kind and when it starts, ns."""
    for kind in scenario.vms:
        for index, name in enumerate(kind.names()):
            yield name, kind, ns_of(kind.start + index * kind.stagger)


def _document(scenario: GpuTimeSlicing) -> dict[str, Any]:
    gpu = scenario.gpu
    vms = [
        {"name": name, "start": start, "steps": kind.steps, "cpu": kind.cpu.document(), "gpu": kind.gpu.document()}
        for name, kind, start in _starts(scenario)
    ]
    spec = {
        "policy": gpu.policy,
        "strict": gpu.strict,
        "averaging_factor": gpu.averaging_factor,
        "slice": ns_of(gpu.slice_s),
        "grain": ns_of(gpu.kernel),
        "switch": ns_of(gpu.switch),
        "places": gpu.max_vms,
        "vms": vms,
    }
    return timed(scenario, spec)


def _result(scenario: GpuTimeSlicing, job: Job) -> Result:
    seconds, steps = scenario.timing.measure_s, job.figures
    means = {"mean": steps.mean / NS_PER_MS}
    operation = Operation(STEP, steps.count / seconds, nan, steps.count, means, pooled([steps]))
    return Result("simulation", job.name, (operation,), seconds, tool_version=__version__)


def _ticks(counts: list[Column], count: int, window_s: float) -> tuple[Tick, ...]:
    rates = np.sum([whole_windows(part, count, 0.0) for part in counts], axis=0) / window_s
    return tuple(Tick((n + 1) * window_s, float(rate)) for n, rate in enumerate(rates))


def _series(scenario: GpuTimeSlicing, job: Job) -> Iterator[Series]:
    window = scenario.timing.window_s
    count = scenario.timing.window_count
    rates = whole_windows(job.figures.counts, count, 0.0) / window
    yield Series(job.name, "steps_per_s", "per_s", tuple(rates.tolist()))
    yield Series(job.name, "latency_ms", "ms", tuple(whole_windows(job.figures.step_ms, count, nan).tolist()))


def _measures(scenario: GpuTimeSlicing, job: Job) -> Iterator[Measure]:
    """Numbers of a VM; a job that ended is compared with what its very steps take alone, any other with their mean."""
    name, kind, steps, seconds = job.name, job.kind, job.figures, scenario.timing.measure_s
    known = percentiles(histogram) if (histogram := pooled([steps])) is not None else {}
    finished = steps.finished - job.start_ns
    alone_ms = kind.cpu.mean_ns() / NS_PER_MS + kind.gpu.mean_ns() / NS_PER_MS
    slowdown = steps.mean / NS_PER_MS / alone_ms if isnan(finished) else finished / steps.alone
    yield Measure(name, "steps_per_s", steps.count / seconds, "per_s")
    yield Measure(name, "latency_ms_mean", steps.mean / NS_PER_MS, "ms")
    yield Measure(name, "latency_ms_p99", known.get("p99", (nan, 0))[0], "ms")
    yield Measure(name, "slowdown", slowdown, "ratio")
    yield Measure(name, "gpu_pct", 100.0 * steps.gpu / (seconds * NS_PER_S), "pct")
    yield Measure(name, "run_s", finished / NS_PER_S, "s")


def _notes(jobs: list[Job]) -> tuple[str, ...]:
    late = [job.name for job in jobs if job.kind.steps is not None and isnan(job.figures.finished)]
    return (f"{listed(late)}: the job did not end in what was measured; measure longer",) if late else ()
