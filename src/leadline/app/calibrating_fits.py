"""What is fitted to a disk's load and latency, and the scenario made of it.

The device is a line, latency = a + b x outstanding, which arrays follow well. It is fitted against what the load sets
and the device does not: outstanding where the load keeps that or each request met it when it came, else the rate, where
the line is latency = a / (1 - b x rate). Every other interval is held out, and told is how well those are predicted.

Source: Gulati, Kumar, Ahmad and Kumar, "BASIL: automated IO load balancing across storage devices" (FAST 2010), section
2: latency varies linearly with outstanding I/Os; Little, "A proof for the queuing formula L = λW" (1961).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from leadline.core.entities import Entity
from leadline.scenarios.storage_path import StoragePath

Array = NDArray[np.float64]
BUSY_MIN = 1.0  # operations per second of an interval that says something of a disk
CURVE_POINTS = 6
BEYOND = 4.0  # the curve is drawn to so many times what was seen; above it is a guess, and said so
ONE_LOAD = 0.2  # Judgement: outstanding made by Little's law varies so much by chance; less than that is one load
WEAK_PCT = 25.0
STEADY_SHARE = 0.5  # Judgement: of what counts of arrivals at random vary; a load twice as steady keeps its number
CLOSED_SHARE = 0.7  # Judgement: of what outstanding would vary if rate and latency did so apart; a loop ties them
DEPTH = 256  # of queues that let everything through
NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Seen:
    """A disk by interval, float64 [n] each: operations per second, bytes of one, mean latency in ms, outstanding.

    NaN is not measured. ``is_counted``: outstanding was counted by the tool, not made by Little's law.
    """

    entity: Entity
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
    def busy(self) -> NDArray[np.bool_]:
        """Intervals that say something of the disk."""
        known = np.isfinite(self.rate) & np.isfinite(self.latency_ms) & np.isfinite(self.outstanding)
        return np.asarray(known & (self.rate >= BUSY_MIN) & (self.latency_ms > 0), dtype=bool)

    @property
    def is_closed(self) -> bool:
        """Whether outstanding stays: latency falls as the rate rises, or all is steadier than arrivals at random are.

        Idle intervals speak for open arrivals.
        """
        busy = self.busy
        if busy.mean() < 0.9 or self.outstanding[busy].mean() < 1.0:
            return False
        apart = np.hypot(variation(self.rate[busy]), variation(self.latency_ms[busy]))
        at_random = 1.0 / np.sqrt(self.rate[busy].mean() * self.interval_s)
        return bool(variation(self.outstanding[busy]) < max(CLOSED_SHARE * apart, STEADY_SHARE * at_random))


@dataclass(frozen=True, slots=True)
class Line:
    """Latency in ms as ``base_ms + slope_ms`` x outstanding, and how well it predicts intervals it was not fitted on.

    ``against``: what it was fitted against, outstanding or the rate; or nothing, where only one load was seen.
    """

    base_ms: float
    slope_ms: float
    against: str
    r2: float
    error_pct: float
    window_count: int

    def at(self, outstanding: float) -> float:
        """Latency with so many outstanding, ms."""
        return self.base_ms + self.slope_ms * outstanding

    @property
    def sentence(self) -> str:
        """For people."""
        law = f"{self.base_ms:.3g} ms + {self.slope_ms:.3g} ms for each request outstanding"
        most = f", at most {1000.0 / self.slope_ms:,.0f}/s" if self.slope_ms > 0.0 else ", no end seen"
        if self.against == "nothing":
            law, most = f"{self.base_ms:.3g} ms at the one load that was seen", ""
        r2 = "not known" if self.r2 != self.r2 else f"{self.r2:.2f}"
        tried = f"{self.window_count} intervals held out: {self.error_pct:.1f} % off on average, R2 {r2}"
        return f"{law}{most}; {tried}"

    def curve(self, low: float, high: float, rate: float) -> list[list[float]]:
        """Points of (operations per second, seconds) from the least number outstanding to some times the most.

        ``rate``: at the one load that was seen.
        """
        if self.against == "nothing":
            return [[rate, self.base_ms / 1000.0]]
        points = np.geomspace(max(low, 1e-3), max(high, 1.0) * BEYOND, CURVE_POINTS)
        return [[float(n * 1000.0 / ms), float(ms / 1000.0)] for n in points if (ms := self.at(float(n))) > 0]


@dataclass(frozen=True, slots=True)
class Window:
    """How bursty arrivals are in windows of this length: index of dispersion, and that of the source fitted to them."""

    window_s: float
    trace: float
    fitted: float


@dataclass(frozen=True, slots=True)
class Fitted:
    """A disk as a scenario has it, with what was fitted.

    Attributes:
        line: of its latency; None where nothing says it.
        streams: what it is asked for.
        device: keys of a device of a scenario.
        most: requests outstanding at most.
        recording: keys of a trace that is the load instead of the streams, and how long it is.
        arrivals: how well the source fits, by window; empty where single requests were not seen.
    """

    name: str
    seen: Seen
    line: Line | None
    streams: tuple[dict[str, Any], ...]
    device: dict[str, Any]
    most: float
    notes: tuple[str, ...]
    recording: dict[str, Any] | None = None
    recorded_s: float = 0.0
    arrivals: tuple[Window, ...] = ()

    @property
    def sentence(self) -> str:
        """What is said of its latency."""
        return "latency not measured" if self.line is None else f"latency {self.line.sentence}"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A scenario that was fitted, its text, and its disks."""

    scenario: StoragePath
    text: str
    disks: tuple[Fitted, ...]


