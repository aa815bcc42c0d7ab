"""What protection takes of raw capacity, and of I/O for a small write.

Setup:
    Mirrors of two and three copies, RAID-5 of 3 + 1 and RAID-6 of 4 + 2 units.

Run:
    The model of protection, through the system cache-tiers: a full stripe's units are counted by its data units, and
    the units that one small write reads and writes. The write really changes the stripe; that its parities are right
    afterwards is tested with the model.

Limits:
    Raw capacity without witnesses, free space kept for rebuilds, checksums or metadata.
"""

from __future__ import annotations

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated
from leadline.core.contracts.scenario import Outcome
from leadline.experiments._vsan import group, tiers

META = ExperimentMeta(
    claim=(
        "usable to raw capacity for RAID-1 FTT1 2.0, RAID-5 3+1 1.33, RAID-1 FTT2 3.0, RAID-6 4+2 1.5; a small write "
        "costs 2, 4 and 6 operations with RAID-1 FTT1, RAID-5 and RAID-6"
    ),
    source="VMware vSAN documentation",
    verified="read",
    kind="exact",
    by=("arithmetic", "simulation"),
)
ENTITY = "protection"
SCHEMES = {
    "RAID-1 FTT1": ({"copies": 2}, 2.0, 2.0),
    "RAID-5 3+1": ({"data": 3, "parity": 1}, 1.333, 4.0),
    "RAID-1 FTT2": ({"copies": 3}, 3.0, None),
    "RAID-6 4+2": ({"data": 4, "parity": 2}, 1.5, 6.0),
}


def reproduce(simulated: Simulated) -> Findings:
    """Capacity factors and operations of a small write."""
    comparisons = []
    for name, (protection, factor, penalty) in SCHEMES.items():
        outcome = simulated(tiers(group(400, 2), measure_s=1, window_s=1, protection=protection))
        comparisons.append(
            Published(f"{name}: raw by usable", factor, outcome.measure(ENTITY, "capacity_factor").value)
        )
        if penalty is not None:
            comparisons.append(
                Published(f"{name}: operations of a small write", penalty, _operations(outcome), "count")
            )
    return Findings(comparisons=tuple(comparisons))


def _operations(outcome: Outcome) -> float:
    return sum(outcome.measure(ENTITY, f"small_write_{way}_count").value for way in ("read", "written"))
