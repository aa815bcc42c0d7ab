"""Block traces for a calibration: every request says what a capture only has means of.

*Arrivals.* A load that issues when something was done is a closed loop; of an open one a source is fitted to the times
(`calibrating_arrivals`), and where none fits the recording itself is the load.

*Latency* is fitted against the requests outstanding when each one came, itself included: that was decided before it was
served, while the mean outstanding of an interval is made of the latencies themselves. Of every other interval the
requests are held out.

Source: Wolff, "Poisson arrivals see time averages" (Operations Research 30, 1982).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leadline._core import CoreError, trace_format
from leadline.app.simulate.calibrating_arrivals import TRACE, Arrivals, fit_arrivals
from leadline.app.simulate.calibrating_fits import BEYOND, DEPTH, WEAK_PCT, BurstWindow, Fitted, RecordedLatencies
from leadline.app.simulate.calibrating_laws import LinearLaw, fit_line
from leadline.app.simulate.calibrating_loads import Array, Flags, LoadLevel, Loads, Seen
from leadline.core.io.pipes import as_file
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.traces import TraceFiles, find_traces, read_requests, read_trace

REQUESTS_MIN = 100  # Judgement: fewer say nothing of a load
LEVEL_REQUESTS_MIN = 30  # Judgement: of a number outstanding, in each half, for a mean of its latencies
CLOSED_GAP = 0.1  # Judgement: of the time between requests; a loop issues that soon after a completion, chance seldom
BLOCKS_MAX = 12
SPREAD_MAX = 3.0  # Judgement: a coefficient of variation above is a hiccup, not the device
# Judgement: stands for a device nothing is known of.
UNKNOWN = {"parallelism": 256, "service": 0.001}
_CLOCK_S = 1e-6  # of the coarsest trace, vscsiStats; a completion and what follows it may seem to be the same
_LATENCY_LOGS = "fio-lat-log"  # also a capture, which has rates and sizes beside it


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """One disk of a trace: columns by request, [n]: issued at (s), bytes, ways, latency (ms, NaN is not known)."""

    files: TraceFiles
    disk: str
    seen: Seen
    times_s: Array
    size_bytes: Array
    is_write: Flags
    is_random: Flags
    latency_ms: Array
    notes: tuple[str, ...]

    @property
    def duration_s(self) -> float:
        """From the first request to the last."""
        return float(self.times_s[-1])

    @property
    def outstanding(self) -> Array:
        """Of each request with a latency, how many were under way when it came, itself included; NaN of others."""
        known = np.isfinite(self.latency_ms)
        times = self.times_s[known]
        done = np.sort(times + self.latency_ms[known] / 1000.0)
        counts = np.full(len(self.times_s), np.nan)
        counts[known] = np.arange(1, len(times) + 1) - np.searchsorted(done, times, side="right")
        return counts

    @property
    def issues_when_done(self) -> bool:
        """Whether most requests come right after one was done."""
        known = np.isfinite(self.latency_ms)
        if known.sum() < REQUESTS_MIN:
            return False
        done = np.sort(self.times_s[known] + self.latency_ms[known] / 1000.0)
        before = np.searchsorted(done, self.times_s + _CLOCK_S, side="right")
        since = (self.times_s - done[np.maximum(before - 1, 0)])[before > 0]
        return len(since) > 0 and float(np.median(since)) < CLOSED_GAP * float(np.median(np.diff(self.times_s)))


def split(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Files that are traces, those of folders too, and what else there is to read."""
    traces: list[Path] = []
    others: list[Path] = []
    for path in map(as_file, paths):
        files = sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]
        trace_files = [file for file in files if _is_trace(file)]
        traces += trace_files
        if len(trace_files) < len(files) or not files:
            others.append(path)
    return traces, others


def _is_trace(path: Path) -> bool:
    try:
        return trace_format(path, str(path)) != _LATENCY_LOGS
    except CoreError:
        return False


def traced_disks(paths: Sequence[Path]) -> Iterator[Traced]:
    """Every disk of traces with enough requests.

    Raises:
        InputError: a trace cannot be read, or none has requests enough, with times.
    """
    if not paths:
        return
    traces, count = find_traces(paths)[0], 0
    for files in traces:
        for profile in read_trace(files).profiles:
            disk = _traced(files, profile.name)
            if disk is not None:
                count += 1
                yield disk
    if not count:
        raise InputError(
            ", ".join(files.name for files in traces),
            found=f"no disk of {REQUESTS_MIN} requests, with times",
            expected="a trace of a loaded disk",
            advice="Record longer, while there is load.",
        )


