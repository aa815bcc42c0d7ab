"""Balancing: moves off datastores beyond a threshold, where the benefit is larger than the cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leadline.planners._place.cluster import NEAR, DiskSet, StoreState
from leadline.planners._place.initial import DiskMove


@dataclass(frozen=True, slots=True)
class Costs:
    """What a move costs and how long its benefit lasts.

    Attributes:
        copy_mib_per_s: rate of copying.
        copy_outstanding: operations in flight of the copy, at both ends.
        horizon_s: how long the workload stays as it is.
    """

    copy_mib_per_s: float
    copy_outstanding: float
    horizon_s: float


@dataclass(frozen=True, slots=True)
class Balanced:
    """A move, and why: benefit and cost in operations x ms x s; NaN for a move for space."""

    step: DiskMove
    why: str
    benefit: float
    cost: float


def balanced(cluster: StoreState, moves_max: int, costs: Costs) -> list[Balanced]:
    """Moves in order, made on the cluster: first for space, then for latency."""
    moves: list[Balanced] = []
    while len(moves) < moves_max:
        move = _for_space(cluster) or _for_latency(cluster, costs)
        if move is None:
            break
        cluster.put(move.step.unit, move.step.target)
        moves.append(move)
    return moves


def _for_space(cluster: StoreState) -> Balanced | None:
    """The smallest unit that brings the fullest datastore below its threshold, or else the largest that fits."""
    over = cluster.used_gib - cluster.limit_gib
    for store in np.argsort(-over, kind="stable"):
        if over[store] <= NEAR:
            return None
        groups = sorted(cluster.groups(int(store), "balance"), key=lambda group: group.size_gib)
        enough = [group for group in groups if group.size_gib >= over[store] - NEAR]
        for unit in [*enough, *reversed(groups[: len(groups) - len(enough)])]:
            flags = cluster.fits(unit)
            if flags.any():
                target = int(np.argmin(np.where(flags, cluster.loads_with(unit), np.inf)))
                return Balanced(DiskMove(unit, int(store), target), "space", float("nan"), float("nan"))
    return None


def _for_latency(cluster: StoreState, costs: Costs) -> Balanced | None:
    """The move off the slowest datastore with the largest benefit less cost, if that is positive."""
    latency = cluster.latency_ms()
    for store in np.argsort(-np.nan_to_num(latency, nan=-1.0), kind="stable"):
        if not latency[store] > cluster.latency_max_ms:
            return None
        best: Balanced | None = None
        for unit in cluster.groups(int(store), "balance"):
            move = _best_move(cluster, unit, int(store), costs) if unit.load > 0 else None
            if move and (best is None or move.benefit - move.cost > best.benefit - best.cost):
                best = move
        if best is not None:
            return best
    return None


def _best_move(cluster: StoreState, unit: DiskSet, store: int, costs: Costs) -> Balanced | None:
    flags = cluster.fits(unit) & np.isfinite(cluster.latency_ms())
    if not flags.any():
        return None
    waiting = cluster.outstanding * cluster.latency_ms()
    after = (cluster.outstanding + unit.load) * cluster.latency_ms(unit.load)
    left = (cluster.outstanding[store] - unit.load) * cluster.latency_ms(-unit.load)[store]
    benefit = (waiting[store] + waiting - left - after) * costs.horizon_s
    copying_s = unit.size_gib * 1024.0 / costs.copy_mib_per_s
    delayed = cluster.slope_ms * cluster.outstanding
    cost = copying_s * costs.copy_outstanding * (delayed[store] + delayed)
    net = np.where(flags, benefit - cost, -np.inf)
    target = int(np.argmax(net))
    if net[target] <= 0:
        return None
    return Balanced(DiskMove(unit, store, target), "latency", float(benefit[target]), float(cost[target]))
