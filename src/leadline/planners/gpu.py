"""Virtual GPUs: profiles on boards, the scheduler, and what overlapping jobs cost.

Answers:
    How many VMs a board holds with each profile, how many boards are needed, which scheduler suits, how much longer
    jobs take when so many run at once, and hour by hour when their schedules overlap in part.

Method:
    Time-sliced profiles divide a GPU's memory: profiles per GPU = floor(memory / profile); all on one GPU have the
    same size, a board has several GPUs. Jobs repeat a step, of which a share d (their duty) is on the GPU. The
    simulator runs so many at once under each scheduler (system gpu-time-slicing); what it says has a standard error
    of about 1 %. Beside it stand closed forms: for best effort mean value analysis with one server and a delay; for
    equal and fixed share 1 - d + d n with n jobs, or profiles, as each gets its part of time whether it uses it or
    not. They agree within 3 % where slices are short against a step and switches free. They do not where a switch
    takes its part of each slice (0.2 ms: 25 % more), where a slice is missed and the next is a round away (shares with
    2 ms a step: 20 % more), and for jobs whose steps never vary, which stay in step (13 % more for two). An hour's
    slowdown is that of the jobs that run in it; a group's is its hours by the work done in them.

Assumptions:
    Jobs are alike; memory copies overlap computing; steps spread by 30 % of their mean. Slices are NVIDIA's defaults.
    NVIDIA's table for the board may allow fewer profiles than its memory does.

Bends:
    More VMs at once than a GPU has time for: named with the slowdown. Simulation and closed form apart: slices are
    not short against a step, or switches cost time.

Sources:
    NVIDIA, "Virtual GPU software user guide": time-sliced vGPU, profiles of one size per GPU, schedulers best effort,
    equal share and fixed share.
    Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks" (JACM 27, 1980).
    The system gpu-time-slicing, with its sources: `leadline explain gpu-time-slicing`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from math import ceil, floor
from typing import Annotated, Literal, cast

from pydantic import Field

from leadline.core.contracts.planner import (
    Bend,
    Figure,
    Infeasible,
    Plan,
    PlanContext,
    PlanInput,
    PlannerMeta,
    Sheet,
    Snippet,
)
from leadline.core.model.capture import Capture
from leadline.core.model.picture import Curve, Picture
from leadline.core.model.units import several
from leadline.estate.derived.recorded_loads import RecordedInput, filled
from leadline.estate.knowledge.stored import machines_kept
from leadline.planners._gpu import schedule
from leadline.planners._gpu.schedule import JobGroup
from leadline.planners._gpu.simulated import SYSTEM, GpuJob, simulated, slowdown

NVIDIA, REISER = "NVIDIA vGPU user guide", "Reiser and Lavenberg 1980"
MVA = "mean value analysis"
SCHEDULERS = {"best-effort": 0x00, "equal-share": 0x01, "fixed-share": 0x11}  # RmPVMRL of the host's driver
PROFILE = re.compile(r"-(\d+)[abcq]$", re.IGNORECASE)  # grid_p40-1q: 1 GiB
SLOWDOWN_REPORTED = 1.2
DIFFERENCE_REPORTED = 0.05  # Judgement: five times the standard error of what is simulated
COUNTS = (1, 2, 4, 8, 16)
Slow = Callable[[str, int], float]

META = PlannerMeta(
    about="vGPU profiles per board, boards needed, the scheduler, and what overlapping jobs cost.",
    example={"vms": 24, "profile_gib": 1.0, "gpu_memory_gib": 24.0, "duty_pct": 70.0, "at_once": 3},
    grows=(
        ("vms", "boards"),
        ("profile_gib", "boards"),
        ("at_once", "slowdown, best effort"),
        ("duty_pct", "slowdown, best effort"),
    ),
    reads="VMs with a vGPU profile",
)


class Gpu(PlanInput):
    """Boards, profiles and jobs."""

    vms: Annotated[int, Field(ge=1, le=100_000, description="VMs that need a GPU.")] = 24
    profile_gib: Annotated[float, Field(gt=0, description="Frame buffer of a VM's profile, GiB.")] = 1.0
    gpu_memory_gib: Annotated[float, Field(gt=0, description="Memory of a GPU, GiB.")] = 24.0
    gpus_per_board: Annotated[int, Field(ge=1, le=16, description="GPUs on a board.")] = 1
    boards: Annotated[int | None, Field(ge=1, description="Boards there are; none for as many as needed.")] = None
    duty_pct: Annotated[
        float, Field(gt=0, le=100, description="Share of a job's time alone that it computes on the GPU, percent.")
    ] = 70.0
    at_once: Annotated[int, Field(ge=1, le=10_000, description="Jobs that run at the same time on a GPU.")] = 3
    schedule: Annotated[
        tuple[JobGroup, ...],
        Field(description="Groups of jobs on a GPU: name, jobs, start_h (0 to 23), hours; their peak is at_once then."),
    ] = ()
    step_ms: Annotated[float, Field(ge=1, le=1e5, description="A step of a job alone, ms.")] = 100.0
    switch_ms: Annotated[
        float, Field(ge=0, le=0.5, description="What the GPU loses when it changes between VMs, ms.")
    ] = 0.0
    priority: Annotated[Literal["throughput", "fairness", "predictable"], Field(description="What matters most.")] = (
        "throughput"
    )


MODEL = Gpu


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return the boards needed, the scheduler, and the slowdown of jobs that overlap."""
    inputs, evidence = _known(cast("Gpu", inputs), context.capture)  # read with MODEL
    each = floor(inputs.gpu_memory_gib / inputs.profile_gib)
    if each == 0:
        return Plan(
            headline=f"A profile of {inputs.profile_gib:g} GiB fits no GPU of {inputs.gpu_memory_gib:g} GiB.",
            infeasible=Infeasible(
                f"{inputs.gpu_memory_gib:g} GiB of a GPU",
                f"a profile of {inputs.gpu_memory_gib:g} GiB, one VM for each GPU",
            ),
        )
    gpus = ceil(inputs.vms / each)
    boards = ceil(gpus / inputs.gpus_per_board)
    scheduler = {"throughput": "best-effort", "fairness": "equal-share", "predictable": "fixed-share"}[inputs.priority]
    peak = max(schedule.by_hour(inputs.schedule)) if inputs.schedule else inputs.at_once
    at_once = min(peak, each)
    job = GpuJob(inputs.duty_pct / 100.0, inputs.step_ms, inputs.switch_ms, each)

    @cache
    def slow(name: str, count: int) -> float:
        return simulated(job, count, name, context)

    def hourly(count: int) -> float:
        return slow(scheduler, min(count, each))

    def closed(count: int) -> float:
        return slowdown(job.duty, min(count, each), scheduler, each)

    rows = _rows(job, at_once, slow)
    hours = () if not inputs.schedule else (schedule.sheet(inputs.schedule, hourly, closed, "closed form"),)
    return Plan(
        headline=f"{several(boards, 'board')} for {several(inputs.vms, 'VM')} of {inputs.profile_gib:g} GiB "
        f"({each} to a GPU); {several(at_once, 'job')} at once take {slow(scheduler, at_once):.2f} times as long as "
        f"alone under {scheduler}.",
        figures=(
            Figure(
                "profiles per GPU", each, "VMs", f"floor({inputs.gpu_memory_gib:g} / {inputs.profile_gib:g})", NVIDIA
            ),
            Figure(
                "profiles per board",
                each * inputs.gpus_per_board,
                "VMs",
                f"{each} x {inputs.gpus_per_board} GPUs",
                NVIDIA,
            ),
            Figure("boards", boards, "devices", f"ceil(ceil({inputs.vms} / {each}) / {inputs.gpus_per_board})"),
            Figure("scheduler", scheduler, "", f"for {inputs.priority}", NVIDIA),
            *_slowdowns(job, at_once, slow),
            *schedule.figures(inputs.schedule, hourly, SYSTEM),
        ),
        sheets=(*hours, Sheet("Times as long as alone, by jobs at once", ("jobs", *SCHEDULERS, MVA), rows)),
        assumptions=("All profiles on a GPU have one size.", "Jobs are alike; their steps vary."),
        bends=_bends(inputs, job, at_once, slow, scheduler),
        snippets=(_snippet(scheduler),),
        pictures=(_picture(job, rows),),
        evidence=evidence,
        infeasible=_infeasible(inputs, each, boards, peak),
    )


