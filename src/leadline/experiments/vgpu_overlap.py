"""Three trainings on one GPU of which two overlap a quarter of the time.

Setup:
    Three VMs on one P40, started one after the other so that for a quarter of the time from the first start to the last
    end two train at once; best effort.

Run:
    A step is 71 % GPU, calibrated on the other figure of the same source (24 VMs take 17 times as long); nothing is
    calibrated on this one. The distances between starts are moved until the overlap is a quarter.

Limits:
    The source does not tell which VMs overlap; here the middle one does with both others, half of the overlap with
    each. Each is compared with the published range; the outer ones lie below it, within the tolerance.
"""

from __future__ import annotations

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated
from leadline.core.contracts.scenario import Outcome
from leadline.experiments._shared_gpu import STEP_S, STEPS, trained, values

META = ExperimentMeta(
    claim="three trainings on one GPU, two of them overlapping a quarter of the time, take 16 to 23 % longer",
    source="vmgu.ru on vGPU for machine learning, after VMware's VROOM! blog (September 2018)",
    verified="read",
    kind="numeric",
    by=("simulation",),
    tolerance=0.35,
    calibrated="24 VMs take 17 times as long (vgpu-24-vms): the GPU's share of a step; nothing of this figure",
)
SLOWDOWN = (0.16, 0.23)
OVERLAP = 0.25
SEARCH_STEPS = 12
ALONE_S = STEPS * STEP_S
NAMES = ("first", "middle", "last")


def reproduce(simulated: Simulated) -> Findings:
    """Starts so far apart that the overlap is a quarter, and how much longer the trainings take."""
    gaps = (ALONE_S, ALONE_S)
    for _ in range(SEARCH_STEPS):
        outcome = _trained(simulated, gaps)
        runs = values(outcome, "run_s")
        each = OVERLAP / 2.0 * (sum(gaps) + runs[-1])
        # Halfway: a longer overlap lengthens the very trainings that overlap.
        gaps = (gaps[0] + runs[0] - each) / 2.0, (gaps[1] + runs[1] - each) / 2.0
    outcome = _trained(simulated, gaps)
    runs = values(outcome, "run_s")
    overlap = (runs[0] - gaps[0] + runs[1] - gaps[1]) / (sum(gaps) + runs[-1])
    return Findings(
        tuple(
            Published(f"{name} training, longer by", SLOWDOWN, slowdown - 1.0, "of its time alone")
            for name, slowdown in zip(NAMES, values(outcome, "slowdown"), strict=True)
        ),
        why=f"Two train at once for {100.0 * overlap:.1f} % of the time, the middle one with each of its neighbours "
        "for half of that. The source does not tell which overlap, nor what its range spans.",
    )


def _trained(simulated: Simulated, gaps: tuple[float, float]) -> Outcome:
    starts = (0.0, gaps[0], sum(gaps))
    vms = [{"name": name, "start": start, "steps": STEPS} for name, start in zip(NAMES, starts, strict=True)]
    return trained(simulated, "best-effort", ALONE_S * 6.0, vms)
