"""Two VMs of 24 vCPUs at 3x each on 24 cores: what the second costs the first.

Setup:
    The host and the VM of the right-sizing figure, and a second VM like it.

Run:
    The VM alone and with its neighbour; throughput and mean response compared.

Limits:
    The gain of a core with two threads decides: with 30 % (Intel's) the fall is somewhat deeper than published, with
    25 % it would be outside the tolerance.
"""

from __future__ import annotations

from math import inf

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.experiments import _cpu_24_cores as setup

META = ExperimentMeta(
    claim=(
        "two busy VMs of 24 vCPUs at 3x each on a host of 24 cores: throughput of each falls by 16 %, response rises "
        "by more than 50 %"
    ),
    source=setup.SOURCE,
    verified="read",
    kind="numeric",
    by=("simulation",),
    tolerance=0.25,
    calibrated=f"{setup.CALIBRATED_RATE}; {setup.CALIBRATED_THINK} (points of other figures)",
)


def reproduce(simulated: Simulated) -> Findings:
    """One VM alone, and two."""
    first = setup.vm(setup.GUEST, 24, 3)
    alone = simulated(setup.host([first]))
    both = simulated(setup.host([first, setup.vm(setup.NEIGHBOUR, 24, 3)]))
    rate, response = (
        setup.value(both, name) / setup.value(alone, name) - 1.0 for name in ("transactions_per_s", "latency_ms_mean")
    )
    other = setup.value(both, "transactions_per_s", setup.NEIGHBOUR) / setup.value(both, "transactions_per_s")
    waits = [setup.value(both, name) for name in ("ready_pct", "co_stop_pct")]
    return Findings(
        comparisons=(
            Published("change of throughput", -0.16, rate),
            Published("change of response", (0.50, inf), response),
        ),
        checks=(
            Statement(
                "both lose alike", abs(other - 1.0) < 0.03, f"the neighbour has {other:.3f} of the first's throughput"
            ),
            Statement(
                "both wait for threads and are stopped",
                min(waits) > 0.0,
                f"ready {waits[0]:.1f} %, co-stop {waits[1]:.1f} %",
            ),
        ),
    )
