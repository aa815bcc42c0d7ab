"""Use case: a scenario fitted to captures: what each disk is asked for, and how its latency grows with the load.

Of every disk each interval gives a rate, a size, a share of reads, a mean latency and, by Little's law or as the tool
counts them, requests outstanding. The load is what was asked for; the device is a line, latency = a + b x outstanding,
which arrays follow well. It is fitted against what the load sets and the device does not: outstanding where the load
keeps that, else the rate, where the line is latency = a / (1 - b x rate). (Latency against outstanding at a given rate
would be latency against itself.) Every other interval is held out, and told is how well those are predicted.

Source: Gulati, Kumar, Ahmad and Kumar, "BASIL: automated IO load balancing across storage devices" (FAST 2010), section
2: latency varies linearly with outstanding I/Os; Little, "A proof for the queuing formula L = λW" (1961).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from leadline.app.importing import import_paths
from leadline.core.capture import Capture
from leadline.core.entities import Entity
from leadline.core.errors import InputError, UsageError
from leadline.core.vocabulary import EntityKind
from leadline.scenarios.storage_path import StoragePath

Array = NDArray[np.float64]
WINDOWS_MIN = 10  # Judgement: a line on five intervals, tried on five
BUSY_MIN = 1.0  # operations per second of an interval that says something of a disk
DISKS_MAX = 16  # Judgement: the busiest; more can be named one by one
CURVE_POINTS = 6
BEYOND = 4.0  # the curve is drawn to so many times what was seen; above it is a guess, and said so
ONE_LOAD = 0.2  # Judgement: outstanding made by Little's law varies so much by chance; less than that is one load
WEAK_PCT = 25.0
CLOSED_SHARE = 0.7  # Judgement: of what outstanding would vary if rate and latency did so apart; a loop ties them
SIZES_APART = 1.5  # Judgement: reads and writes whose sizes differ more are two streams
SPREAD_ASSUMED = 0.5
MIB = 1024**2
_NAME = re.compile(r"[^A-Za-z0-9_-]+")
# Metrics by what they say, the first that is there; of reads, then of writes, where there are both.
_RATES = (("disk_reads_per_s", "disk_writes_per_s"), ("job_iops_read", "job_iops_write"))
_SIZES = (("disk_read_mib_per_s", "disk_write_mib_per_s"), ("job_mib_per_s_read", "job_mib_per_s_write"))
_LATENCIES = (
    ("virtual_disk_latency_ms_read", "virtual_disk_latency_ms_write"),
    ("guest_disk_await_ms_read", "guest_disk_await_ms_write"),
    ("job_latency_ms_read", "job_latency_ms_write"),
    ("disk_guest_latency_ms_read", "disk_guest_latency_ms_write"),
)
_LATENCY = ("disk_guest_latency_ms", "disk_device_latency_ms", "job_latency_ms")
_OUTSTANDING = (
    ("guest_disk_queue_count",),
    ("virtual_disk_outstanding_count",),
    ("disk_active_count", "disk_queued_count"),
)
_KINDS = (EntityKind.VIRTUAL_DISK, EntityKind.BLOCK_DEVICE, EntityKind.JOB, EntityKind.DEVICE)


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

    @property
    def rate(self) -> Array:
        """Operations per second."""
        return self.reads + self.writes


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


@dataclass(frozen=True, slots=True)
class Fitted:
    """A disk as a scenario has it, with what was fitted."""

    name: str
    seen: Seen
    line: Line
    streams: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A scenario that was fitted, its text, and its disks."""

    scenario: StoragePath
    text: str
    disks: tuple[Fitted, ...]


