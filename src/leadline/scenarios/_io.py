"""What simulated systems with streams of I/O share: sources of a workload, and results, measures and series of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leadline import __version__
from leadline.core.contracts.scenario import Measure, Series, VirtualTiming, whole_windows
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.run import percentiles
from leadline.core.model.workload import Stream
from leadline.scenarios._draws import Draw, ns_of
from leadline.scenarios._simulator import Completed, Interval, IoFigures, IoSeries, Little, arrivals_of, pooled

WAYS = ("read", "write")
MS_PER_NS = 1e-6
CORRELATION_MAX = 0.5  # Judgement: of 30 independent batches one set in 300 shows as much by chance
_NAN = float("nan")


def sources_of(stream: Stream) -> Iterator[dict[str, Any]]:
    """The sources of a stream's requests, as the simulator takes them: one, or with a rate one for each direction."""
    common = {
        "burst": None if stream.burst is None else (ns_of(stream.burst.on_s), ns_of(stream.burst.off_s)),
        "sizes": list(stream.block.items()),
        "random_share": stream.random_pct / 100.0,
    }
    if stream.rate_iops is None:
        share = stream.read_pct / 100.0
        yield {**common, "name": stream.name, "arrivals": arrivals_of(stream, None), "read_share": share}
        return
    for way, rate in zip(WAYS, (stream.rate_iops.read, stream.rate_iops.write), strict=True):
        if rate > 0:
            share = float(way == "read")
            arrivals = arrivals_of(stream, rate)
            yield {**common, "name": f"{stream.name}/{way}", "arrivals": arrivals, "read_share": share}


def times_of(
    service: Draw, write_service: Draw | None, sequential_service: Draw | None, mb_per_s: float | None
) -> dict[str, Any]:
    """What a device takes for a request, as the simulator takes it."""
    return {
        "read": service.document(),
        "write": (write_service or service).document(),
        "sequential": None if sequential_service is None else sequential_service.document(),
        "bytes_per_second": None if mb_per_s is None else mb_per_s * 1e6,
    }


def results_of(name: str, sources: Sequence[str], done: Sequence[Completed], seconds: float) -> Iterator[Result]:
    """One result for each stream, as load tools give them.

    ``sources`` has the stream of each source and ``done`` its reads and writes, in the same order; ``name`` stands
    before the stream's, if it is not empty.
    """
    for stream in dict.fromkeys(sources):
        operations = []
        for index, way in enumerate(WAYS):
            parts = [done[2 * n + index] for n, source in enumerate(sources) if source == stream]
            count, size = sum(part.count for part in parts), sum(part.bytes for part in parts)
            if count:
                mean = {"mean": mean_ms(parts)}
                operations.append(Operation(way, count / seconds, size / seconds, count, mean, pooled(parts)))
        job = f"{name}/{stream}" if name else stream
        yield Result("simulation", job, tuple(operations), seconds, tool_version=__version__)


def mean_ms(done: Sequence[Completed]) -> float:
    """Mean latency of reads and writes together, ms; NaN without any."""
    count = sum(part.count for part in done)
    return sum(part.mean * part.count for part in done if part.count) / count * MS_PER_NS if count else _NAN


def ticks_of(parts: Sequence[IoSeries], count: int, window_s: float) -> tuple[Tick, ...]:
    """The first ``count`` windows of all parts together, as load tools report them."""
    rates, sizes = (
        np.sum([whole_windows(column, count, 0.0) for column in columns], axis=0) / window_s
        for columns in ([part.count for part in parts], [part.bytes for part in parts])
    )
    return tuple(Tick((n + 1) * window_s, float(rates[n]), float(sizes[n])) for n in range(count))


def series_of(timing: VirtualTiming, name: str, part: IoSeries) -> Iterator[Series]:
    """Rate and latency over the measured time."""
    window, count = timing.window_s, timing.window_count
    yield Series(name, "iops", "per_s", tuple((whole_windows(part.count, count, 0.0) / window).tolist()))
    for key, column in (("latency_ms", part.latency_ms), ("latency_ms_max", part.latency_ms_max)):
        yield Series(name, key, "ms", tuple(whole_windows(column, count, _NAN).tolist()))


def measures_of(timing: VirtualTiming, name: str, figures: IoFigures) -> Iterator[Measure]:
    """Rates, latencies, and Little's law."""
    seconds = timing.measure_s
    count, size = sum(way.count for way in figures.done), sum(way.bytes for way in figures.done)
    rate, latency = figures.rate_interval or Interval(), figures.latency_interval or Interval()
    yield Measure(name, "iops", count / seconds, "per_s", rate.half_width)
    yield Measure(name, "mb_per_s", size / seconds / 1e6, "mb_per_s")
    histogram = pooled(figures.done)
    known = {} if histogram is None else percentiles(histogram)
    yield Measure(name, "latency_ms_mean", mean_ms(figures.done), "ms", latency.half_width * MS_PER_NS)
    for percentile in ("p50", "p95", "p99"):
        yield Measure(name, f"latency_ms_{percentile}", known.get(percentile, (_NAN, 0))[0], "ms")
    little = figures.little or Little()
    yield Measure(name, "outstanding_count_mean", little.in_system_mean, "count")
    yield Measure(name, "little_imbalance_pct", 100.0 * little.imbalance, "pct")


def doubt_of(figures: IoFigures, *, is_steady: bool = True) -> str:
    """What to beware of; empty for nothing. ``is_steady``: whether the load and the system are meant to be."""
    rate, latency = figures.rate_interval, figures.latency_interval
    if rate is None or latency is None:
        return "too few requests for an interval; measure longer"
    if not is_steady:
        return ""
    if figures.steady_after is None:
        return "latency drifts while measured: more is offered than is done, or the warm-up is too short"
    if max(rate.correlation, latency.correlation) > CORRELATION_MAX:
        return "neighbouring batches are alike, so that the intervals are too narrow; measure longer"
    return ""
