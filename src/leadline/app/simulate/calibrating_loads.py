"""The loads of a recording: closed loop or open stream, its levels of load, and the windows to fit and to test with.

A closed loop keeps a number of requests outstanding and sends the next one when one completes. An open stream sends at
a rate that does not depend on completions. Windows of about the same load (requests outstanding of a loop, operations
per second of a stream) are one level. Every other window of a level is fitted; the others test the fit.

An arriving request of a loop of N sees the other N - 1. One of a stream at random sees as many as there are on average.

Source: Wolff, "Poisson arrivals see time averages" (Operations Research 30, 1982); Lavenberg and Reiser, "Stationary
state probabilities at arrival instants for closed queueing networks" (Journal of Applied Probability 17, 1980).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.core.model.entities import Entity
from leadline.core.statistics.resampling import RESAMPLE_COUNT, SAMPLE_COUNT_MIN, block_index

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Index = NDArray[np.intp]
BUSY_MIN = 1.0  # operations per second of a window that says something of a disk
BUSY_SHARE = 0.9  # Judgement: a loop is never idle; a few windows at its ends may be
LOOP_MIN = 0.5  # Judgement: what keeps less outstanding is idle for more than half of the time
STEADY_SHARE = 0.5  # Judgement: of what counts of arrivals at random vary; a load twice as steady keeps its number
CLOSED_SHARE = 0.7  # Judgement: of what outstanding would vary if rate and latency did so apart; a loop ties them
LOOP_NOISE = 0.03  # Judgement: a mean so little above a whole number is that number
THINK_NOISE = 0.01  # Judgement: of a loop's number; a tool prints two decimals of it
ONE_LOOP = 0.2  # Judgement: outstanding made by Little's law varies so much by chance; less than that is one load
ONE_RATE = 0.1  # Judgement: rates that differ by less, beyond what chance does, say nothing sure of a slope
LEVELS_MAX = 6
LEVEL_SPREAD = 0.08  # Judgement: coefficient of variation of the loads of a level, where chance does less
LEVEL_WINDOWS_MIN = 6  # Judgement: three to fit, three to judge by
SUMS_MAX = 1_000
_SEED = 1
_GRID = 120  # quantiles that levels are found on
_NORMAL_MEDIAN = 0.9099  # the median of a squared difference of two normal values of variance 1


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A disk by window, float64 [n] each: operations per second, bytes of one, mean latency in ms, outstanding.

    NaN is not measured. ``times_ns`` are ends of windows; ``part`` is the recording each is from. ``is_counted``:
    outstanding was counted by the tool, not made by Little's law.
    """

    entity: Entity
    times_ns: NDArray[np.int64]
    part: Index
    reads: Array
    writes: Array
    read_bytes: Array
    write_bytes: Array
    latency_ms: Array
    outstanding: Array
    is_counted: bool
    interval_s: float

    @property
    def rate(self) -> Array:
        """Operations per second."""
        return self.reads + self.writes

    @property
    def busy(self) -> Flags:
        """Windows that say something of the disk."""
        known = np.isfinite(self.rate) & np.isfinite(self.latency_ms) & np.isfinite(self.outstanding)
        return np.asarray(known & (self.rate >= BUSY_MIN) & (self.latency_ms > 0), dtype=bool)

    @property
    def whole(self) -> Flags:
        """Busy windows between busy windows of the same recording: a loop neither began nor ended in them."""
        busy, same = self.busy, np.diff(self.part) == 0
        before = np.concatenate([[False], busy[:-1] & same])
        after = np.concatenate([busy[1:] & same, [False]])
        return np.asarray(busy & before & after, dtype=bool)

    @property
    def is_closed(self) -> bool:
        """Whether outstanding stays: latency falls as the rate rises, or all is steadier than arrivals at random are.

        Steps from window to window count, so that a loop that is changed now and then is still one. Idle windows
        speak for open arrivals.
        """
        busy = self.busy
        within = self.whole if self.whole.sum() >= LEVEL_WINDOWS_MIN else busy
        span = busy[np.argmax(busy) : len(busy) - np.argmax(busy[::-1])]
        if not within.any() or span.mean() < BUSY_SHARE or self.outstanding[within].mean() < LOOP_MIN:
            return False
        rate, latency, outstanding = (of[within] for of in (self.rate, self.latency_ms, self.outstanding))
        apart = np.hypot(wobble(rate), wobble(latency))
        at_random = float(np.median(1.0 / np.sqrt(rate * self.interval_s)))
        return bool(wobble(outstanding) < max(CLOSED_SHARE * apart, STEADY_SHARE * at_random))


