"""What fixes of the processor (Meltdown, Spectre, MDS and later) add to the cores that a plan counts with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leadline.core.contracts.planner import Bend, Figure, Plan
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.kernel_entries import recorded_fix_cost
from leadline.estate.knowledge.cpu_fixes import CpuFixes, FixCost, cpu_fixes, fix_cost, with_missing

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity
    from leadline.planners._cpu.inputs import Cpu

STATED_MAX = 5  # guests whose fixes are stated one by one
_ASSUMED = CpuFixes({"meltdown": "Mitigation: PTI"}, {}, "")  # a processor that has no fix in hardware


@dataclass(frozen=True, slots=True)
class PlannedFixes:
    """What is added for fixes, and what is said of them; ``added`` is None where nothing is."""

    added: FixCost | None = None
    assumptions: tuple[str, ...] = ()
    bends: tuple[Bend, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def factor(self) -> float:
        """How many times the CPU measured is planned: what loses 25 % of throughput needs 1 / (1 - 25 %)."""
        return 1.0 if self.added is None else _times(self.added.high_pct)

    def stated(self, plan: Plan, cores: float | None) -> Plan:
        """Return the plan with what was added and why; ``cores`` are busy at peak without fixes, None if by VM."""
        figures = plan.figures
        if self.added is not None:
            figures = (*figures, _figure(self.added, cores))
        return replace(
            plan,
            figures=figures,
            assumptions=(*plan.assumptions, *self.assumptions),
            bends=(*plan.bends, *self.bends),
            evidence=(*plan.evidence, *self.evidence),
        )


def planned_fixes(inputs: Cpu, capture: Capture | None, *, is_recorded: bool) -> PlannedFixes:
    """Return what fixes add to a plan.

    Args:
        inputs: ``fixes`` says whether the load was measured with them.
        capture: may hold what guests' kernels say of their fixes.
        is_recorded: the load was recorded, and so measured with what is on now.
    """
    known = [] if capture is None else _known(capture)
    has_cost = any(cost is not None and fixes.on for _, fixes, cost in known)
    if inputs.fixes == "added" or (inputs.fixes == "auto" and has_cost and not is_recorded):
        return _added(inputs, known)
    return _included(known) if is_recorded or inputs.fixes == "included" else PlannedFixes(bends=_missing(known))


_Known = tuple["Entity", CpuFixes, FixCost | None]


def _known(capture: Capture) -> list[_Known]:
    """Guests whose fixes are known, with what all of them cost once they are on; the costliest first."""
    guests = []
    for guest in capture.inventory.of_kind(EntityKind.GUEST):
        fixes = cpu_fixes(capture.inventory, guest)
        if fixes is not None:
            guests.append((guest, fixes, recorded_fix_cost(capture, guest, with_missing(fixes))))
    return sorted(guests, key=lambda each: -each[2].high_pct if each[2] is not None else 0.0)


def _added(inputs: Cpu, known: list[_Known]) -> PlannedFixes:
    if not known:
        cost = fix_cost(_ASSUMED, database=True)
        note = "No facts say which fixes the processor needs: one without fixes in hardware is assumed. Record them in "
        note += "the guest: leadline facts -o facts.json"
        return PlannedFixes(cost, (_why(cost), note) if cost is not None else (note,))
    guest, fixes, cost = known[0]
    if cost is None:
        note = f"{guest.name} needs no fix of the processor that has a published cost: nothing was added."
        return PlannedFixes(assumptions=(note,), evidence=_evidence(known))
    notes = [_why(cost)]
    if inputs.fixes == "auto":
        notes.append(
            f"Fixes are on in {guest.name}, and the cores busy are taken as measured without them. If they were "
            "measured with them, set fixes: included"
        )
    if fixes.not_measured:
        notes.append(f"No published figure covers the fixes of {', '.join(fixes.not_measured)}.")
    return PlannedFixes(cost, tuple(notes), evidence=_evidence(known))


def _included(known: list[_Known]) -> PlannedFixes:
    names = [guest.name for guest, fixes, _ in known if fixes.on]
    if not names:
        return PlannedFixes(bends=_missing(known), evidence=_evidence(known))
    note = f"The load was measured with the fixes that are on in {', '.join(names[:STATED_MAX])}: nothing was added."
    return PlannedFixes(assumptions=(note,), bends=_missing(known), evidence=_evidence(known))


def _missing(known: list[_Known]) -> tuple[Bend, ...]:
    bends = []
    for guest, fixes, cost in known[:STATED_MAX]:
        if fixes.missing and cost is not None:
            names = ", ".join(sorted(fixes.missing))
            cost_text = f"{guest.name} lacks those of {names}: all fixes together take {cost} of throughput by "
            cost_text += "published figures; plan with fixes: added"
            bends.append(Bend("fixes of the processor are on", cost_text, "; ".join(cost.sources)))
    return tuple(bends)


def _why(cost: FixCost) -> str:
    return f"Fixes of the processor take {cost} of throughput: {cost.reason}. The larger figure is planned."


def _figure(cost: FixCost, cores: float | None) -> Figure:
    low, high = _times(cost.low_pct), _times(cost.high_pct)
    ways = f"/ (1 - {cost.low_pct:.2g} %) to / (1 - {cost.high_pct:.2g} %)"
    sources = "; ".join(cost.sources)
    if cores is None:
        return Figure("CPU fixes, times the CPU", f"{low:.3g} to {high:.3g}", "", f"1 {ways}", sources)
    added = f"{cores * (low - 1.0):.3g} to {cores * (high - 1.0):.3g}"
    return Figure("CPU fixes add", added, "cores", f"{cores:.4g} {ways}, less {cores:.4g}", sources)


def _times(pct: float) -> float:
    return 1.0 / (1.0 - pct / 100.0)


def _evidence(known: list[_Known]) -> tuple[str, ...]:
    texts = []
    for guest, fixes, _ in known[:STATED_MAX]:
        states = [f"{name} {words}" for name, words in sorted({**fixes.on, **fixes.missing}.items())]
        texts.append(f"{guest.name}: {'; '.join(states) or 'no vulnerability of the processor'}, {fixes.source}")
    return tuple(texts)
