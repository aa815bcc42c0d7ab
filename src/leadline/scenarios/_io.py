"""What simulated systems with streams of I/O share: sources of a workload, and results, measures and series of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leadline import __version__
from leadline.core.contracts.benchmark import Tick
from leadline.core.contracts.scenario import Measure, Series, VirtualTiming, pooled, whole_windows
from leadline.core.model.draws import ns_of
from leadline.core.model.result import Operation, Result
from leadline.core.model.run import percentiles
from leadline.core.model.workload import Stream

WAYS = ("read", "write")
MS_PER_NS = 1e-6
CORRELATION_MAX = 0.5  # Judgement: of 30 independent batches one set in 300 shows as much by chance
_NAN = float("nan")


def sources_of(stream: Stream) -> Iterator[dict[str, Any]]:
    """What issues a stream's requests: one source, or with a rate one for each direction."""
    common = {
        "think": ns_of(stream.think_time_s),
        "even": stream.arrivals == "even",
        "burst": None if stream.burst is None else (ns_of(stream.burst.on_s), ns_of(stream.burst.off_s)),
        "sizes": list(stream.block.items()),
        "random_share": stream.random_pct / 100.0,
        "then": None,
        "replay": None,
    }
    if stream.rate_iops is None:
        outstanding = stream.oio * stream.jobs
        share = stream.read_pct / 100.0
        yield {**common, "name": stream.name, "outstanding": outstanding, "rate": 0.0, "read_share": share}
        return
    for way, rate in zip(WAYS, (stream.rate_iops.read, stream.rate_iops.write), strict=True):
        if rate > 0:
            share = float(way == "read")
            yield {**common, "name": f"{stream.name}/{way}", "outstanding": None, "rate": rate, "read_share": share}


def results_of(name: str, sources: Sequence[str], done: Sequence[dict[str, Any]], seconds: float) -> Iterator[Result]:
    """One result for each stream, as load tools give them.

    ``sources`` has the stream of each source and ``done`` its reads and writes, in the same order; ``name`` stands
    before the stream's, if it is not empty.
    """
    for stream in dict.fromkeys(sources):
        operations = []
        for index, way in enumerate(WAYS):
            own = [done[2 * n + index] for n, source in enumerate(sources) if source == stream]
            count, size = sum(part["count"] for part in own), sum(part["bytes"] for part in own)
            if count:
                mean = {"mean": mean_ms(own)}
                operations.append(Operation(way, count / seconds, size / seconds, count, mean, pooled(own)))
        job = f"{name}/{stream}" if name else stream
        yield Result("simulation", job, tuple(operations), seconds, tool_version=__version__)


def mean_ms(done: Sequence[dict[str, Any]]) -> float:
    """Mean latency of reads and writes together, ms; NaN without any."""
    count = sum(part["count"] for part in done)
    return sum(part["mean"] * part["count"] for part in done if part["count"]) / count * MS_PER_NS if count else _NAN


def ticks_of(parts: Sequence[dict[str, Any]], count: int, window_s: float) -> tuple[Tick, ...]:
    """The first ``count`` windows of all parts together, as load tools report them."""
    rates, sizes = (
        np.sum([whole_windows(part[key], count, 0.0) for part in parts], axis=0) / window_s
        for key in ("count", "bytes")
    )
    return tuple(Tick((n + 1) * window_s, float(rates[n]), float(sizes[n])) for n in range(count))


def series_of(timing: VirtualTiming, name: str, part: dict[str, Any]) -> Iterator[Series]:
    """Rate and latency over the measured time."""
    window, count = timing.window_s, timing.window_count
    yield Series(name, "iops", "per_s", tuple((whole_windows(part["count"], count, 0.0) / window).tolist()))
    for key in ("latency_ms", "latency_ms_max"):
        yield Series(name, key, "ms", tuple(whole_windows(part[key], count, _NAN).tolist()))


def measures_of(timing: VirtualTiming, name: str, own: dict[str, Any]) -> Iterator[Measure]:
    """Rates, latencies, and Little's law."""
    seconds = timing.measure_s
    count, size = (sum(way[key] for way in own["done"]) for key in ("count", "bytes"))
    rate, latency = (own[key] or (_NAN, _NAN, 0, _NAN) for key in ("rate_interval", "latency_interval"))
    yield Measure(name, "iops", count / seconds, "per_s", rate[1])
    yield Measure(name, "mb_per_s", size / seconds / 1e6, "mb_per_s")
    histogram = pooled(own["done"])
    known = {} if histogram is None else percentiles(histogram)
    yield Measure(name, "latency_ms_mean", mean_ms(own["done"]), "ms", latency[1] * MS_PER_NS)
    for percentile in ("p50", "p95", "p99"):
        yield Measure(name, f"latency_ms_{percentile}", known.get(percentile, (_NAN, 0))[0], "ms")
    little = own["little"] or (_NAN, _NAN, _NAN, _NAN)
    yield Measure(name, "outstanding_count_mean", little[0], "count")
    yield Measure(name, "little_imbalance_pct", 100.0 * little[3], "pct")


def doubt_of(own: dict[str, Any], *, is_steady: bool = True) -> str:
    """What to beware of; empty for nothing. ``is_steady``: whether the load and the system are meant to be."""
    intervals = [own[key] for key in ("rate_interval", "latency_interval")]
    if any(part is None for part in intervals):
        return "too few requests for an interval; measure longer"
    if not is_steady:
        return ""
    if own["steady_after"] is None:
        return "latency drifts while measured: more is offered than is done, or the warm-up is too short"
    if any(part[3] > CORRELATION_MAX for part in intervals):
        return "neighbouring batches are alike, so that the intervals are too narrow; measure longer"
    return ""
