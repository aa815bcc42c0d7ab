"""Jobs on a GPU that is shared in turns, simulated, and the closed forms to check that with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leadline.core.contracts.planner import PlanContext

SYSTEM = "simulated: gpu-time-slicing"
STEPS = 1000  # of all jobs together: means then have a standard error of about 1 %
STEPS_EACH = 20
WARM_UP_STEPS = 5
CV = 0.3  # Judgement: steps of a job differ, and jobs are not in step with each other


@dataclass(frozen=True, slots=True)
class GpuJob:
    """What repeats on a GPU: duty is the share of a step alone that is on the GPU; slots are the profiles on it."""

    duty: float
    step_ms: float
    switch_ms: float
    slots: int


def slowdown(duty: float, at_once: int, scheduler: str, slots: int) -> float:
    """How many times as long a job takes as alone, with so many alike at once: closed forms.

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


def simulated(job: GpuJob, at_once: int, scheduler: str, context: PlanContext) -> float:
    """Return the slowdown by the simulator, the mean over all jobs."""
    outcome = context.simulated(scenario(job, at_once, scheduler))
    values = [measure.value for measure in outcome.measures if measure.name == "slowdown"]
    return sum(values) / len(values)


def scenario(job: GpuJob, at_once: int, scheduler: str) -> dict[str, Any]:
    """Return a scenario of ``at_once`` equal jobs that runs until they have done enough steps."""
    step_s = job.step_ms / 1000.0
    cycle_s = step_s * slowdown(job.duty, at_once, scheduler, job.slots)
    measure_s = cycle_s * max(STEPS / at_once, STEPS_EACH)
    return {
        "name": "gpu-plan",
        "system": "gpu-time-slicing",
        "timing": {"warm_up_s": WARM_UP_STEPS * cycle_s, "measure_s": measure_s, "window_s": measure_s},
        "gpu": {"policy": scheduler, "max_vms": job.slots, "switch": job.switch_ms / 1000.0},
        "vms": [
            {
                "name": "job",
                "count": at_once,
                "cpu": _phase(step_s * (1.0 - job.duty)),
                "gpu": _phase(step_s * job.duty),
            }
        ],
    }


def _phase(mean_s: float) -> dict[str, Any]:
    return {"kind": "lognormal", "mean": mean_s, "cv": CV} if mean_s > 0 else {"mean": 0.0}