def _traced(files: TraceFiles, disk: str) -> Traced | None:
    requests = read_requests(files, disk)
    times_ns, sizes, is_write, is_random, latency_ns = requests.columns()
    if len(times_ns) < REQUESTS_MIN or times_ns[-1] == 0:
        return None
    times, size_bytes, latency = times_ns / 1e9, sizes.astype(np.float64), latency_ns / 1e6
    seen = _by_window(Entity(EntityKind.BLOCK_DEVICE, disk), times, size_bytes, is_write, latency)
    notes = tuple(f"{count:,} times: {message}" for _, message, count in requests.notes)
    return Traced(files, disk, seen, times, size_bytes, is_write, is_random, latency, notes)


def _by_window(entity: Entity, times: Array, sizes: Array, is_write: Flags, latency: Array) -> Seen:
    """Return rates and latencies of the requests by second, or by a twentieth of a short trace."""
    width = _width(float(times[-1]))
    index = (times / width).astype(np.int64)
    count = int(index[-1]) + 1

    def total(of: Array) -> Array:
        return np.asarray(np.bincount(index, weights=of, minlength=count), dtype=np.float64)

    ways = [(~is_write).astype(np.float64), is_write.astype(np.float64)]
    asked = [total(way) for way in ways]
    known = np.isfinite(latency).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = [total(way * sizes) / requests for way, requests in zip(ways, asked, strict=True)]
        mean = total(np.nan_to_num(latency)) / total(known)
    reads, writes = (requests / width for requests in asked)
    outstanding = (reads + writes) * mean / 1000.0
    times_ns = np.round((np.arange(count) + 1) * width * 1e9).astype(np.int64)
    one = np.zeros(count, dtype=np.intp)
    return Seen(entity, times_ns, one, reads, writes, size[0], size[1], mean, outstanding, False, width)


def _width(duration_s: float) -> float:
    return min(1.0, duration_s / 20.0)


def fit_trace(traced: Traced, name: str, *, replay: bool = False) -> Fitted:
    """Load and device of a traced disk; ``replay``: the recording is the load, whatever fits."""
    outstanding = traced.outstanding
    notes: list[str] = []
    line, device = None, dict(UNKNOWN)
    most = 1.0
    if np.isfinite(outstanding).any():
        line, device = _fit_latency(traced, outstanding, notes)
        most = max(float(np.nanmax(outstanding)), line.ends[1])
    else:
        notes.append("no completions in the trace: the device is a placeholder of 1 ms; put your own in its place")
    closed = traced.issues_when_done or bool(traced.seen.busy.any() and traced.seen.is_closed)
    arrivals: tuple[BurstWindow, ...] = ()
    kept = 0
    if closed:
        kept = max(round(float(np.nanmedian(outstanding))), 1)
        notes.append(f"requests come when others are done: a closed loop that keeps {kept} outstanding")
        streams: tuple[dict[str, Any], ...] = (
            _stream(traced, "io", np.ones(len(traced.times_s), bool), notes, oio=kept),
        )
    else:
        source, arrivals = fit_arrivals(traced.times_s)
        notes.append(source.describe(arrivals))
        replay = replay or source.name == TRACE
        streams = _open(traced, source, notes)
    recording = None
    if replay:
        recording = {"files": [str(path.absolute()) for path in traced.files.paths], "disk": traced.disk}
        notes.append(f"the recording is the load, request by request, {traced.duration_s:,.3g} s of it")
    recorded_s = round(traced.duration_s, 3) if replay else 0.0
    loads = Loads(closed, True, (_level(traced, kept),))
    recorded = RecordedLatencies(p95_ms_all=_p95(traced), is_traced=True)
    all_notes = (*notes, *traced.notes)
    return Fitted(
        name, traced.seen, loads, line, streams, device, most, all_notes, recording, recorded_s, arrivals, recorded
    )


def _level(traced: Traced, kept: int) -> LoadLevel:
    """The whole trace as one load, every other window of it held out."""
    seen = traced.seen
    busy = np.flatnonzero(seen.busy) if seen.busy.any() else np.arange(len(seen.rate))
    outstanding = float(np.nanmean(seen.outstanding[busy])) if np.isfinite(seen.outstanding[busy]).any() else 0.0
    odd = busy % 2 == 1
    return LoadLevel(busy[~odd], busy[odd], len(traced.times_s) / traced.duration_s, outstanding, kept)


def _p95(traced: Traced) -> float:
    """95th percentile of the latencies held out, ms; NaN where none was recorded."""
    latencies = traced.latency_ms[(traced.times_s / _width(traced.duration_s)).astype(np.int64) % 2 == 1]
    known = latencies[np.isfinite(latencies)]
    return float(np.quantile(known, 0.95)) if len(known) else float("nan")


# Latency.