def _known(inputs: Gpu, capture: Capture | None) -> tuple[Gpu, tuple[str, ...]]:
    """Return the inputs, those not given from the inventory, and a sentence for each value taken."""
    return filled(inputs, _profiles(capture))


def _profiles(capture: Capture | None) -> Iterator[RecordedInput]:
    """Yield the number of VMs with a vGPU profile, and the largest profile, GiB."""
    if capture is None:
        return
    gib: dict[str, float] = {}
    for vm in machines_kept(capture.inventory):
        profile = PROFILE.search(str(capture.inventory.get(vm, "vgpu_profile") or "").strip())
        if profile is not None and float(profile[1]) > 0:
            gib[str(vm)] = float(profile[1])
    if gib:
        yield RecordedInput("vms", len(gib), "VMs of the inventory with a vGPU profile; templates left out")
        yield RecordedInput("profile_gib", max(gib.values()), f"the largest profile of {len(gib)} VMs")


def _slowdowns(job: GpuJob, at_once: int, slow: Slow) -> list[Figure]:
    """Return the slowdown under each scheduler, simulated and by its closed form."""
    figures = []
    for name in SCHEDULERS:
        shown = name.replace("-", " ")
        setup = f"{at_once} jobs of duty {job.duty:.2g}, steps of {job.step_ms:g} ms, {job.slots} profiles"
        figures.append(Figure(f"slowdown, {shown}", round(slow(name, at_once), 3), "", setup, SYSTEM))
        value = slowdown(job.duty, at_once, name, job.slots)
        how, source = (MVA, REISER) if name == "best-effort" else ("arithmetic", NVIDIA)
        figures.append(
            Figure(f"{shown}, by {how}", round(value, 3), "", _closed_arithmetic(job, name, at_once), source)
        )
    return figures


