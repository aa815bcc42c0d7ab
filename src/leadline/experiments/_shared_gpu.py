"""What experiments on trainings that share a GPU have in common: the parts of a step, and one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leadline.core.contracts.experiment import Simulated
from leadline.core.contracts.scenario import Outcome

# Share of a training step that is on the GPU. Calibrated on one point: with 24 VMs the GPU never rests, and 24 times
# the GPU's part of a step is 17 times a step.
GPU_SHARE = 17.0 / 24.0
STEP_S = 0.1  # Judgement: a small network on a P40; 20 ms give the same
STEP_CV = 0.3  # Judgement: trainings are not in step with each other
VMS_MAX = 24  # profile P40-1q on 24 GB
STEPS = 300


def parts(gpu_share: float = GPU_SHARE) -> dict[str, Any]:
    """The two parts of a step."""
    shares = {"cpu": 1.0 - gpu_share, "gpu": gpu_share}
    return {name: {"kind": "lognormal", "mean": STEP_S * share, "cv": STEP_CV} for name, share in shares.items()}


def trained(simulated: Simulated, policy: str, measure_s: float, vms: Sequence[Mapping[str, Any]]) -> Outcome:
    """Simulate trainings on one P40 with a policy; everything else is NVIDIA's default."""
    return simulated(
        {
            "name": "trainings",
            "system": "gpu-time-slicing",
            "timing": {"warm_up_s": 0, "measure_s": measure_s, "window_s": measure_s / 10},
            "gpu": {"policy": policy, "max_vms": VMS_MAX},
            "vms": [{**parts(), **vm} for vm in vms],
        }
    )


def values(outcome: Outcome, name: str) -> list[float]:
    """The values of a measure, one for each VM."""
    return [measure.value for measure in outcome.measures if measure.name == name]