def _fit_latency(traced: Traced, outstanding: Array, notes: list[str]) -> tuple[LinearLaw, dict[str, Any]]:
    """The line of latency against requests outstanding at arrival, and a device that follows it."""
    known = np.isfinite(outstanding) & (traced.latency_ms > 0)
    level, latency = outstanding[known], traced.latency_ms[known]
    window = (traced.times_s[known] / _width(traced.duration_s)).astype(np.int64)
    is_held = window % 2 == 1
    levels = _levels(level, latency, is_held)
    line = fit_line(*levels)
    low, high = float(levels[0].min()), float(levels[0].max())
    one = float(np.median(level)) * line.base_ms / float(latency.mean())
    ends = (one, one) if line.against == "nothing" else (1.0, max(float(DEPTH), BEYOND * high))
    line = replace(line, window_count=len(np.unique(window[is_held])), ends=ends)
    if line.error_pct > WEAK_PCT:
        notes.append("latency hardly follows the load seen here: something else decides it, and predictions are weak")
    if line.against == "nothing":
        notes.append("with fewer outstanding it is taken to be as slow, with more to do no more; record another load")
    ratio = latency / (line.base_ms + line.slope_ms * level)
    spread = min(float(ratio.std() / ratio.mean()), SPREAD_MAX)
    notes.append(_spread_note(spread, ratio[is_held]))
    notes.append(f"fitted to means by requests outstanding at arrival, {low:g} to {high:g}; beyond that it is a guess")
    return line, line.device(round(spread, 3))


def _levels(level: Array, latency: Array, is_held: Flags) -> tuple[Array, Array, Array]:
    """Numbers outstanding, mean latency in ms and requests; of each number those fitted, then those held out."""
    most = int(level.max())
    sums = [np.bincount(level[half].astype(int), latency[half], most + 1) for half in (~is_held, is_held)]
    counts = [np.bincount(level[half].astype(int), minlength=most + 1) for half in (~is_held, is_held)]
    enough = np.flatnonzero(np.minimum(*counts) >= LEVEL_REQUESTS_MIN)
    if not len(enough):  # all as one
        parts = [latency[half] for half in (~is_held, is_held)]
        both = [np.array([of(part) for part in parts], dtype=np.float64) for of in (np.mean, len)]
        return np.full(2, level.mean()), both[0], both[1]
    means = np.array([total[enough] / count[enough] for total, count in zip(sums, counts, strict=True)])
    weights = np.array([count[enough] for count in counts], dtype=np.float64)
    return np.repeat(enough.astype(np.float64), 2), means.T.ravel(), weights.T.ravel()


def _spread_note(spread: float, ratio: Array) -> str:
    """How well a lognormal of that spread says what one in a hundred takes."""
    sigma = float(np.sqrt(np.log1p(spread**2)))
    fitted, real = float(np.exp(2.326 * sigma - sigma**2 / 2.0)), float(np.quantile(ratio, 0.99))
    return f"spread {spread:.2f} around the line; one in 100 takes {real:.2g} times it, {fitted:.2g} as fitted"


# Sizes and ways.


def _open(traced: Traced, source: Arrivals, notes: list[str]) -> tuple[dict[str, Any], ...]:
    streams = []
    for label, way in (("reads", ~traced.is_write), ("writes", traced.is_write)):
        rate = float(way.sum()) / traced.duration_s / source.on_share
        if way.any():
            streams.append(_stream(traced, label, way, notes, rate_iops=round(rate, 3), **source.keys))
    return tuple(streams)


def _stream(traced: Traced, name: str, chosen: Flags, notes: list[str], **load: Any) -> dict[str, Any]:  # noqa: ANN401
    """Requests chosen of the trace as a stream of a workload."""
    sizes = traced.size_bytes[chosen]
    blocks = _blocks(sizes)
    common = sum(np.count_nonzero(sizes == size) for size in blocks) / len(sizes)
    mean = sum(size * share for size, share in blocks.items()) / 100.0
    off = 100.0 * (mean / float(sizes.mean()) - 1.0)
    plural = "s" if len(blocks) > 1 else ""
    notes.append(f"{name}: {len(blocks)} size{plural}, {100.0 * common:.1f} % of requests; mean size {off:+.1f} % off")
    return {
        "name": name,
        "block": next(iter(blocks)) if len(blocks) == 1 else blocks,
        "read_pct": round(100.0 * float(np.mean(~traced.is_write[chosen])), 1),
        "random_pct": round(100.0 * float(np.mean(traced.is_random[chosen])), 1),
        **load,
    }


def _blocks(sizes: Array) -> dict[int, float]:
    """The commonest sizes, rounded up to 512 bytes, with percentages that add up to 100."""
    whole = np.maximum(np.ceil(sizes / 512.0), 1.0).astype(np.int64) * 512
    values, counts = np.unique(whole, return_counts=True)
    top = np.argsort(-counts, kind="stable")[:BLOCKS_MAX]
    shares = np.round(100.0 * counts[top] / counts[top].sum(), 1)
    shares[0] += 100.0 - shares.sum()
    pairs = sorted((int(values[n]), round(float(share), 1)) for n, share in zip(top, shares, strict=True))
    return {size: share for size, share in pairs if share > 0}