def calibrate(paths: Sequence[Path], entity: str | None = None, name: str = "calibrated") -> Calibrated:
    """A scenario of the busiest disks of captures, or of one machine's or one disk.

    Raises:
        InputError: a file is damaged, or the captures do not hold what is needed.
        UsageError: there is no such entity.
    """
    capture = import_paths(list(paths)).capture
    found = [own for own in seen_disks(capture) if entity is None or _is_meant(own.entity, entity)]
    if entity is not None and not found:
        known = sorted({own.entity.label() for own in seen_disks(capture)})
        raise UsageError(
            f"--entity {entity}",
            found="no disk of that name, or of a machine of that name, with rates and latencies",
            expected=f"one of {', '.join(known[:8]) or 'none'}",
            advice="`leadline show` lists what the captures hold.",
        )
    whole = [own for own in found if _busy(own).sum() >= WINDOWS_MIN]
    if not whole:
        raise InputError(
            ", ".join(str(path) for path in paths),
            found=f"{len(found)} disks with rates and latencies, none in {WINDOWS_MIN} intervals of load",
            expected="reads and writes per second, throughput and latency of a loaded disk over time",
            advice="Record longer (iostat -x 1, esxtop -b), or fio with its logs (bench run keeps them).",
        )
    whole.sort(key=lambda own: -float(np.nansum(own.rate)))
    disks = tuple(_fit(own, taken) for own, taken in _named(whole[:DISKS_MAX]))
    scenario = _scenario(disks, name)
    return Calibrated(scenario, _text(scenario, disks, paths), disks)


def _is_meant(entity: Entity, name: str) -> bool:
    return name in {str(entity), entity.label(), *(own.name for own in entity.lineage())}


def _named(disks: Sequence[Seen]) -> Iterator[tuple[Seen, str]]:
    """A name of its own for each."""
    taken: set[str] = set()
    for own in disks:
        base = _NAME.sub("-", own.entity.label()).strip("-_")[:50] or "disk"
        name = next(text for n in range(1, len(disks) + 2) if (text := base if n == 1 else f"{base}-{n}") not in taken)
        taken.add(name)
        yield own, name


def seen_disks(capture: Capture) -> Iterator[Seen]:
    """Every disk whose rates and latencies the capture holds."""
    for reads_name, writes_name in _RATES:
        for group in capture.of(reads_name, *_KINDS):
            for entity in group.entities:
                found = _seen(capture, entity, group.times_ns, (reads_name, writes_name))
                if found is not None:
                    yield found


def _seen(capture: Capture, entity: Entity, times: NDArray[np.int64], names: tuple[str, str]) -> Seen | None:
    def values(metric: str) -> Array:
        return _values(capture, metric, entity, times)

    reads, writes = values(names[0]), np.nan_to_num(values(names[1]))
    sizes = next(
        (pair for pair in ([values(a), values(b)] for a, b in _SIZES) if np.isfinite(pair).any()),
        [np.full(len(times), np.nan)] * 2,
    )
    latency = _latency(values, reads, writes)
    if latency is None:
        return None
    counted = next(
        (total for total in (sum(map(values, own)) for own in _OUTSTANDING) if np.isfinite(total).any()), None
    )
    rate = reads + writes
    with np.errstate(divide="ignore", invalid="ignore"):
        of_read, of_write = (
            np.where(way > 0, size * MIB / way, np.nan) for way, size in zip((reads, writes), sizes, strict=True)
        )
    outstanding = rate * latency / 1000.0 if counted is None else np.asarray(counted, dtype=np.float64)
    return Seen(entity, reads, writes, of_read, of_write, latency, outstanding, counted is not None)