@dataclass(frozen=True, slots=True, eq=False)
class LoadLevel:
    """A load and its windows in the order of time: ``fitted`` are fitted, ``held_out`` test the fit.

    ``rate`` is per s, ``outstanding`` the mean; ``clients`` and ``think_s`` are those of a loop, 0 of a stream.
    """

    fitted: Index
    held_out: Index
    rate: float
    outstanding: float
    clients: int = 0
    think_s: float = 0.0

    @property
    def arriving(self) -> float:
        """Requests outstanding when one comes, that one included."""
        others = self.outstanding * (self.clients - 1) / self.clients if self.clients else self.outstanding
        return 1.0 + others

    @property
    def words(self) -> str:
        """The load, for people."""
        return f"{self.clients} outstanding" if self.clients else f"{self.rate:,.4g}/s"


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """What a disk was asked for: the levels from the least load, and whether they are one load but for chance."""

    is_closed: bool
    is_one: bool
    levels: tuple[LoadLevel, ...]

    @property
    def written(self) -> LoadLevel:
        """The level of a loop that a scenario gets: the one of most windows; of several the highest load."""
        return max(self.levels, key=lambda level: (len(level.fitted) + len(level.held_out), level.outstanding))


def loads_of(seen: Seen) -> Loads:
    """The levels of a disk that was busy in some windows."""
    closed, within = seen.is_closed, np.flatnonzero(seen.busy)
    if closed and seen.whole.sum() >= LEVEL_WINDOWS_MIN:
        within = np.flatnonzero(seen.whole)
    load = (seen.outstanding if closed else seen.rate)[within]
    chance = float(np.sqrt(np.mean(1.0 / (seen.rate[within] * seen.interval_s))))
    if closed:
        is_one, spread = variation(load) < ONE_LOOP, ONE_LOOP / 2.0
    else:
        is_one = variation(load) ** 2 - chance**2 < ONE_RATE**2
        spread = max(LEVEL_SPREAD, 1.2 * chance)
    label = np.zeros(len(load), dtype=np.intp) if is_one else _labels(load, spread)
    levels = [_level(seen, within[label == number], closed=closed) for number in range(int(label.max()) + 1)]
    return Loads(closed, is_one, tuple(levels))


def _level(seen: Seen, windows: Index, *, closed: bool) -> LoadLevel:
    rate, outstanding = float(seen.rate[windows].mean()), float(seen.outstanding[windows].mean())
    clients, think_s = 0, 0.0
    if closed:
        outstanding = float(np.median(seen.outstanding[windows]))
        clients = max(int(np.ceil(outstanding * (1.0 - LOOP_NOISE))), 1)
        think_s = max((clients - outstanding) / rate, 0.0)
        if think_s * rate < THINK_NOISE * clients:
            think_s = 0.0
    return LoadLevel(windows[::2], windows[1::2], rate, outstanding, clients, think_s)


def _labels(load: Array, spread: float) -> Index:
    """The level of each load [n], from 0 for the least: the fewest levels whose loads differ by so little."""
    points = np.quantile(load, (np.arange(min(_GRID, len(load))) + 0.5) / min(_GRID, len(load)))
    bounds = np.array([], dtype=np.float64)
    for count in range(1, LEVELS_MAX + 1):
        bounds = _bounds(np.log(points), count)
        label = np.searchsorted(bounds, load, side="right")
        if all(variation(load[label == number]) <= spread for number in np.unique(label)):
            break
    while len(bounds):
        label = np.searchsorted(bounds, load, side="right")
        sizes = np.bincount(label, minlength=len(bounds) + 1)
        few = int(np.argmin(sizes))
        if sizes[few] >= LEVEL_WINDOWS_MIN:
            break
        means = np.bincount(label, load, minlength=len(bounds) + 1) / np.maximum(sizes, 1)
        beside = [at for at in (few - 1, few) if 0 <= at < len(bounds)]  # bounds to the levels below and above
        bounds = np.delete(bounds, min(beside, key=lambda at: means[at + 1] / max(means[at], 1e-12)))
    return np.searchsorted(bounds, load, side="right")


