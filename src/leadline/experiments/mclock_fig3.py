"""mClock's example: three machines with reservation, limit and weight while capacity changes.

Setup:
    RD with weight 1 and a reservation of 250, OLTP with weight 2 and a reservation of 250, DM with weight 3 and a limit
    of 1,000 IOPS; capacities from 400 to 2,300 requests a second.

Run:
    The storage path with the mClock scheduler, each machine with more outstanding than it can get done, a device that
    serves exactly the capacity, 60 s for each of ten capacities; beside it the fluid allocation in closed form. A
    breakpoint is where the lines through two simulated capacities on either side of it meet.

Limits:
    DM's limit delays in front of the scheduler. The example has no variation of service times, nor has the device here.
"""

from __future__ import annotations

from typing import Any

from leadline import _core
from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.core.model.picture import Curve, Picture

from ._mclock import SOURCE

META = ExperimentMeta(
    claim=(
        "RD (weight 1, reservation 250), OLTP (weight 2, reservation 250) and DM (weight 3, limit 1,000) get 250, 380 "
        "and 570 of a capacity of 1,200; the allocation changes its course at 500, 875, 1,500 and 2,000"
    ),
    source=f"{SOURCE}, figure 3",
    verified="read",
    kind="numeric",
    by=("simulation", "arithmetic"),
    tolerance=0.005,
)
# Weight, reservation, limit. Source: as META
POLICIES = {"RD": (1.0, 250.0, float("inf")), "OLTP": (2.0, 250.0, float("inf")), "DM": (3.0, 0.0, 1000.0)}
PUBLISHED = {"RD": 250.0, "OLTP": 380.0, "DM": 570.0}  # at 1,200. Source: as META
CAPACITIES = (400, 600, 800, 1000, 1200, 1400, 1600, 1700, 1900, 2300)
FLUID_TOLERANCE = 0.005  # of the capacity. Source: the bar for simulated against closed form


def scenario(capacity: float, policies: dict[str, tuple[float, float, float]]) -> dict[str, Any]:
    """The three machines before a device of this capacity [requests per second]."""
    vms = [
        {
            "name": name,
            "adapter_depth": 64,
            "shares": weight,
            "reservation_iops": reservation,
            "iops_limit": None if limit == float("inf") else limit,
            "workload": {"io": [{"block": "4k", "oio": 64}]},
        }
        for name, (weight, reservation, limit) in policies.items()
    ]
    return {
        "system": "storage-path",
        "timing": {"warm_up_s": 10, "measure_s": 60, "window_s": 5},
        "vms": vms,
        "hosts": [{"name": "esx01", "queue_depth": 1, "scheduler": "mclock"}],
        "devices": [{"name": "device", "service": 1.0 / capacity}],
    }


def reproduce(simulated: Simulated) -> Findings:
    """What each gets at each capacity, the breakpoints, and the closed form beside."""
    got: dict[str, dict[int, float]] = {name: {} for name in POLICIES}
    for capacity in CAPACITIES:
        outcome = simulated(scenario(capacity, POLICIES))
        for name in POLICIES:
            got[name][capacity] = outcome.measure(name, "iops").value
    fluid = {c: dict(zip(POLICIES, _core.fluid_allocation([*POLICIES.values()], c), strict=True)) for c in CAPACITIES}
    apart = max(abs(got[name][c] - fluid[c][name]) / c for name in POLICIES for c in CAPACITIES)
    corners = (
        ("DM begins to get something", 500.0, _meet(got["DM"], (600, 800), 0.0)),
        ("OLTP gets more than its reservation", 875.0, _meet(got["OLTP"], (1000, 1400), got["OLTP"][800])),
        ("RD gets more than its reservation", 1500.0, _meet(got["RD"], (1700, 1900), got["RD"][1400])),
        ("DM meets its limit", 2000.0, _meet(got["DM"], (1700, 1900), got["DM"][2300])),
    )
    return Findings(
        (
            *(Published(f"{name} at 1,200", value, got[name][1200], "per_s") for name, value in PUBLISHED.items()),
            *(Published(f"{name}, capacity", value, crossing) for name, value, crossing in corners),
        ),
        (
            Statement(
                "simulated request by request, each gets what the fluid allocation gives",
                apart <= FLUID_TOLERANCE,
                f"at most {100.0 * apart:.2g} % of the capacity apart over {len(CAPACITIES)} capacities",
            ),
        ),
        Picture(
            "capacity, requests per second",
            "requests per second",
            (
                *(Curve(name, tuple(map(float, CAPACITIES)), tuple(got[name].values())) for name in POLICIES),
                *(Curve(name, (1200.0,), (value,), is_published=True) for name, value in PUBLISHED.items()),
            ),
        ),
    )


def _meet(got: dict[int, float], capacities: tuple[int, int], level: float) -> float:
    """The capacity at which the line through two simulated ones is at this level."""
    first, second = capacities
    slope = (got[second] - got[first]) / (second - first)
    return first + (level - got[first]) / slope if slope else float("nan")
