"""Reservations under proportional sharing alone, and under mClock.

Setup:
    Five machines with weights 1:1:2:2:2, each with 32 requests outstanding; the first two have reservations of 300 and
    250 IOPS. The host keeps 32 requests at the array: SFQ(32) once, mClock once.

Run:
    The storage path with both schedulers before ten disks, 120 s each. Their capacity is calibrated: 1,280 requests a
    second, of which 160, what SFQ was published to give the first machine, is an eighth. What mClock gives the first
    two, and SFQ the second, is predicted.

Limits:
    The list of figures does not name the other machines: five at 1:1:2:2:2 are those of the figure's caption, which was
    not at hand to be read again. What mClock gives depends on them only in that the first two's part by weight is less
    than they reserve.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement

from ._mclock import SOURCE, scenario, vm

META = ExperimentMeta(
    claim=(
        "under proportional sharing alone (SFQ, depth 32) two machines with reservations of 300 and 250 fall to 160 "
        "each; mClock holds 300 and 250"
    ),
    source=f"{SOURCE}, figure 6",
    verified="read",
    kind="numeric",
    by=("simulation",),
    tolerance=0.10,
    calibrated="what SFQ gives the first machine: the array's capacity",
)
WEIGHTS = (1.0, 1.0, 2.0, 2.0, 2.0)  # see Limits
RESERVATIONS = (300.0, 250.0, 0.0, 0.0, 0.0)  # IOPS. Source: as META
SFQ_PUBLISHED = 160.0  # IOPS. Source: as META
CAPACITY = SFQ_PUBLISHED * sum(WEIGHTS) / WEIGHTS[0]


def machines() -> list[dict[str, Any]]:
    """All five VMs, with their weights and reservations."""
    policies = zip(WEIGHTS, RESERVATIONS, strict=True)
    return [vm(f"vm{n}", weight, reservation_iops=reservation) for n, (weight, reservation) in enumerate(policies, 1)]


def reproduce(simulated: Simulated) -> Findings:
    """Both schedulers."""
    got = {}
    for scheduler in ("sfq", "mclock"):
        outcome = simulated(scenario(machines(), CAPACITY, scheduler))
        got[scheduler] = [outcome.measure(machine["name"], "iops").value for machine in machines()]
    sfq, mclock = got["sfq"], got["mclock"]
    return Findings(
        (
            Published("SFQ, first machine", SFQ_PUBLISHED, sfq[0], "per_s", is_calibrated=True),
            Published("SFQ, second machine", SFQ_PUBLISHED, sfq[1], "per_s"),
            Published("mClock, first machine", RESERVATIONS[0], mclock[0], "per_s"),
            Published("mClock, second machine", RESERVATIONS[1], mclock[1], "per_s"),
        ),
        (
            Statement(
                "the others share what is left equally, as their weights are",
                max(mclock[2:]) <= 1.02 * min(mclock[2:]),
                ", ".join(f"{rate:.0f}" for rate in mclock[2:]),
            ),
        ),
    )
