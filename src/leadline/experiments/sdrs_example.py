"""Placing a disk where no datastore has the space: the moves that must come first.

Setup:
    Three datastores of 1,000 GB that hold 550, 600 and 650 GB, a space threshold of 80 %, a new VM of 350 GB. None has
    350 GB left below its threshold.

Run:
    Arithmetic: every set of up to three moves of VMs, each to a datastore that it does not fill beyond its threshold,
    after which the new VM fits. A plan costs the GB it copies, and its number of moves where these are equal; of each
    datastore's cheapest plans the cheapest wins.

Limits:
    The sizes of the VMs on the datastores are not known from the text at hand; those here add up to what is published,
    and make the datastores need one, two and three moves. Only space counts: no I/O latency, no affinity rules, whole
    VMs. Storage DRS weighs cost against benefit in more ways than GB.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.estate.knowledge.prerequisite_moves import Holdings, MovePlan, every_plan

META = ExperimentMeta(
    claim=(
        "with three datastores of 1,000 GB holding 550 to 650 GB and a space threshold of 80 % a new VM of 350 GB fits "
        "nowhere directly; the plan with one prerequisite move wins over those with two and three"
    ),
    source="F. Denneman, Storage DRS initial placement and datastore cluster defragmentation (2012)",
    verified="second",
    kind="exact",
    by=("arithmetic",),
)
SIZE_GB, THRESHOLD, NEW_GB = 1000.0, 0.80, 350.0  # Source: as META
MOVES_MAX = 3
# VMs of each datastore, GB. Judgement, see Limits; the sums are published.
HELD: Holdings = {
    "datastore1": {"vm11": 100.0, "vm12": 200.0, "vm13": 250.0},
    "datastore2": {"vm21": 75.0, "vm22": 75.0, "vm23": 450.0},
    "datastore3": {"vm31": 70.0, "vm32": 70.0, "vm33": 60.0, "vm34": 450.0},
}


def free_gb(holdings: Holdings, threshold: float = THRESHOLD) -> dict[str, float]:
    """Space left below the threshold."""
    return {name: threshold * SIZE_GB - sum(vms.values()) for name, vms in holdings.items()}


def plans(holdings: Holdings, new_gb: float = NEW_GB, threshold: float = THRESHOLD) -> Iterator[MovePlan]:
    """Every plan of up to three moves, each of a VM away from the new one's datastore to one with space for it."""
    return every_plan(holdings, free_gb(holdings, threshold), new_gb, MOVES_MAX)


def reproduce(simulated: Simulated) -> Findings:
    """The winner, and what each datastore would need."""
    move_plans = sorted(plans(HELD))
    best = {target: next((plan for plan in move_plans if plan.target == target), None) for target in HELD}
    counts = sorted(plan.move_count for plan in best.values() if plan is not None)
    free = free_gb(HELD)
    counts_shown = "; ".join(_plan_words(target, plan) for target, plan in best.items() if plan is not None)
    return Findings(
        (Published("moves of the winning plan", 1.0, float(move_plans[0].move_count) if move_plans else float("nan")),),
        (
            Statement(
                "none has the space directly",
                all(space < NEW_GB for space in free.values()) and not any(plan.move_count == 0 for plan in move_plans),
                ", ".join(f"{name} {space:.0f} GB" for name, space in free.items()),
            ),
            Statement(
                "there are plans with one, two and three moves to choose from", counts == [1, 2, 3], counts_shown
            ),
            Statement(
                "the plan with one move copies least",
                bool(move_plans)
                and move_plans[0].copied < min(plan.copied for plan in move_plans if plan.move_count > 1),
                f"{len(move_plans)} plans" + (f", the winner moves {move_plans[0].moves[0][0]}" if move_plans else ""),
            ),
        ),
        why="Which VMs stand on the datastores is ours, see Limits; that the search prefers one move is not built in.",
    )


def _plan_words(target: str, plan: MovePlan) -> str:
    return f"{target}: {plan.move_count} move{'s' * (plan.move_count != 1)}, {plan.copied:.0f} GB"
