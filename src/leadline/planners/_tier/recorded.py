"""The demand of a disk as a recording has it: rate, size and latency of each interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline.core.model.errors import UsageError
from leadline.estate.derived.recorded_loads import (
    DISK_KINDS,
    OPERATIONS,
    THROUGHPUT,
    latencies,
    number,
    series_of,
    window,
)
from leadline.planners._tier.shaping import DiskDemand

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture, SeriesGroup

Floats = NDArray[np.float64]
BLOCK_BYTES = 8192.0  # where no throughput was recorded


@dataclass(frozen=True, slots=True, eq=False)
class RecordedDemand:
    """A demand, and the words that say of which disk, when, and in which recordings."""

    demand: DiskDemand
    origin: str


def recorded_demand(capture: Capture, name: str) -> RecordedDemand | None:
    """The demand of the busiest disk, or of the one that is named; None where no disk's operations were recorded.

    Raises:
        UsageError: no disk of that name was recorded.
    """
    groups = series_of(capture, OPERATIONS, *DISK_KINDS)
    rows = [
        (float(np.nansum(group.values[row])) * group.interval_s, group, row)
        for group in groups
        for row, entity in enumerate(group.entities)
        if len(group.times_ns) and (not name or name in {entity.name, entity.label(), str(entity)})
    ]
    if not rows and name and groups:
        names = sorted({entity.label() for group in groups for entity in group.entities})
        raise UsageError(
            f"disk {name}",
            found="no disk of that name with operations per second",
            expected=f"one of {', '.join(names[:8])}",
            advice="`leadline show` lists what the recordings hold.",
        )
    if not rows:
        return None
    _, group, row = max(rows, key=lambda one: one[0])
    return _of(capture, replace(group.take([row])))


def _of(capture: Capture, group: SeriesGroup) -> RecordedDemand | None:
    rate = group.values[0].astype(np.float64)
    waits = latencies(capture, group)
    latency = np.full(len(rate), np.nan) if waits is None else np.asarray(waits[0], dtype=np.float64)
    moved = _moved(capture, group)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(rate > 0, moved * 1024.0**2 / rate, np.nan)
    known = np.isfinite(rate)
    if not known.any() or not float(rate[known].sum()) > 0.0:
        return None
    usual_ms = _weighted(latency, rate) or 1.0
    usual_size = _weighted(size, rate) or BLOCK_BYTES
    seconds = np.full(len(rate), group.interval_s if np.isfinite(group.interval_s) else 1.0)
    demand = DiskDemand(
        seconds[known],
        rate[known],
        np.where(np.isfinite(size), size, usual_size)[known],
        np.where(np.isfinite(latency) & (latency > 0), latency, usual_ms)[known],
    )
    words = [f"{group.entities[0].label()}: {number(float(rate[known].mean()))}/s on average"]
    words.append(f"{usual_size / 1024.0:.3g} KiB" if np.isfinite(size).any() else "size not recorded, 8 KiB taken")
    words.append(f"{usual_ms:.3g} ms" if np.isfinite(latency).any() else "latency not recorded, 1 ms taken")
    return RecordedDemand(demand, f"{', '.join(words)}; {window(capture, [group])}")


def _moved(capture: Capture, group: SeriesGroup) -> Floats:
    """MiB per second at the times of the group, [n]; NaN where it was not recorded."""
    entity = group.entities[0]
    for throughput in series_of(capture, THROUGHPUT, entity.kind):
        row = throughput.row(entity)
        if row is not None and len(row) == len(group.times_ns):
            return np.asarray(row, dtype=np.float64)
    return np.full(len(group.times_ns), np.nan)


def _weighted(values: Floats, weights: Floats) -> float:
    """The mean by operations; 0 where nothing was measured."""
    known = np.isfinite(values) & np.isfinite(weights) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else 0.0
