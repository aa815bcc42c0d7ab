"""Moves that make room for something new: every plan, by search of all of them.

For small clusters only: the number of plans grows with VMs to the power of the moves. `leadline plan place` has the
search for large ones, and is tested against this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product

Holdings = Mapping[str, Mapping[str, float]]  # what each datastore holds: sizes by name, all of one unit


@dataclass(frozen=True, slots=True, order=True)
class MovePlan:
    """Where the new VM goes and what moves before; in the order of cost.

    ``copied`` is in the unit of the sizes; ``moves`` are pairs of what moves and where to.
    """

    copied: float
    move_count: int
    target: str
    moves: tuple[tuple[str, str], ...]


def every_plan(holdings: Holdings, free: Mapping[str, float], new: float, moves_max: int) -> Iterator[MovePlan]:
    """Every plan of up to so many moves, each away from the new one's datastore to one with space for it.

    Args:
        holdings: what each datastore holds.
        free: space left below the threshold of each; may be negative.
        new: size of what is to be placed.
        moves_max: moves at most.
    """
    for target, sizes in holdings.items():
        others = [name for name in holdings if name != target]
        for count in range(moves_max + 1):
            for moved in combinations(sizes, count):
                copied = sum(sizes[name] for name in moved)
                if free[target] + copied < new:
                    continue
                for places in product(others, repeat=count):
                    if _fits(sizes, moved, places, free):
                        yield MovePlan(copied, count, target, tuple(zip(moved, places, strict=True)))


def _fits(
    sizes: Mapping[str, float], moved: tuple[str, ...], places: tuple[str, ...], free: Mapping[str, float]
) -> bool:
    arrived = dict.fromkeys(free, 0.0)
    for name, place in zip(moved, places, strict=True):
        arrived[place] += sizes[name]
    return all(arrived[name] <= free[name] for name in free if arrived[name])
