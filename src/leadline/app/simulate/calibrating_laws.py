"""Laws of a device's latency that the simulator knows too, and how they are fitted to the loads that were seen.

A law is in the simulator's terms: latency by requests outstanding when one comes, that one included, or servers that
take requests in turn. Under an open load the arriving request sees the average number of others, so that a straight
line of latency against outstanding is latency = alone / (1 - slope x rate). Of a loop it sees all others of the loop.

Fits are by relative squares: an error of 5 % counts the same at every load.

Source: Gulati, Kumar, Ahmad and Kumar, "BASIL: automated IO load balancing across storage devices" (FAST 2010), section
2, for the line; Little, "A proof for the queuing formula L = λW" (1961); Kleinrock, "Queueing systems" 1 (1975),
sections 3.5 and 5.7, for servers: Erlang's delay formula and Pollaczek-Khinchine's; Lee and Longton (Operational
Research Quarterly 10, 1959) for several servers whose times are not exponential.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadline.app.simulate.calibrating_loads import ONE_LOOP, Array, variation

SERVERS = (1, 2, 4, 8, 16, 32, 64)
CV_MAX = 3.0  # Judgement: a coefficient of variation above is a hiccup, not the device
BUSY_MAX = 0.995  # of a server at the highest load seen: more would say that it could not be done
LINE_OFF_MAX = 0.02  # Judgement: from a load's mean; what was measured at a depth is better than a line past it
_GRID = 200
_Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """What every law has besides its numbers.

    ``against``: what it was fitted against, outstanding or the rate; or nothing, where only one load was seen.
    ``error_pct``, ``r2``, ``window_count``: the error on the windows that were not fitted. ``chance_pct``: the error
    that chance alone makes, which is how far windows of the simulation itself are from their mean. ``intervals``: 95 %
    intervals of its numbers, by resampled windows.
    """

    against: str
    r2: float = float("nan")
    error_pct: float = float("nan")
    chance_pct: float = float("nan")
    window_count: int = 0
    intervals: dict[str, _Interval] = field(default_factory=dict)

    def _number(self, name: str, value: float) -> str:
        low, high = self.intervals.get(name, (value, value))
        return f"{value:.3g} ms" if f"{low:.3g}" == f"{high:.3g}" else f"{value:.3g} ms ({low:.3g} to {high:.3g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearLaw(Law):
    """Latency in ms as ``base_ms + slope_ms`` x outstanding, the arriving request included.

    ``ends``: outstanding from which to which the curve of a scenario is drawn; beyond it the rate stays.
    """

    base_ms: float
    slope_ms: float
    ends: tuple[float, float] = (1.0, 1.0)
    kind: str = "line"

    def at(self, outstanding: float) -> float:
        """Latency of a request that makes it so many outstanding, ms."""
        return self.base_ms + self.slope_ms * outstanding

    def device(self, spread: float) -> dict[str, Any]:
        """Keys of a device of a scenario."""
        return {"curve": _curve([(n, self.at(n)) for n in sorted(set(self.ends))]), "spread": spread}

    @property
    def sentence(self) -> str:
        """Describe the law of latency in words."""
        if self.against == "nothing":
            return f"{self._number('alone_ms', self.at(self.ends[1]))} at the one load that was seen"
        alone = f"{self._number('alone_ms', self.at(1.0))} alone"
        return f"{alone} + {self._number('slope_ms', self.slope_ms)} for each other request outstanding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(Law):
    """Latency in ms at numbers outstanding, straight lines between them; beyond the last the rate stays."""

    points: tuple[tuple[float, float], ...]
    kind: str = "points"

    def device(self, spread: float) -> dict[str, Any]:
        """Keys of a device of a scenario."""
        return {"curve": _curve(self.points), "spread": spread}

    @property
    def sentence(self) -> str:
        """Describe the law of latency in words."""
        points_text = ", ".join(f"{ms:.3g} ms with {n:.3g}" for n, ms in self.points)
        return f"{points_text} outstanding, straight lines between them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(Law):
    """So many servers that take one request after the other: mean time in ms and its coefficient of variation."""

    service_ms: float
    service_cv: float
    server_count: int
    kind: str = "queue"

    def device(self, spread: float) -> dict[str, Any]:
        """Keys of a device of a scenario."""
        service: Any = self.service_ms / 1000.0
        if self.service_cv >= 0.01:
            service = {"kind": "lognormal", "mean": service, "cv": round(self.service_cv, 3)}
        return {"parallelism": self.server_count, "service": service}

    @property
    def sentence(self) -> str:
        """Describe the law of latency in words."""
        servers = f"{self.server_count} servers" if self.server_count > 1 else "one server"
        service = self._number("service_ms", self.service_ms)
        return f"{service} at {servers}, one request after the other, variation {self.service_cv:.2f}"


AnyLaw = LinearLaw | Points | Queue


def most_of(device: dict[str, Any]) -> float:
    """Operations per second of a device of a scenario at most; infinite where its latency never rises."""
    if "curve" in device:
        points = device["curve"]
        never = len(points) > 1 and points[-1][1] <= points[0][1] * (1.0 + 1e-9)
        return float("inf") if never else float(points[-1][0])
    service = device["service"]
    return float(device["parallelism"] / (service["mean"] if isinstance(service, dict) else service))


def _curve(points: Sequence[tuple[float, float]]) -> list[list[float]]:
    """(operations per second, seconds) of points of (outstanding, ms), as scenarios have them."""
    return [[float(n * 1000.0 / ms), float(ms / 1000.0)] for n, ms in points]


@dataclass(frozen=True, slots=True)
class Sight:
    """Loads that were seen, float64 [n] from the least: per s, outstanding at an arrival, mean ms, weight of each."""

    rate: Array
    arriving: Array
    latency_ms: Array
    weight: Array


def open_law(sight: Sight, top: float) -> AnyLaw:
    """The law of a device under open load: a line, or servers where a line is off by more than chance and they less."""
    alone, slope, missed = _hyperbola(sight)
    line = LinearLaw(against="rate", base_ms=alone - slope, slope_ms=slope, ends=(1.0, top))
    freedom = len(sight.rate) - 2
    if freedom < 1 or missed <= freedom + 2.0 * np.sqrt(2.0 * freedom):
        return line
    queues = [(*_servers(sight, count), count) for count in SERVERS]
    service, growth, least, count = min(queues, key=lambda one: one[2])
    return queue_of(service, growth, count) if least < missed else line


def queue_of(service_ms: float, growth: float, count: int) -> Queue:
    """Servers from their time and how many times the wait of exponential times theirs is."""
    return Queue(
        against="rate",
        service_ms=service_ms,
        service_cv=float(np.sqrt(max(2.0 * growth - 1.0, 0.0))),
        server_count=count,
    )


def closed_law(sight: Sight, top: float) -> AnyLaw:
    """The law of a device under loops: a line, or the points themselves where a line is off too far for chance."""
    base, slope = weighted_line(sight.arriving, sight.latency_ms, sight.weight / sight.latency_ms**2)
    off = (base + slope * sight.arriving) / sight.latency_ms - 1.0
    freedom = len(sight.rate) - 2
    missed = float((sight.weight * off**2).sum())
    if np.abs(off).max() <= LINE_OFF_MAX and missed <= max(freedom, 0) + 2.0 * np.sqrt(2.0 * max(freedom, 1)):
        return LinearLaw(against="outstanding", base_ms=base, slope_ms=slope, ends=(1.0, top))
    pairs = zip(sight.arriving, sight.latency_ms, strict=True)
    return Points(against="outstanding", points=tuple((float(n), float(ms)) for n, ms in pairs))


def refitted(law: AnyLaw, sight: Sight) -> dict[str, float]:
    """The numbers of a law of this kind, fitted to other windows; `Law.intervals` has an interval for each."""
    if law.against == "nothing":
        return {"alone_ms": float(np.average(sight.latency_ms, weights=sight.weight))}
    if isinstance(law, Queue):
        return {"service_ms": _servers(sight, law.server_count)[0]}
    if isinstance(law, Points):
        return {}
    if law.against == "rate":
        alone, slope, _ = _hyperbola(sight)
    else:
        base, slope = weighted_line(sight.arriving, sight.latency_ms, sight.weight / sight.latency_ms**2)
        alone = base + slope
    return {"alone_ms": alone, "slope_ms": slope}


def fit_line(load: Array, latency_ms: Array, count: Array) -> LinearLaw:
    """Latency by requests outstanding at an arrival, fitted on every other value and tried on the rest.

    Arrays are float64 [n]; ``count`` is the weight of a value, its operations: a mean of many says more.
    """
    x, y, weight = load[::2], latency_ms[::2], count[::2]
    against = "nothing" if variation(load) < ONE_LOOP else "outstanding"
    base, slope = (float(np.average(y, weights=weight)), 0.0) if against == "nothing" else weighted_line(x, y, weight)
    real, weight = latency_ms[1::2], count[1::2]
    predicted = base + slope * load[1::2]
    off, r2 = tried(real, predicted, weight)
    return LinearLaw(against=against, base_ms=base, slope_ms=slope, r2=r2, error_pct=off, window_count=len(real))


def tried(real: Array, predicted: Array, weight: Array) -> tuple[float, float]:
    """How far off predictions are on average, in percent, and R2; NaN where what was seen does not differ."""
    off = float(np.average(np.abs(predicted - real) / real, weights=weight)) * 100.0
    around = float(np.average((real - np.average(real, weights=weight)) ** 2, weights=weight))
    missed = float(np.average((real - predicted) ** 2, weights=weight))
    return off, 1.0 - missed / around if around > 0.0 else float("nan")


def weighted_line(x: Array, y: Array, weight: Array) -> tuple[float, float]:
    """Base and slope by least squares, neither below 0: a device takes some time, and no less under more load."""
    middle, level = float(np.average(x, weights=weight)), float(np.average(y, weights=weight))
    around = float((weight * (x - middle) ** 2).sum())
    slope = float((weight * (x - middle) * (y - level)).sum()) / around if around > 0.0 else 0.0
    base = level - slope * middle
    if slope < 0.0:
        return level, 0.0
    return (0.0, float((weight * x * y).sum() / (weight * x * x).sum())) if base < 0.0 else (base, slope)


def _hyperbola(sight: Sight) -> tuple[float, float, float]:
    """Latency alone and slope (ms) of alone / (1 - slope x rate), and the weighted squares missed."""
    most = float(sight.rate.max())

    def missed(share: Array) -> tuple[Array, Array]:
        growth = 1.0 / (1.0 - share[:, None] * sight.rate / most) / sight.latency_ms
        alone = (sight.weight * growth).sum(1) / (sight.weight * growth**2).sum(1)
        return (sight.weight * (1.0 - alone[:, None] * growth) ** 2).sum(1), alone

    share, alone, least = _least(missed, 0.0)
    return alone, 1000.0 * share / most, least


def _servers(sight: Sight, count: int) -> tuple[float, float, float]:
    """Time of a server (ms), how many times the wait of exponential times its wait is, and the squares missed."""
    most = float(sight.rate.max())

    def fitted(busy: Array) -> tuple[Array, Array]:
        service = busy * count / most * 1000.0
        load = busy[:, None] * count * sight.rate / most
        wait = erlang_delay(load, count) * service[:, None] / (count - load) / sight.latency_ms
        left = 1.0 - service[:, None] / sight.latency_ms
        square = (sight.weight * wait**2).sum(1)
        growth = np.divide((sight.weight * wait * left).sum(1), square, out=np.full(len(busy), 0.5), where=square > 0)
        growth = np.clip(growth, 0.5, (1.0 + CV_MAX**2) / 2.0)
        return (sight.weight * (left - growth[:, None] * wait) ** 2).sum(1), growth

    busy, growth, least = _least(fitted, 1e-4)
    return busy * count / most * 1000.0, growth, least


def _least(missed: Callable[[Array], tuple[Array, Array]], low: float) -> tuple[float, float, float]:
    """Where between ``low`` and `BUSY_MAX` the least is missed, the other number there, and what is missed."""
    high = BUSY_MAX
    for _ in range(2):
        grid = np.linspace(low, high, _GRID)
        off, other = missed(grid)
        best = int(np.argmin(off))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, _GRID - 1)])
    return float(grid[best]), float(other[best]), float(off[best])


def erlang_delay(load: Array, count: int) -> Array:
    """The share of requests that wait for one of ``count`` servers, whose load is so many of them; float64 [...]."""
    blocked = np.ones_like(load)
    for n in range(1, count + 1):
        blocked = load * blocked / (n + load * blocked)
    return np.asarray(blocked * count / (count - load * (1.0 - blocked)), dtype=np.float64)
