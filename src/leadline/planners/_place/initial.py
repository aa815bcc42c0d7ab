"""Initial placement: where units go, and what moves before where none has the space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from leadline.planners._place.cluster import NEAR, DiskSet, StoreState

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.planners._place.cluster import Flags

# Judgement: they bound the search; the cheapest set of moves is rarely of larger groups or further targets.
GROUPS_MAX, SUBSETS_MAX, TARGETS_MAX, PLACES_MAX = 40, 100, 120, 8
ROUNDS_MAX = 50


@dataclass(frozen=True, slots=True)
class DiskMove:
    """A unit that goes to a datastore; ``source`` is -1 for what is new."""

    unit: DiskSet
    source: int
    target: int
    is_late: bool = False  # the target goes beyond the latency threshold

    @property
    def copied_gib(self) -> float:
        """What is copied from one datastore to another."""
        return self.unit.size_gib if self.source >= 0 else 0.0


@dataclass(slots=True)
class Placed:
    """Steps in order, what found no place, and the state then."""

    cluster: StoreState
    steps: list[DiskMove] = field(default_factory=list)
    failed: list[DiskSet] = field(default_factory=list)

    @property
    def answer_count(self) -> int:
        """How many of the disks that were asked for found a place; moves that come first do not count."""
        return sum(step.unit.kind != "prerequisite" for step in self.steps)

    @property
    def cost(self) -> tuple[float, float, float]:
        """GiB without a place, GiB moved first, load of the fullest datastore that takes something."""
        moved = sum(step.copied_gib for step in self.steps if step.unit.kind == "prerequisite")
        return sum(unit.size_gib for unit in self.failed), moved, worst_load(self)


def worst_load(placed: Placed) -> float:
    """Load of the fullest of the datastores that take something; 0 when none does."""
    targets = sorted({step.target for step in placed.steps})
    return float(placed.cluster.loads_with(DiskSet("", (), 0.0))[targets].max()) if targets else 0.0


def place_all(cluster: StoreState, units: Sequence[DiskSet], moves_max: int) -> Placed:
    """The cheaper of two tries: each unit to the emptiest datastore, and to the fullest that it fits on.

    The second is tried only when the first needs moves or finds no place.
    """
    ordered = sorted(units, key=lambda unit: (-unit.size_gib, unit.vm, unit.labels))
    spread = improved(_tried(cluster.copied(), ordered, moves_max, is_packed=False))
    if spread.cost[:2] == (0.0, 0.0):
        return spread
    packed = _tried(cluster.copied(), ordered, moves_max, is_packed=True)
    return min(spread, packed, key=lambda placed: placed.cost)


def _tried(cluster: StoreState, units: Sequence[DiskSet], moves_max: int, *, is_packed: bool) -> Placed:
    placed = Placed(cluster)
    for unit in units:
        source = cluster.at[unit.ids[0]] if unit.ids else -1
        target = choice(cluster, unit, is_packed=is_packed)
        if target is None:
            moves = room_for(cluster, unit, moves_max)
            if moves is None:
                placed.failed.append(unit)
                continue
            target, before = moves
            for group, place in before:
                placed.steps.append(DiskMove(group, target, place))
                cluster.put(group, place)
        is_late = bool(cluster.latency_ms(unit.load)[target] > cluster.latency_max_ms)
        placed.steps.append(DiskMove(cluster.put(unit, target), source, target, is_late))
    return placed


def choice(cluster: StoreState, unit: DiskSet, *, is_packed: bool = False) -> int | None:
    """The datastore a unit fits on; beyond the latency threshold only when all with the space are."""
    flags = cluster.fits(unit)
    if not flags.any():
        flags = cluster.fits(unit, is_strict=False)
        if not flags.any():
            return None
    loads = cluster.loads_with(unit)
    return int(np.argmax(np.where(flags, loads, -np.inf)) if is_packed else np.argmin(np.where(flags, loads, np.inf)))


Moves = tuple[tuple[DiskSet, int], ...]


def room_for(cluster: StoreState, unit: DiskSet, moves_max: int) -> tuple[int, Moves] | None:
    """Return a target and the moves that must come first, fewest GiB copied; None without room after ``moves_max``."""
    short = unit.size_gib - (cluster.limit_gib - cluster.used_gib)
    flags = cluster.allowed(unit) & (cluster.limit_gib + NEAR >= unit.size_gib)
    flags &= ~(cluster.base_ms > cluster.latency_max_ms)
    best: tuple[float, int, int, Moves] | None = None
    order = [int(store) for store in np.argsort(short, kind="stable") if flags[store]]
    for target in order[:TARGETS_MAX]:
        if best is not None and short[target] > best[0] + NEAR:
            break  # nothing cheaper than what it is short of
        cheapest = _cheapest(cluster, unit, target, moves_max, np.inf if best is None else best[0])
        if cheapest is not None and (best is None or (cheapest[0], len(cheapest[1])) < best[:2]):
            best = (cheapest[0], len(cheapest[1]), target, cheapest[1])
    return None if best is None else (best[2], best[3])


def alternatives(cluster: StoreState, unit: DiskSet, moves_max: int) -> dict[int, tuple[float, Moves]]:
    """The cheapest moves that make room on each datastore, where there are any."""
    flags = cluster.allowed(unit)
    cheapest = {int(store): _cheapest(cluster, unit, int(store), moves_max, np.inf) for store in np.flatnonzero(flags)}
    return {store: moves for store, moves in cheapest.items() if moves is not None}


def _cheapest(
    cluster: StoreState, unit: DiskSet, target: int, moves_max: int, copied_max: float
) -> tuple[float, Moves] | None:
    free = cluster.limit_gib - cluster.used_gib
    short = float(unit.size_gib - free[target])
    elsewhere = np.where(cluster.usable, free, -np.inf)
    elsewhere[target] = -np.inf
    room = np.cumsum(np.sort(elsewhere)[::-1][:moves_max].clip(min=0.0))  # of the 1, 2, ... emptiest
    if not len(room):
        return None
    groups = [group for group in cluster.groups(target, "prerequisite") if group.vm != unit.vm]
    groups = [group for group in groups if group.size_gib <= room[0] + NEAR]
    groups = sorted(groups, key=lambda group: (abs(group.size_gib - short), group.vm))[:GROUPS_MAX]
    sizes = np.array([group.size_gib for group in groups])
    subsets: list[tuple[float, int, tuple[int, ...]]] = []
    for count in range(1, min(moves_max, len(groups)) + 1):
        if np.sort(sizes)[-count:].sum() < short - NEAR:
            continue
        picks = _picks(len(groups), count)
        sums = sizes[picks].sum(axis=1)
        kept = np.flatnonzero((sums >= short - NEAR) & (sums <= min(copied_max, room[count - 1]) + NEAR))
        kept = kept[np.argsort(sums[kept], kind="stable")][:SUBSETS_MAX]
        subsets += [(float(sums[row]), count, tuple(int(position) for position in picks[row])) for row in kept]
    flags: dict[int, Flags] = {}
    for copied, _, picked in sorted(subsets)[:SUBSETS_MAX]:
        for row in picked:
            if row not in flags:
                flags[row] = cluster.fits(groups[row])
        if not all(flags[row].any() for row in picked):
            continue
        rows = sorted(picked, key=lambda row: -groups[row].size_gib)
        places = _places(cluster, [(groups[row], flags[row]) for row in rows], {})
        if places is not None:
            return copied, tuple((groups[row], place) for row, place in zip(rows, places, strict=True))
    return None


@cache
def _picks(group_count: int, count: int) -> NDArray[np.int64]:
    """Every choice of so many groups, [choices, count]."""
    return np.array(list(combinations(range(group_count), count)), dtype=np.int64)


def _places(
    cluster: StoreState, moved: Sequence[tuple[DiskSet, Flags]], taken: dict[int, list[DiskSet]]
) -> tuple[int, ...] | None:
    """A datastore for each; of k units the k emptiest suffice where only space counts."""
    if not moved:
        return ()
    unit, fits = moved[0]
    flags = fits.copy()
    free = cluster.limit_gib - cluster.used_gib
    for store, units in taken.items():
        free[store] -= sum(other.size_gib for other in units)
        load = unit.load + sum(other.load for other in units)
        late = cluster.base_ms[store] + cluster.slope_ms[store] * (cluster.outstanding[store] + load)
        vms = {other.vm for other in units}
        clash = any(unit.vm in rule and vms & (rule - {unit.vm}) for rule in cluster.rules)
        if late > cluster.latency_max_ms or clash or (unit.vm in vms and unit.vm in cluster.split):
            flags[store] = False
    flags &= free + NEAR >= unit.size_gib
    rows = np.flatnonzero(flags)
    for store in rows[np.argsort(-free[rows], kind="stable")][:PLACES_MAX]:
        place = int(store)
        rest = _places(cluster, moved[1:], {**taken, place: [*taken.get(place, []), unit]})
        if rest is not None:
            return (place, *rest)
    return None


def improved(placed: Placed) -> Placed:
    """Move or exchange units so that the fullest target is less full; return the placement.

    Only where all is new and nothing moves first: then steps fit in any order.
    """
    if any(step.source >= 0 for step in placed.steps):
        return placed
    for _ in range(ROUNDS_MAX):
        if not _relieved(placed):
            break
    return placed


def _relieved(placed: Placed) -> bool:
    worst = worst_load(placed)
    loads = placed.cluster.loads_with(DiskSet("", (), 0.0))
    for row, step in enumerate(placed.steps):
        if loads[step.target] < worst - NEAR:
            continue
        target = choice(placed.cluster, step.unit)
        if target is not None and placed.cluster.loads_with(step.unit)[target] < worst - NEAR:
            _moved(placed, row, target)
            return True
        for other in range(len(placed.steps)):
            if placed.steps[other].target != step.target and _swapped(placed, row, other, worst):
                return True
    return False


def _moved(placed: Placed, row: int, target: int) -> None:
    step = placed.steps[row]
    placed.cluster.put(step.unit, target)
    late = bool(placed.cluster.latency_ms()[target] > placed.cluster.latency_max_ms)
    placed.steps[row] = DiskMove(step.unit, step.source, target, late)


def _swapped(placed: Placed, row: int, other: int, worst: float) -> bool:
    """Whether two units changed places, and both datastores are below the worst load then."""
    one, two, cluster = placed.steps[row], placed.steps[other], placed.cluster
    if one.unit.size_gib <= two.unit.size_gib and one.unit.load <= two.unit.load:
        return False
    _moved(placed, row, two.target)
    _moved(placed, other, one.target)
    loads = cluster.loads_with(DiskSet("", (), 0.0))
    places = [one.target, two.target]
    bad = any(place in cluster.forbidden(step.unit) for step, place in zip((one, two), reversed(places), strict=True))
    bad |= bool((cluster.used_gib[places] > cluster.limit_gib[places] + NEAR).any())
    if not bad and bool(cluster.usable[places].all()) and loads[places].max() < worst - NEAR:
        return True
    _moved(placed, row, one.target)
    _moved(placed, other, two.target)
    return False
