"""Virtual GPUs: profiles on boards, the scheduler, and what overlapping jobs cost.

Answers:
    How many VMs a board holds with each profile, how many boards are needed, which scheduler suits, and how much
    longer jobs take when they overlap.

Method:
    Time-sliced profiles divide a GPU's memory: profiles per GPU = floor(memory / profile); all on one GPU have the
    same size, a board has several GPUs. Of jobs that compute on the GPU for a share d of their time alone (their
    duty), n run at once: a job waits only when others are on the GPU; from n = 1 / d on the GPU is the bottleneck,
    and in the end a job takes n d times as long. The closed model with one server and a delay gives the slowdown
    exactly for exponential phases (mean value analysis). With equal or fixed share each of n active, or of all that
    fit, gets its part of time whether it uses it or not: the GPU phases take n (or the number of profiles) times as
    long.

Assumptions:
    Jobs are alike; memory copies overlap computing; context switches are free.

Bends:
    More VMs at once than a GPU has time for: named with the slowdown.

Sources:
    NVIDIA, "Virtual GPU software user guide": time-sliced vGPU, profiles of one size per GPU, schedulers best effort,
    equal share and fixed share.
    Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks" (JACM 27, 1980).
"""

from __future__ import annotations

from math import ceil, floor
from typing import Annotated, Literal, cast

from pydantic import Field

from leadline.core.picture import Curve, Picture
from leadline.core.planner import Bend, Figure, Infeasible, Plan, PlanContext, PlanInput, PlannerMeta, Sheet, Snippet

NVIDIA = "NVIDIA vGPU user guide"
SCHEDULERS = {"best-effort": 0x00, "equal-share": 0x01, "fixed-share": 0x11}  # RmPVMRL of the host's driver
SLOWDOWN_TOLD = 1.2

