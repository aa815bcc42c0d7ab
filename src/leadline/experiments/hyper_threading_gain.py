"""What hyper-threading adds to a database VM: a fifth or more, never double.

Setup:
    The host of the right-sizing figure with a VM that wants more than it has: once with hyper-threading and 48 vCPUs,
    once with it switched off and 24.

Run:
    Throughput with and without the second threads, at a load that fills both.

Limits:
    The gain of one core is a parameter of the model, from Intel and the same in all figures. What this run adds is how
    much of it is left for a guest whose vCPUs share cores with each other and with the hypervisor's own work, and are
    co-scheduled. It would follow any other gain.
"""

from __future__ import annotations

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.experiments import _cpu_24_cores as setup

META = ExperimentMeta(
    claim="hyper-threading adds about 20 % or more to throughput, never double",
    source=setup.SOURCE,
    verified="read",
    kind="numeric",
    by=("simulation",),
    calibrated=f"{setup.CALIBRATED_RATE}; {setup.CALIBRATED_THINK} (points of other figures)",
)
FULL = 8  # times 1x: twice what 24 cores do
WHY = "the gain of a single core is a parameter, Intel's up to 30 %; the run tells what of it reaches the guest"


def reproduce(simulated: Simulated) -> Findings:
    """A full host without and with second threads, and the same at a load that cores alone can do."""

    def rate(vcpus: int, scale: float, *, is_on: bool) -> float:
        guest = setup.vm(setup.GUEST, vcpus, scale)
        return setup.value(simulated(setup.host([guest], hyper_threading=is_on)), "transactions_per_s")

    gain = rate(48, FULL, is_on=True) / rate(24, FULL, is_on=False) - 1.0
    light = rate(48, 2, is_on=True) / rate(24, 2, is_on=False) - 1.0
    return Findings(
        comparisons=(Published("gain of a full host", (0.15, 0.35), gain),),
        checks=(
            Statement("never double", gain < 1.0, f"{100.0 * gain:.0f} %"),
            Statement("nothing while cores are free", abs(light) < 0.02, f"{100.0 * light:+.1f} %"),
        ),
        why=WHY,
    )