def _latency(values: Any, reads: Array, writes: Array) -> Array | None:  # noqa: ANN401 - a function
    """Of reads and writes together, ms; None when nothing says it."""
    for names in _LATENCIES:
        of_reads, of_writes = map(values, names)
        if np.isfinite(of_reads).any() or np.isfinite(of_writes).any():
            total = np.where(reads > 0, reads * of_reads, 0.0) + np.where(writes > 0, writes * of_writes, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(reads + writes > 0, total / (reads + writes), np.nan)
    for name in _LATENCY:
        found = values(name)
        if np.isfinite(found).any():
            return np.asarray(found, dtype=np.float64)
    return None


def _values(capture: Capture, metric: str, entity: Entity, times: NDArray[np.int64]) -> Array:
    """A metric of an entity at these moments, float64 [n]; NaN where no sample is within half an interval."""
    found = np.full(len(times), np.nan)
    for group in capture.of(metric):
        row = group.row(entity)
        if row is None:
            continue
        at = np.clip(np.searchsorted(group.times_ns, times), 1, max(len(group.times_ns) - 1, 1))
        at -= times - group.times_ns[at - 1] <= group.times_ns[np.minimum(at, len(group.times_ns) - 1)] - times
        near = np.abs(group.times_ns[at] - times) <= 0.5e9 * group.interval_s
        found[near] = row[at[near]]
    return found


def _busy(own: Seen) -> NDArray[np.bool_]:
    known = np.isfinite(own.rate) & np.isfinite(own.latency_ms) & np.isfinite(own.outstanding)
    return np.asarray(known & (own.rate >= BUSY_MIN) & (own.latency_ms > 0), dtype=bool)


def fit_line(load: Array, latency_ms: Array, count: Array, against: str) -> Line:
    """Latency against ``rate`` (per s) or ``outstanding``, fitted on every other interval and tried on the rest.

    Arrays are float64 [n]; ``count`` is the weight of an interval, its operations: a mean of many says more. Neither
    part of the line is below 0: a device takes some time, and no less under more load.
    """
    x, y, weight = load[::2], latency_ms[::2], count[::2]
    if against == "outstanding" and _variation(load) < ONE_LOAD:
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


def _fit(own: Seen, name: str) -> Fitted:
    busy = _busy(own)
    closed, notes = _is_closed(own, busy), []
    line = fit_line(own.outstanding[busy], own.latency_ms[busy], own.rate[busy], "outstanding")
    if not closed:
        line = fit_line(own.rate[busy], own.latency_ms[busy], own.rate[busy], "rate")
    streams = _closed(own, busy) if closed else _open(own, busy)
    kept = float(own.outstanding[busy].mean())
    if closed:
        notes.append(f"the load keeps {kept:.3g} requests outstanding, whatever the rate: a closed loop")
    else:
        notes.append("the load comes at its own rate: an open stream; idle intervals count")
    notes.append("outstanding as the tool counted it" if own.is_counted else "outstanding by Little's law")
    if line.error_pct > WEAK_PCT:
        notes.append("latency hardly follows the load seen here: something else decides it, and predictions are weak")
    if line.against == "nothing":
        notes.append("with fewer outstanding it is taken to be as slow, with more to do no more; record another load")
    most = float(own.outstanding[busy].max())
    notes.append(f"seen up to {own.rate[busy].max():,.0f}/s and {most:.3g} outstanding; beyond that it is a guess")
    return Fitted(name, own, line, streams, tuple(notes))


def _is_closed(own: Seen, busy: NDArray[np.bool_]) -> bool:
    """Whether latency falls as the rate rises so that outstanding stays; idle intervals speak for open arrivals."""
    if busy.mean() < 0.9 or own.outstanding[busy].mean() < 1.0:
        return False
    apart = np.hypot(_variation(own.rate[busy]), _variation(own.latency_ms[busy]))
    return bool(_variation(own.outstanding[busy]) < CLOSED_SHARE * apart)


def _variation(values: Array) -> float:
    return float(values.std() / values.mean()) if values.mean() > 0 else 0.0


def _block(sizes: Array, weights: Array) -> int:
    """The mean size of an operation, to 512 bytes; 8 KiB where nothing says it."""
    known = np.isfinite(sizes) & (weights > 0)
    if not known.any():
        return 8192
    return max(round(float(np.average(sizes[known], weights=weights[known])) / 512), 1) * 512


def _open(own: Seen, busy: NDArray[np.bool_]) -> tuple[dict[str, Any], ...]:
    known = np.isfinite(own.rate)
    reads, writes = float(own.reads[known].mean()), float(own.writes[known].mean())
    sizes = _block(own.read_bytes[busy], own.reads[busy]), _block(own.write_bytes[busy], own.writes[busy])
    ways = [("reads", reads, sizes[0], 100.0), ("writes", writes, sizes[1], 0.0)]
    return tuple(
        {"name": name, "block": size, "read_pct": pct, "rate_iops": round(rate, 3)}
        for name, rate, size, pct in ways
        if rate >= 0.01
    )


def _closed(own: Seen, busy: NDArray[np.bool_]) -> tuple[dict[str, Any], ...]:
    reads, writes = float(own.reads[busy].sum()), float(own.writes[busy].sum())
    share = reads / (reads + writes)
    kept = max(round(float(own.outstanding[busy].mean())), 1)
    sizes = _block(own.read_bytes[busy], own.reads[busy]), _block(own.write_bytes[busy], own.writes[busy])
    if min(share, 1.0 - share) < 0.01:
        blocks: Any = sizes[0] if share > 0.5 else sizes[1]
    elif max(sizes) / min(sizes) < SIZES_APART:
        blocks = round((share * sizes[0] + (1.0 - share) * sizes[1]) / 512) * 512
    else:
        blocks = {sizes[0]: round(100.0 * share, 1), sizes[1]: round(100.0 - round(100.0 * share, 1), 1)}
    return ({"name": "io", "block": blocks, "read_pct": round(100.0 * share, 1), "oio": kept},)


def _curve(disk: Fitted) -> list[list[float]]:
    """Points of (operations per second, seconds) on the line, from the least load seen to some times the most."""
    busy = _busy(disk.seen)
    if disk.line.against == "nothing":
        return [[float(disk.seen.rate[busy].mean()), disk.line.base_ms / 1000.0]]
    low, high = float(disk.seen.outstanding[busy].min()), float(disk.seen.outstanding[busy].max())
    low = max(low, 1e-3)
    points = np.geomspace(low, max(high, 1.0) * BEYOND, CURVE_POINTS)
    return [[float(n * 1000.0 / ms), float(ms / 1000.0)] for n in points if (ms := disk.line.at(float(n))) > 0]


def _scenario(disks: Sequence[Fitted], name: str) -> StoragePath:
    depth = max(256, *(stream.get("oio", 1) for disk in disks for stream in disk.streams))
    plain = {
        "name": _NAME.sub("-", name).strip("-_").lower()[:60] or "calibrated",
        "about": "Fitted to captures; what it says of loads that were not seen is a guess.",
        "system": "storage-path",
        "vms": [
            {"name": disk.name, "device": disk.name, "adapter_depth": depth, "workload": {"io": list(disk.streams)}}
            for disk in disks
        ],
        "hosts": [{"name": "host", "queue_depth": depth}],
        "devices": [{"name": disk.name, "curve": _curve(disk), "spread": SPREAD_ASSUMED} for disk in disks],
    }
    return StoragePath.model_validate(plain)


def _text(scenario: StoragePath, disks: Sequence[Fitted], paths: Sequence[Path]) -> str:
    """The scenario file, with what was fitted and how well as comments."""
    lines = [f"# Fitted to {', '.join(path.name for path in paths)}."]
    for disk in disks:
        lines += [f"# {disk.name}: latency {disk.line.sentence}", *(f"#   {note}" for note in disk.notes)]
    lines.append(
        f"# spread {SPREAD_ASSUMED:g} around the mean is assumed: captures hold means, so percentiles are a guess."
    )
    lines.append("# Disks are independent here, although those of one array are not.")
    kept = scenario.model_dump(mode="json", exclude_unset=True)
    for vm in kept["vms"]:
        vm["workload"] = {key: value for key, value in vm["workload"].items() if key != "name"}
    body = yaml.safe_dump({"leadline_scenario": 1, **kept}, sort_keys=False, width=120)
    return "\n".join(lines) + "\n" + body