META = PlannerMeta(
    about="vGPU profiles per board, boards needed, the scheduler, and what overlapping jobs cost.",
    example={"vms": 24, "profile_gib": 1.0, "gpu_memory_gib": 24.0, "duty_pct": 70.0, "at_once": 3},
    grows=(("vms", "boards"), ("profile_gib", "boards"), ("at_once", "slowdown, best effort")),
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
    priority: Annotated[Literal["throughput", "fairness", "predictable"], Field(description="What matters most.")] = (
        "throughput"
    )


MODEL = Gpu


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Boards, scheduler and slowdown."""
    own = cast("Gpu", inputs)  # read with MODEL
    each = floor(own.gpu_memory_gib / own.profile_gib)
    if each == 0:
        return Plan(
            headline=f"A profile of {own.profile_gib:g} GiB fits no GPU of {own.gpu_memory_gib:g} GiB.",
            infeasible=Infeasible(
                f"{own.gpu_memory_gib:g} GiB of a GPU", f"a profile of {own.gpu_memory_gib:g} GiB, one VM for each GPU"
            ),
        )
    gpus = ceil(own.vms / each)
    boards = ceil(gpus / own.gpus_per_board)
    scheduler = {"throughput": "best-effort", "fairness": "equal-share", "predictable": "fixed-share"}[own.priority]
    at_once = min(own.at_once, each)
    slow = {name: slowdown(own.duty_pct / 100.0, at_once, name, each) for name in SCHEDULERS}
    figures = (
        Figure("profiles per GPU", each, "VMs", f"floor({own.gpu_memory_gib:g} / {own.profile_gib:g})", NVIDIA),
        Figure("profiles per board", each * own.gpus_per_board, "VMs", f"{each} x {own.gpus_per_board} GPUs", NVIDIA),
        Figure("boards", boards, "devices", f"ceil(ceil({own.vms} / {each}) / {own.gpus_per_board})"),
        Figure("scheduler", scheduler, "", f"for {own.priority}", NVIDIA),
        *(
            Figure(f"slowdown, {name.replace('-', ' ')}", round(value, 3), "", _told(own, name, at_once, each))
            for name, value in slow.items()
        ),
    )
    enough = own.boards is None or own.boards >= boards
    return Plan(
        headline=f"{boards} board{'s' * (boards != 1)} for {own.vms} VMs of {own.profile_gib:g} GiB ({each} to a GPU); "
        f"{at_once} jobs at once take {slow[scheduler]:.2f} times as long as alone under {scheduler}.",
        figures=figures,
        sheets=(_sheet(own, each),),
        assumptions=("All profiles on a GPU have one size.", "Jobs are alike; context switches are free."),
        bends=_bends(own, at_once, slow[scheduler]),
        snippets=(_snippet(scheduler),),
        pictures=(_picture(own, each),),
        infeasible=None
        if enough
        else Infeasible(
            f"{own.boards} boards hold {(own.boards or 0) * own.gpus_per_board * each} VMs",
            f"{boards} boards, or profiles of {_profile_that_fits(own):g} GiB",
        ),
    )


def slowdown(duty: float, at_once: int, scheduler: str, slots: int) -> float:
    """How many times as long a job takes as alone, with so many alike at once.

    Args:
        duty: share of the job's time alone that it is on the GPU, 0 to 1.
        at_once: jobs that run.
        scheduler: best-effort, equal-share or fixed-share.
        slots: profiles on the GPU, which fixed share divides it by.
    """
    parts = {"equal-share": at_once, "fixed-share": slots}
    if scheduler in parts:
        return 1.0 - duty + duty * parts[scheduler]
    queued = 0.0
    cycle = 1.0
    for jobs in range(1, at_once + 1):  # mean value analysis: one server, the rest of the cycle a delay
        stay = duty * (1.0 + queued)
        cycle = 1.0 - duty + stay
        queued = jobs / cycle * stay
    return cycle


def _told(own: Gpu, name: str, at_once: int, each: int) -> str:
    duty = own.duty_pct / 100.0
    parts = {"equal-share": at_once, "fixed-share": each}
    if name in parts:
        return f"{1 - duty:.2g} + {duty:.2g} x {parts[name]}"
    return f"mean value analysis: {at_once} jobs, duty {duty:.2g}; at most {max(1.0, at_once * duty):.3g} + waiting"


def _profile_that_fits(own: Gpu) -> float:
    gpus = (own.boards or 1) * own.gpus_per_board
    return own.gpu_memory_gib / ceil(own.vms / gpus)


def _sheet(own: Gpu, each: int) -> Sheet:
    counts = sorted({1, 2, 4, 8, 16, each, min(own.at_once, each)})
    rows = tuple(
        (count, *(round(slowdown(own.duty_pct / 100.0, count, name, each), 2) for name in SCHEDULERS))
        for count in counts
        if count <= each
    )
    return Sheet("Times as long as alone, by jobs at once", ("jobs", *SCHEDULERS), rows)


def _picture(own: Gpu, each: int) -> Picture:
    counts = tuple(float(count) for count in range(1, each + 1))
    curves = tuple(
        Curve(name, counts, tuple(slowdown(own.duty_pct / 100.0, int(count), name, each) for count in counts))
        for name in SCHEDULERS
    )
    return Picture("jobs at once on a GPU", "times as long as alone", curves)


def _bends(own: Gpu, at_once: int, slow: float) -> tuple[Bend, ...]:
    if slow < SLOWDOWN_TOLD:
        return ()
    asked = at_once * own.duty_pct
    cost = f"{at_once} jobs of duty {own.duty_pct:g} % ask for {asked:g} % of a GPU: {slow:.2f} times as long"
    return (Bend("jobs at once ask for no more than a GPU has", cost, NVIDIA),)


def _snippet(scheduler: str) -> Snippet:
    text = (
        f'esxcli system module parameters set -m nvidia -p "NVreg_RegistryDwords=RmPVMRL=0x{SCHEDULERS[scheduler]:02x}"'
    )
    return Snippet("Each host, then reboot", "esxcli", text)
