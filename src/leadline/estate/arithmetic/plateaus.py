"""Plateaus: spans in which a rate stays at a ceiling while the latency behind it is high.

More is asked for than is let through, so operations queue: by Little's law the latency is the queue's length divided by
the rate, and it is the queue that varies, not the rate. That shape is a limit, or a device at its own limit; what else
was measured must tell the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.finding import Window
from leadline.core.statistics.rows import median_of_sorted
from leadline.estate.derived.disks import MS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

CANDIDATE_COUNT_MAX = 4  # ceilings tried; a disk with more levels than that has no ceiling
SAMPLE_COUNT_MIN = 6  # of a plateau, a minute of samples every ten seconds: fewer are flat by chance
OUTSIDE_COUNT_MIN = 3  # samples that make a baseline
GAP_S = 10.0  # a plateau may be left for so long without being over,
GAP_COUNT = 2  # or for so many samples
ABOVE_SHARE_MAX = 0.05  # of samples that exceed a ceiling, or it is none
OWN_RATE_SHARE_MAX = 0.5  # of quick samples outside that have the ceiling's rate, or it is the load's own steady rate


@dataclass(frozen=True, slots=True)
class PlateauShape:
    """What counts as a plateau.

    Attributes:
        flat_share: half-width of the band around the ceiling, as a share of it.
        held_share: share of a plateau's samples that must lie in the band.
        duration_s: least time in the band.
        latency_ms_min: latency must be above this to count as slow.
        latency_factor: latency must be above so many times the latency outside.
        queue_min: operations that must be under way on average (rate x latency) for more to be asked for than is let
            through; a little less than 1, as one synchronous writer keeps just about one under way.
    """

    flat_share: float
    held_share: float
    duration_s: float
    latency_ms_min: float
    latency_factor: float
    queue_min: float = 0.8


@dataclass(frozen=True, slots=True, eq=False)
class Plateau:
    """A ceiling and where it held.

    Attributes:
        ceiling_per_s: mean rate at the ceiling.
        spread_pct: standard deviation of the rate in per cent of the ceiling.
        at_ceiling: bool [n], samples at the ceiling.
        inside: bool [n], every sample of the windows.
        held_s: time at the ceiling.
        latency_ms: median at the ceiling.
        outside_latency_ms: median of loaded samples outside; NaN when there are too few.
        dispersion: variance of the number of operations per sample over its mean; 1 for independent arrivals.
        queue: operations under way at the ceiling (Little's law: operations per second x latency).
    """

    ceiling_per_s: float
    spread_pct: float
    at_ceiling: NDArray[np.bool_]
    inside: NDArray[np.bool_]
    windows: tuple[Window, ...]
    held_s: float
    latency_ms: float
    outside_latency_ms: float
    dispersion: float
    queue: float


@dataclass(frozen=True, eq=False)
class DiskLoad:
    """Rate [n] and latency [n] in ms of one disk, NaN not measured; start and end [n] of its samples.

    Attributes:
        rate: what may be held at a ceiling: operations per second, or MiB/s.
        operations: per second, where the rate is something else or was smoothed; they tell how many are under way.
        one: what one operation is of the rate.
    """

    rate: NDArray[np.floating[Any]]
    latency_ms: NDArray[np.floating[Any]]
    starts_ns: NDArray[np.int64]
    ends_ns: NDArray[np.int64]
    operations: NDArray[np.floating[Any]] | None = None
    one: float = 1.0

    @cached_property
    def sample_ns(self) -> float:
        """The usual length of a sample."""
        return median_of_sorted(np.sort(self.ends_ns - self.starts_ns))

    def loaded(self) -> NDArray[np.bool_]:
        """Samples [n] with any I/O."""
        with np.errstate(invalid="ignore"):
            loaded: NDArray[np.bool_] = np.isfinite(self.latency_ms) & (self.rate > 0)
        return loaded

    def queued(self, shape: PlateauShape) -> NDArray[np.bool_]:
        """Samples [n] that are slow and have enough operations under way (Little's law)."""
        with np.errstate(invalid="ignore"):
            slow = self.latency_ms > shape.latency_ms_min
            counted = self.rate if self.operations is None else self.operations
            under_way = counted * self.latency_ms > shape.queue_min * MS_PER_S
        queued: NDArray[np.bool_] = self.loaded() & slow & under_way
        return queued


def find_plateau(load: DiskLoad, shape: PlateauShape, ceiling_per_s: float | None = None) -> Plateau | None:
    """The plateau of a disk with the highest latency, or None.

    Args:
        load: of one disk.
        shape: what counts.
        ceiling_per_s: look only at this ceiling (a known limit) instead of estimating it from the densest rates.

    Returns:
        A plateau whose latency is above ``latency_factor`` times that outside it, or which has no outside.
    """
    queued = load.queued(shape)
    if ceiling_per_s is not None:
        return _plateau_at(load, shape, ceiling_per_s, queued)
    plateaus: list[Plateau] = []
    left = queued.copy()
    for _ in range(CANDIDATE_COUNT_MAX):
        if np.count_nonzero(left) < SAMPLE_COUNT_MIN:
            break
        ceiling = _densest(load.rate[left], shape.flat_share)
        plateau = _plateau_at(load, shape, ceiling, queued)
        if plateau is not None:
            plateaus.append(plateau)
        left &= np.abs(load.rate - ceiling) > shape.flat_share * ceiling
    return max(plateaus, key=lambda plateau: plateau.latency_ms, default=None)


def _densest(rates: NDArray[np.floating[Any]], flat_share: float) -> float:
    """The middle of the band of relative half-width ``flat_share`` that holds most rates: their mode."""
    ordered = np.sort(rates)
    widest = ordered * (1 + flat_share) / (1 - flat_share)
    counts = np.searchsorted(ordered, widest, side="right") - np.arange(len(ordered))
    first = int(np.argmax(counts))
    return median_of_sorted(ordered[first : first + int(counts[first])])


def _plateau_at(load: DiskLoad, shape: PlateauShape, ceiling: float, queued: NDArray[np.bool_]) -> Plateau | None:
    # A sample may hold one operation more or less than the ceiling lets through: much of a low one.
    one_operation = load.one * 1e9 / load.sample_ns if load.sample_ns > 0 else 0.0
    width = max(shape.flat_share * ceiling, one_operation) * (1 + 1e-9)
    with np.errstate(invalid="ignore"):
        in_band = np.abs(load.rate - ceiling) <= width
        above = load.rate > ceiling + width
    loaded = load.loaded()
    at_ceiling = np.zeros(len(load.rate), dtype=bool)
    inside = np.zeros(len(load.rate), dtype=bool)
    windows = []
    for first, last in _runs(load, queued & in_band, shape.duration_s):
        span = slice(first, last + 1)
        at = queued[span] & in_band[span]
        seconds = float((load.ends_ns[span] - load.starts_ns[span])[at].sum()) / 1e9
        known = np.count_nonzero(loaded[span])
        long_enough = seconds + 1e-6 >= shape.duration_s and np.count_nonzero(at) >= SAMPLE_COUNT_MIN
        steady = np.count_nonzero(at) >= shape.held_share * known
        if long_enough and steady and np.count_nonzero(above[span]) <= ABOVE_SHARE_MAX * known:
            at_ceiling[span] = at
            inside[span] = True
            windows.append(Window(int(load.starts_ns[first]), int(load.ends_ns[last])))
    if not windows:
        return None
    return _measured(load, shape, at_ceiling, inside, tuple(windows))


def _measured(
    load: DiskLoad,
    shape: PlateauShape,
    at_ceiling: NDArray[np.bool_],
    inside: NDArray[np.bool_],
    windows: tuple[Window, ...],
) -> Plateau | None:
    latency = median_of_sorted(np.sort(load.latency_ms[at_ceiling]))
    ceiling = float(np.mean(load.rate[at_ceiling]))
    outside = load.loaded() & ~inside
    baseline = float("nan")
    if np.count_nonzero(outside) >= OUTSIDE_COUNT_MIN:
        baseline = median_of_sorted(np.sort(load.latency_ms[outside]))
        if latency <= shape.latency_factor * baseline:
            return None
        at_rate = outside & (np.abs(load.rate - ceiling) <= shape.flat_share * ceiling)
        quick = np.count_nonzero(at_rate & (load.latency_ms * shape.latency_factor < latency))
        if quick > OWN_RATE_SHARE_MAX * np.count_nonzero(outside):
            return None
    seconds = (load.ends_ns - load.starts_ns)[at_ceiling] / 1e9
    deviation = float(np.std(load.rate[at_ceiling]))
    counted = load.rate if load.operations is None else load.operations
    loaded = counted[inside & load.loaded()]
    quartiles = np.percentile(loaded, [25, 75])
    # 1.349 sigma lie between a normal's quartiles.
    sigma = max(float(quartiles[1] - quartiles[0]) / 1.349, float(np.std(counted[at_ceiling])))
    return Plateau(
        ceiling_per_s=ceiling,
        spread_pct=100.0 * deviation / ceiling,
        at_ceiling=at_ceiling,
        inside=inside,
        windows=windows,
        held_s=float(seconds.sum()),
        latency_ms=latency,
        outside_latency_ms=baseline,
        dispersion=sigma**2 * median_of_sorted(np.sort(seconds)) / float(np.mean(counted[at_ceiling])),
        queue=float(np.mean(counted[at_ceiling])) * latency / MS_PER_S,
    )


def _runs(load: DiskLoad, met: NDArray[np.bool_], duration_s: float) -> list[tuple[int, int]]:
    """First and last sample of runs in which a condition is met, gaps of up to `GAP_S` or `GAP_COUNT` samples joined.

    Runs that are shorter than ``duration_s`` or `SAMPLE_COUNT_MIN` from end to end are left out.
    """
    at = np.flatnonzero(met)
    if not len(at):
        return []
    gaps_s = (load.starts_ns[at[1:]] - load.ends_ns[at[:-1]]) / 1e9
    breaks = np.flatnonzero((gaps_s > GAP_S) & (np.diff(at) - 1 > GAP_COUNT))
    firsts, lasts = at[np.concatenate(([0], breaks + 1))], at[np.concatenate((breaks, [len(at) - 1]))]
    spans_s = (load.ends_ns[lasts] - load.starts_ns[firsts]) / 1e9
    long_enough = (spans_s + 1e-6 >= duration_s) & (lasts - firsts + 1 >= SAMPLE_COUNT_MIN)
    return list(zip(firsts[long_enough].tolist(), lasts[long_enough].tolist(), strict=True))