def fit_line(load: Array, latency_ms: Array, count: Array, against: str) -> Line:
    """Latency against ``rate`` (per s) or ``outstanding``, fitted on every other interval and tried on the rest.

    Arrays are float64 [n]; ``count`` is the weight of an interval, its operations: a mean of many says more. Neither
    part of the line is below 0: a device takes some time, and no less under more load.
    """
    x, y, weight = load[::2], latency_ms[::2], count[::2]
    if against == "outstanding" and variation(load) < ONE_LOAD:
        against, base, slope = "nothing", float(np.average(y, weights=weight)), 0.0
    elif against == "outstanding":
        base, slope = _line(x, y, weight)
    else:
        base, slope = _hyperbola(x, y, weight, float(load.max()))
    real, tried, weight = latency_ms[1::2], load[1::2], count[1::2]
    predicted = base / (1.0 - slope * tried / 1000.0) if against == "rate" else base + slope * tried
    off = float(np.average(np.abs(predicted - real) / real, weights=weight)) * 100.0
    around = float(np.average((real - np.average(real, weights=weight)) ** 2, weights=weight))
    missed = float(np.average((real - predicted) ** 2, weights=weight))
    return Line(base, slope, against, 1.0 - missed / around if around > 0.0 else float("nan"), off, len(real))


def _line(x: Array, y: Array, weight: Array) -> tuple[float, float]:
    """Base and slope by least squares, neither below 0."""
    middle, level = float(np.average(x, weights=weight)), float(np.average(y, weights=weight))
    slope = float((weight * (x - middle) * (y - level)).sum() / (weight * (x - middle) ** 2).sum())
    base = level - slope * middle
    if slope < 0.0:
        return level, 0.0
    return (0.0, float((weight * x * y).sum() / (weight * x * x).sum())) if base < 0.0 else (base, slope)


def _hyperbola(rate: Array, y: Array, weight: Array, rate_max: float) -> tuple[float, float]:
    """Base and slope (ms) of base / (1 - slope x rate) by least squares, the busiest interval at most at 98 %."""
    found = []
    for share in np.linspace(0.0, 0.98, 99):
        growth = 1.0 / (1.0 - share * rate / rate_max)
        base = float((weight * y * growth).sum() / (weight * growth * growth).sum())
        missed = float((weight * (y - base * growth) ** 2).sum())
        found.append((missed, base, 1000.0 * float(share) / rate_max))
    return min(found)[1:]


def variation(values: Array) -> float:
    """Coefficient of variation; 0 of what is 0."""
    return float(values.std() / values.mean()) if values.mean() > 0 else 0.0


def scenario_of(disks: Sequence[Fitted], name: str) -> StoragePath:
    """A scenario of a VM with a device for each disk."""
    depth = min(max(DEPTH, *(int(np.ceil(disk.most)) for disk in disks)), 65_536)
    plain: dict[str, Any] = {
        "name": NAME.sub("-", name).strip("-_").lower()[:60] or "calibrated",
        "about": "Fitted to captures; what it says of loads that were not seen is a guess.",
        "system": "storage-path",
        "vms": [{"name": disk.name, "device": disk.name, "adapter_depth": depth, **_load(disk)} for disk in disks],
        "hosts": [{"name": "host", "queue_depth": depth}],
        "devices": [{"name": disk.name, **disk.device} for disk in disks],
    }
    recorded = max(disk.recorded_s for disk in disks)
    if recorded:  # the whole of it, once
        plain["timing"] = {"warm_up_s": 0.0, "measure_s": recorded, "window_s": min(1.0, recorded)}
    return StoragePath.model_validate(plain)


def _load(disk: Fitted) -> dict[str, Any]:
    return {"workload": {"io": list(disk.streams)}} if disk.recording is None else {"trace": disk.recording}


def text_of(scenario: StoragePath, disks: Sequence[Fitted], paths: Sequence[Path]) -> str:
    """The scenario file, with what was fitted and how well as comments."""
    lines = [f"# Fitted to {', '.join(path.name for path in paths)}."]
    for disk in disks:
        lines += [f"# {disk.name}: {disk.sentence}", *(f"#   {note}" for note in disk.notes)]
    if len(disks) > 1:
        lines.append("# Disks are independent here, although those of one array are not.")
    kept = scenario.model_dump(mode="json", exclude_unset=True)
    for vm in kept["vms"]:
        if "workload" in vm:
            vm["workload"] = {key: value for key, value in vm["workload"].items() if key != "name"}
    body = yaml.safe_dump({"leadline_scenario": 1, **kept}, sort_keys=False, width=120)
    return "\n".join(lines) + "\n" + body