def _bounds(points: Array, count: int) -> Array:
    """Bounds between groups of sorted logarithms, so that those of a group differ least; as values.

    Source: Fisher, "On grouping for maximum homogeneity" (Journal of the American Statistical Association 53, 1958).
    """
    total, square = (np.concatenate([[0.0], np.cumsum(points**power)]) for power in (1, 2))
    size = len(points)
    first, last = np.arange(size)[:, None], np.arange(1, size + 1)[None, :]
    length = np.maximum(last - first, 1)
    cost = square[1:][None, :] - square[:-1][:, None] - (total[1:][None, :] - total[:-1][:, None]) ** 2 / length
    cost = np.where(last > first, cost, np.inf)  # of a group from the one point to before the other
    best, cuts = cost[0], []
    for _ in range(count - 1):
        through = np.full((size, size), np.inf)
        through[1:] = best[:-1, None] + cost[1:]
        cuts.append(np.argmin(through, axis=0))
        best = through.min(axis=0)
    bounds, end = [], size
    for cut in reversed(cuts):
        end = int(cut[end - 1])
        if 0 < end < size:
            bounds.append(float(np.exp((points[end - 1] + points[end]) / 2.0)))
    return np.array(sorted(set(bounds)), dtype=np.float64)


def variation(values: Array) -> float:
    """Coefficient of variation; 0 of what is 0."""
    return float(values.std() / values.mean()) if len(values) and values.mean() > 0 else 0.0


def wobble(values: Array) -> float:
    """Coefficient of variation by steps from value to value, half of which may be of any size."""
    middle = (values[1:] + values[:-1]) / 2.0
    steps = np.divide(np.diff(values), middle, out=np.zeros(len(middle)), where=middle > 0)
    return float(np.sqrt(np.median(steps**2) / _NORMAL_MEDIAN)) if len(steps) else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Windows put together for resampling, in the order of time: level of each, windows, their rates, rates x latency.

    At most `SUMS_MAX`, so that resampling a week of seconds takes no longer than an hour of them.
    """

    label: Index
    count: Array
    rate: Array
    work: Array

    def means(self, drawn: Index | None = None) -> tuple[Array, Array]:
        """Operations per second and mean latency (ms) of each level [levels]; NaN of a level that was not drawn."""
        windows = slice(None) if drawn is None else drawn
        size = int(self.label.max()) + 1
        count, rate, work = (
            np.bincount(self.label[windows], of[windows], minlength=size) for of in (self.count, self.rate, self.work)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return rate / count, work / rate

    def resampled(self, times: int) -> Iterator[tuple[Array, Array]]:
        """The same of windows drawn anew, in blocks that keep neighbours together; none of too few windows."""
        if self.count.sum() < SAMPLE_COUNT_MIN:
            return
        for drawn in block_index(len(self.label), np.random.default_rng(_SEED))[:times]:
            yield self.means(drawn)

    def interval(self) -> tuple[float, float, float]:
        """Mean latency of all levels together with its 95 % interval, ms; NaN for the interval of too few windows."""
        whole = Sums(np.zeros_like(self.label), self.count, self.rate, self.work)
        drawn = [float(latency[0]) for _, latency in whole.resampled(RESAMPLE_COUNT)]
        low, high = np.quantile(drawn, [0.025, 0.975]) if drawn else (np.nan, np.nan)
        return float(whole.means()[1][0]), float(low), float(high)


def sums_of(seen: Seen, parts: Sequence[Index]) -> Sums:
    """The windows of each level, put together."""
    size = max(-(-sum(len(part) for part in parts) // SUMS_MAX), 1)
    sums = []
    for label, part in enumerate(parts):
        for begin in range(0, len(part), size):
            windows = part[begin : begin + size]
            rate = seen.rate[windows]
            sums.append((windows[0], label, len(windows), rate.sum(), float((rate * seen.latency_ms[windows]).sum())))
    rows = np.array(sorted(sums), dtype=np.float64)
    return Sums(rows[:, 1].astype(np.intp), rows[:, 2], rows[:, 3], rows[:, 4])