def _closed_arithmetic(job: GpuJob, name: str, at_once: int) -> str:
    parts = {"equal-share": at_once, "fixed-share": job.slots}
    if name in parts:
        return f"{1 - job.duty:.2g} + {job.duty:.2g} x {parts[name]}"
    return f"{at_once} jobs, one server, duty {job.duty:.2g}; never below {max(1.0, at_once * job.duty):.3g}"


def _infeasible(inputs: Gpu, each: int, boards: int, peak: int) -> Infeasible | None:
    if inputs.boards is not None and inputs.boards < boards:
        return Infeasible(
            f"{inputs.boards} boards hold {inputs.boards * inputs.gpus_per_board * each} VMs",
            f"{boards} boards, or profiles of {_profile_that_fits(inputs):g} GiB",
        )
    if inputs.schedule and peak > each:
        hour = schedule.by_hour(inputs.schedule).index(peak)
        return Infeasible(
            f"{peak} jobs at once at {hour:02d}:00 on a GPU that holds {each} VMs",
            f"the jobs on {ceil(peak / each)} GPUs, or profiles of {inputs.gpu_memory_gib / peak:g} GiB",
        )
    return None


def _profile_that_fits(inputs: Gpu) -> float:
    gpus = (inputs.boards or 1) * inputs.gpus_per_board
    return inputs.gpu_memory_gib / ceil(inputs.vms / gpus)


def _rows(job: GpuJob, at_once: int, slow: Slow) -> tuple[tuple[str | float | int, ...], ...]:
    """Slowdowns by jobs at once, simulated under each scheduler; last by mean value analysis."""
    counts = sorted({count for count in (*COUNTS, at_once, job.slots) if count <= job.slots})
    return tuple(
        (
            count,
            *(round(slow(name, count), 2) for name in SCHEDULERS),
            round(slowdown(job.duty, count, "best-effort", job.slots), 2),
        )
        for count in counts
    )


def _picture(job: GpuJob, rows: tuple[tuple[str | float | int, ...], ...]) -> Picture:
    counts = tuple(float(row[0]) for row in rows)
    curves = [
        Curve(name, counts, tuple(float(row[column]) for row in rows))
        for column, name in enumerate(SCHEDULERS, start=1)
    ]
    every = range(1, job.slots + 1)
    values = tuple(slowdown(job.duty, count, "best-effort", job.slots) for count in every)
    curves.append(Curve(f"best effort, by {MVA}", tuple(float(count) for count in every), values))
    return Picture("jobs at once on a GPU", "times as long as alone", tuple(curves))


def _bends(inputs: Gpu, job: GpuJob, at_once: int, slow: Slow, scheduler: str) -> tuple[Bend, ...]:
    bends = []
    times = slow(scheduler, at_once)
    if times >= SLOWDOWN_REPORTED:
        asked_pct = at_once * inputs.duty_pct
        cost = f"{at_once} jobs of duty {inputs.duty_pct:g} % ask for {asked_pct:g} % of a GPU: {times:.2f}"
        bends.append(Bend("jobs at once ask for no more than a GPU has", f"{cost} times as long", NVIDIA))
    for name in SCHEDULERS:
        simulated_times, closed_times = slow(name, at_once), slowdown(job.duty, at_once, name, job.slots)
        if abs(simulated_times / closed_times - 1.0) > DIFFERENCE_REPORTED:
            cost = f"{name} simulated {simulated_times:.2f} times as long, by the closed form {closed_times:.2f}"
            bends.append(Bend("slices are short against a step, and switches are free", cost, SYSTEM))
    return tuple(bends)


def _snippet(scheduler: str) -> Snippet:
    text = (
        f'esxcli system module parameters set -m nvidia -p "NVreg_RegistryDwords=RmPVMRL=0x{SCHEDULERS[scheduler]:02x}"'
    )
    return Snippet("Each host, then reboot", "esxcli", text)
