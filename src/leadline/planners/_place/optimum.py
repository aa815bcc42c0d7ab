"""The best placement without moves, to compare with: load of the fullest datastore that takes something."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations, product

import numpy as np

from leadline.planners._place.cluster import DiskSet, StoreState

TRIES_MAX = 200_000
SCALE = 1_000_000  # CP-SAT counts in integers


def has_ortools() -> bool:
    """Whether OR-tools is installed."""
    return find_spec("ortools") is not None


def clashing(cluster: StoreState, units: Sequence[DiskSet]) -> list[tuple[int, int]]:
    """Pairs of units that a rule keeps off one datastore."""
    return [
        (i, j)
        for (i, one), (j, other) in combinations(enumerate(units), 2)
        if (one.vm == other.vm and one.vm in cluster.split)
        or (one.vm != other.vm and any({one.vm, other.vm} <= rule for rule in cluster.rules))
    ]


def exhaustive(cluster: StoreState, units: Sequence[DiskSet]) -> float:
    """The least load by search of every placement; NaN when none fits or there are too many."""
    if len(cluster.names) ** len(units) > TRIES_MAX:
        return float("nan")
    apart = clashing(cluster, units)
    allowed = [cluster.allowed(unit) for unit in units]
    sizes = np.array([unit.size_gib for unit in units])
    loads = np.array([unit.load for unit in units])
    best = float("nan")
    for places in product(range(len(cluster.names)), repeat=len(units)):
        rows = np.array(places)
        if not all(flags[place] for flags, place in zip(allowed, places, strict=True)):
            continue
        if any(places[one] == places[other] for one, other in apart):
            continue
        space = (cluster.used_gib + np.bincount(rows, sizes, len(cluster.names)))[rows] / cluster.limit_gib[rows]
        late = (
            cluster.latency_ms(np.bincount(rows, loads, len(cluster.names)).astype(float))[rows]
            / cluster.latency_max_ms
        )
        worst = float(np.fmax(space, late).max())
        if worst <= 1 + 1e-9 and not worst >= best:
            best = worst
    return best


def by_ortools(cluster: StoreState, units: Sequence[DiskSet], seconds: float = 30.0) -> float:
    """The least load by CP-SAT; NaN when none fits or no optimum is proven in time.

    Raises:
        ModuleNotFoundError: OR-tools is not installed.
    """
    cp_model = import_module("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    stores = range(len(cluster.names))
    allowed = [cluster.allowed(unit) for unit in units]
    takes = [[model.new_bool_var("") for _ in stores] for _ in units]
    worst = model.new_int_var(0, SCALE, "worst")
    for row, flags in zip(takes, allowed, strict=True):
        model.add_exactly_one(row)
        for store in stores:
            if not flags[store]:
                model.add(row[store] == 0)
    for one, other in clashing(cluster, units):
        for store in stores:
            model.add(takes[one][store] + takes[other][store] <= 1)
    idle = cluster.latency_ms() / cluster.latency_max_ms
    for store in stores:
        takers = [row[store] for row in takes]
        is_used = model.new_bool_var("")
        model.add_max_equality(is_used, takers)
        limit = cluster.limit_gib[store]
        space = [round(SCALE * unit.size_gib / limit) for unit in units]
        start = round(SCALE * cluster.used_gib[store] / limit)
        model.add(start + sum(map(_times, space, takers)) <= worst).only_enforce_if(is_used)
        if np.isfinite(idle[store]):
            slope = cluster.slope_ms[store] / cluster.latency_max_ms
            late = [round(SCALE * slope * unit.load) for unit in units]
            model.add(round(SCALE * idle[store]) + sum(map(_times, late, takers)) <= worst).only_enforce_if(is_used)
    model.minimize(worst)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    return float(solver.objective_value) / SCALE if status == cp_model.OPTIMAL else float("nan")


def _times(factor, variable):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - types of OR-tools
    return factor * variable


def optimum(cluster: StoreState, units: Sequence[DiskSet]) -> tuple[float, str]:
    """The least load and how it was found; NaN when neither way has it."""
    least = exhaustive(cluster, units)
    if np.isfinite(least):
        return least, "every placement tried"
    if has_ortools():
        return by_ortools(cluster, units), "OR-tools CP-SAT"
    return float("nan"), "not measured: too many placements to try, and OR-tools is not installed"
