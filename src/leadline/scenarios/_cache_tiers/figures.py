"""What the simulator measures of cache tiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from leadline.core.contracts.scenario import Measure, Series
from leadline.core.model.result import Tick
from leadline.scenarios._simulator import Column, Figures, Number, Outcome

MIB, GIB = 2.0**20, 2.0**30


class GroupFigures(Figures):
    """A group by window, shares and bytes per second; ``slowed``: when its buffer first slowed writes, s."""

    fill: Column
    inflow: Column
    destage: Column
    congestion: Column
    read_busy: Column
    slowed: Number


class LoadFigures(Figures):
    """A load by window: requests and bytes per second, and requests inside."""

    reads: Column
    writes: Column
    bytes: Column
    inside: Column


class Rebuild(Figures):
    """Bytes to write again, and when, s."""

    failed: float
    lost: float
    began: Number
    ended: Number


class TierFigures(Outcome):
    """What the simulator measured."""

    groups: tuple[GroupFigures, ...]
    loads: tuple[LoadFigures, ...]
    rebuilds: tuple[Rebuild, ...]


def group_series(name: str, figures: GroupFigures, warm: int) -> Iterator[Series]:
    """Fill, congestion and traffic of a group over the measured time."""
    for key, values in (("fill", figures.fill), ("congestion", figures.congestion)):
        yield Series(name, f"{key}_pct", "pct", tuple((100.0 * values[warm:]).tolist()))
    for key, values in (("inflow", figures.inflow), ("destage", figures.destage)):
        yield Series(name, f"{key}_mib_per_s", "mib_per_s", tuple((values[warm:] / MIB).tolist()))


def rebuild_measures(name: str, rebuild: Rebuild) -> Iterator[Measure]:
    """How much a failure took away, and how long it stayed away."""
    yield Measure(name, "lost_gib", rebuild.lost / GIB, "gib")
    yield Measure(name, "waited_s", rebuild.began - rebuild.failed, "s")
    yield Measure(name, "rebuild_s", rebuild.ended - rebuild.began, "s")


def ticks_of(loads: Sequence[LoadFigures], part: slice, window_s: float) -> tuple[Tick, ...]:
    """Windows of all loads together, as load tools report them."""
    rates = np.sum([load.reads + load.writes for load in loads], axis=0)[part]
    sizes = np.sum([load.bytes for load in loads], axis=0)[part]
    return tuple(Tick((n + 1) * window_s, float(rates[n]), float(sizes[n])) for n in range(len(rates)))
