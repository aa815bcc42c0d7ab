"""What a simulated storage path gave: results as load tools have them, measures, series, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leadline import __version__
from leadline.core.benchmark import Tick
from leadline.core.result import Operation, Result
from leadline.core.run import percentiles
from leadline.core.scenario import Measure, Series, listed, pooled, whole_windows
from leadline.core.workload import Stream
from leadline.scenarios._storage_path.parts import StoragePath
from leadline.scenarios._storage_path.spec import WAYS, Owned

CORRELATION_MAX = 0.5  # Judgement: of 30 independent batches one set in 300 shows as much by chance
MS_PER_NS = 1e-6
_NAN = float("nan")


def results(scenario: StoragePath, name: str, streams: list[Stream], vm: dict[str, Any]) -> Iterator[Result]:
    """One result for each stream, as load tools give them."""
    seconds = scenario.timing.measure_s
    several = sum(kind.count for kind in scenario.vms) > 1
    for stream in dict.fromkeys(own.name for own in streams):
        operations = []
        for index, way in enumerate(WAYS):
            done = [vm["done"][2 * n + index] for n, own in enumerate(streams) if own.name == stream]
            count, size = sum(own["count"] for own in done), sum(own["bytes"] for own in done)
            if count:
                mean = sum(own["mean"] * own["count"] for own in done if own["count"]) / count * MS_PER_NS
                histogram = pooled(done)
                operations.append(Operation(way, count / seconds, size / seconds, count, {"mean": mean}, histogram))
        job = f"{name}/{stream}" if several else stream
        yield Result("simulation", job, tuple(operations), seconds, tool_version=__version__)


def ticks(parts: list[dict[str, Any]], count: int, window_s: float) -> tuple[Tick, ...]:
    """Operations and bytes per second of all VMs together, by window."""
    rates = np.sum([whole_windows(part["count"], count, 0.0) for part in parts], axis=0) / window_s
    sizes = np.sum([whole_windows(part["bytes"], count, 0.0) for part in parts], axis=0) / window_s
    return tuple(Tick((n + 1) * window_s, float(rates[n]), float(sizes[n])) for n in range(count))


def series(scenario: StoragePath, name: str, part: dict[str, Any]) -> Iterator[Series]:
    """Rate and latency of a VM by window."""
    window = scenario.timing.window_s
    count = int(scenario.timing.measure_s / window + 1e-9)
    rates = whole_windows(part["count"], count, 0.0) / window
    yield Series(name, "iops", "per_s", tuple(rates.tolist()))
    for key in ("latency_ms", "latency_ms_max"):
        yield Series(name, key, "ms", tuple(whole_windows(part[key], count, _NAN).tolist()))


def measures(scenario: StoragePath, name: str, vm: dict[str, Any]) -> Iterator[Measure]:
    """The numbers of a VM."""
    done = sum(way["count"] for way in vm["done"])
    rate, latency = (vm[key] or (_NAN, _NAN, 0, _NAN) for key in ("rate_interval", "latency_interval"))
    yield Measure(name, "iops", done / scenario.timing.measure_s, "per_s", rate[1])
    histogram = pooled(vm["done"])
    known = {} if histogram is None else percentiles(histogram)
    mean = sum(way["mean"] * way["count"] for way in vm["done"] if way["count"]) / done * MS_PER_NS if done else _NAN
    yield Measure(name, "latency_ms_mean", mean, "ms", latency[1] * MS_PER_NS)
    for percentile in ("p50", "p99"):
        yield Measure(name, f"latency_ms_{percentile}", known.get(percentile, (_NAN, 0))[0], "ms")
    for stage, inside, most, stay in vm["stages"]:
        yield Measure(name, f"{stage}_count_mean", _NAN if inside is None else inside, "count")
        yield Measure(name, f"{stage}_count_max", most, "count")
        yield Measure(name, f"{stage}_ms_mean", _NAN if stay is None else stay * MS_PER_NS, "ms")
    little = vm["little"] or (_NAN, _NAN, _NAN, _NAN)
    yield Measure(name, "outstanding_count_mean", little[0], "count")
    yield Measure(name, "little_imbalance_pct", 100.0 * little[3], "pct")


def device_measures(scenario: StoragePath, devices: list[tuple[float | None, float | None]]) -> Iterator[Measure]:
    """The numbers of the devices."""
    for own, (busy, inside) in zip(scenario.devices, devices, strict=True):
        share = _NAN if busy is None or own.curve else 100.0 * busy / own.parallelism
        yield Measure(own.name, "utilisation_pct", share, "pct")
        yield Measure(own.name, "device_count_mean", _NAN if inside is None else inside, "count")


def notes(owned: Sequence[tuple[Owned, dict[str, Any]]]) -> tuple[str, ...]:
    """What to beware of, with the VMs it holds for."""
    found: dict[str, list[str]] = {}
    for (name, streams), vm in owned:
        if any(stream.sync_every for stream in streams):
            found.setdefault("flushes are not simulated", []).append(name)
        text = _doubt(vm)
        if text:
            found.setdefault(text, []).append(name)
    return tuple(f"{listed(names)}: {text}" for text, names in found.items())


def _doubt(vm: dict[str, Any]) -> str:
    intervals = [vm[key] for key in ("rate_interval", "latency_interval")]
    if any(own is None for own in intervals):
        return "too few requests for an interval; measure longer"
    if vm["steady_after"] is None:
        return "latency drifts while measured: more is offered than is done, or the warm-up is too short"
    if any(own[3] > CORRELATION_MAX for own in intervals):
        return "neighbouring batches are alike, so that the intervals are too narrow; measure longer"
    return ""
