"""Use case: a scenario fitted to captures: what each disk is asked for, and how its latency grows with the load.

Of every disk each interval gives a rate, a size, a share of reads, a mean latency and, by Little's law or as the tool
counts them, requests outstanding. The load is what was asked for (`calibrating_loads`); the device is a law that the
simulator knows too (`calibrating_laws`). What was written is then simulated beside the recording
(`calibrating_checks`). Traces hold every request, and are `calibrating_traces`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.app.read.importing import import_paths
from leadline.app.simulate.calibrating_checks import checked
from leadline.app.simulate.calibrating_fits import (
    BEYOND,
    DEPTH,
    NAME,
    Calibrated,
    Fitted,
    RecordedLatencies,
    scenario_of,
    text_of,
)
from leadline.app.simulate.calibrating_laws import AnyLaw, LinearLaw, Queue, Sight, closed_law, open_law, refitted
from leadline.app.simulate.calibrating_loads import Array, LoadLevel, Loads, Seen, Sums, loads_of, sums_of
from leadline.app.simulate.calibrating_traces import fit_trace, split, traced_disks
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Result
from leadline.core.model.vocabulary import EntityKind

WINDOWS_MIN = 10  # Judgement: a line on five intervals, tried on five
DISKS_MAX = 16  # Judgement: the busiest; more can be named one by one
SIZES_APART = 1.5  # Judgement: reads and writes whose sizes differ more are two streams
SPREAD_ASSUMED = 0.5
SURE_SHARE = 0.01  # Judgement: no mean of a load is surer than this; a recording has more errors than chance
INTERVALS_APART = 0.1  # of the time between samples; recordings that differ by more are not put together
REFITS = 200
DISKS_MANY = 4  # Judgement: more are simulated for a shorter time each
_COLUMNS = ("times_ns", "reads", "writes", "read_bytes", "write_bytes", "latency_ms", "outstanding")
MIB = 1024**2
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


def calibrate(
    paths: Sequence[Path],
    entity: str | None = None,
    name: str = "calibrated",
    *,
    replay: bool = False,
    report: Callable[[float, int, int], object] = lambda *_: None,
) -> Calibrated:
    """A scenario of the busiest disks of captures and traces, or of one machine's or one disk.

    ``replay``: what was traced is the load, request by request, instead of what is fitted to it. ``report`` is called
    with the share of the disks that have been simulated beside their recordings, their number and that of all disks.

    Raises:
        InputError: a file is damaged, or the captures do not hold what is needed.
        UsageError: there is no such entity, or nothing to replay.
    """
    traces, captures = split(paths)
    capture = import_paths(captures).capture if captures else None
    seen = list(seen_disks(capture)) if capture is not None else []
    traced = list(traced_disks(traces))
    if replay and not traced:
        raise UsageError("--replay", found="no trace", expected="an I/O trace", advice="Name the trace.")
    known = [*seen, *(disk.seen for disk in traced)]
    matching = [disk for disk in known if entity is None or _is_meant(disk.entity, entity)]
    if entity is not None and not matching:
        labels = sorted({disk.entity.label() for disk in known})
        raise UsageError(
            f"--entity {entity}",
            found="no disk of that name, or of a machine of that name, with rates and latencies",
            expected=f"one of {', '.join(labels[:8]) or 'none'}",
            advice="`leadline show` lists what the captures hold.",
        )
    by_seen = {id(disk.seen): disk for disk in traced}  # two traces may name a disk alike
    whole = [disk for disk in matching if id(disk) in by_seen or disk.busy.sum() >= WINDOWS_MIN]
    if not whole:
        raise InputError(
            ", ".join(str(path) for path in paths),
            found=f"{len(matching)} disks with rates and latencies, none in {WINDOWS_MIN} intervals of load",
            expected="reads and writes per second, throughput and latency of a loaded disk over time",
            advice="Record longer (iostat -x 1, esxtop -b), or fio with its logs (bench run keeps them).",
        )
    whole.sort(key=lambda disk: -float(np.nansum(disk.rate)))
    results = capture.results if capture is not None else []
    fitted = [
        fit_trace(by_seen[id(disk)], label, replay=replay) if id(disk) in by_seen else _fit(disk, label, results)
        for disk, label in _named(whole[:DISKS_MAX])
    ]
    disks = tuple(_checked(fitted, report))
    scenario = scenario_of(disks, name)
    return Calibrated(scenario, text_of(scenario, disks, paths), disks)


def _checked(fitted: Sequence[Fitted], report: Callable[[float, int, int], object]) -> Iterator[Fitted]:
    for number, disk in enumerate(fitted):
        report(number / len(fitted), number, len(fitted))
        yield checked(disk, many=len(fitted) > DISKS_MANY)
    report(1.0, len(fitted), len(fitted))


def _is_meant(entity: Entity, name: str) -> bool:
    return name in {str(entity), entity.label(), *(ancestor.name for ancestor in entity.lineage())}


def _named(disks: Sequence[Seen]) -> Iterator[tuple[Seen, str]]:
    """Each disk with a name that no other has."""
    taken: set[str] = set()
    for disk in disks:
        base = NAME.sub("-", disk.entity.label()).strip("-_")[:50] or "disk"
        name = next(text for n in range(1, len(disks) + 2) if (text := base if n == 1 else f"{base}-{n}") not in taken)
        taken.add(name)
        yield disk, name


def seen_disks(capture: Capture) -> Iterator[Seen]:
    """Every disk whose rates and latencies the capture holds; several recordings of one are put together."""
    for names in _RATES:
        recordings: dict[Entity, list[Seen]] = {}
        with_reads = {entity for group in capture.of(names[0], *_KINDS) for entity in group.entities}
        for name in names:
            for group in capture.of(name, *_KINDS):
                for entity in group.entities:
                    if name == names[0] or entity not in with_reads:  # writes alone
                        disk = _seen(capture, entity, group.measured(), names)
                        if disk is not None:
                            recordings.setdefault(entity, []).append(disk)
        for parts in recordings.values():
            yield from _joined(parts)


def _joined(parts: Sequence[Seen]) -> Iterator[Seen]:
    """Recordings of a disk one after the other as one; those that overlap, or of other intervals, stay apart."""
    runs: list[list[Seen]] = []
    for recording in sorted(parts, key=lambda one: int(one.times_ns[0])):
        fits = (run for run in runs if run[-1].times_ns[-1] < recording.times_ns[0] and _alike(run[-1], recording))
        run = next(fits, None)
        if run is None:
            runs.append([recording])
        else:
            run.append(recording)
    for run in runs:
        part = np.repeat(np.arange(len(run)), [len(recording.times_ns) for recording in run])
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(recording, name) for recording in run]) for name in _COLUMNS
        }
        yield replace(run[0], part=part, **columns)


def _alike(one: Seen, other: Seen) -> bool:
    return one.is_counted == other.is_counted and abs(one.interval_s / other.interval_s - 1.0) < INTERVALS_APART


def _seen(capture: Capture, entity: Entity, group: SeriesGroup, names: tuple[str, str]) -> Seen | None:
    times = group.times_ns
    if not len(times) or not group.interval_s > 0:
        return None

    def values(metric: str) -> Array:
        return _values(capture, metric, entity, times)

    ways = np.array([values(name) for name in names])
    reads, writes = np.where(np.isfinite(ways).any(axis=0), np.nan_to_num(ways), np.nan)
    sizes = next(
        (pair for pair in ([values(a), values(b)] for a, b in _SIZES) if np.isfinite(pair).any()),
        [np.full(len(times), np.nan)] * 2,
    )
    latency = _latency(values, reads, writes)
    if latency is None:
        return None
    counted = next(
        (total for total in (sum(map(values, metrics)) for metrics in _OUTSTANDING) if np.isfinite(total).any()), None
    )
    rate = reads + writes
    with np.errstate(divide="ignore", invalid="ignore"):
        of_read, of_write = (
            np.where(way > 0, size * MIB / way, np.nan) for way, size in zip((reads, writes), sizes, strict=True)
        )
    outstanding = rate * latency / 1000.0 if counted is None else np.asarray(counted, dtype=np.float64)
    part, is_counted = np.zeros(len(times), dtype=np.intp), counted is not None
    return Seen(
        entity, times, part, reads, writes, of_read, of_write, latency, outstanding, is_counted, group.interval_s
    )


def _latency(values: Any, reads: Array, writes: Array) -> Array | None:  # noqa: ANN401 - a function
    """Return the mean latency of reads and writes together, ms [n]; None when no latency was recorded."""
    for names in _LATENCIES:
        of_reads, of_writes = map(values, names)
        if np.isfinite(of_reads).any() or np.isfinite(of_writes).any():
            total = np.where(reads > 0, reads * of_reads, 0.0) + np.where(writes > 0, writes * of_writes, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(reads + writes > 0, total / (reads + writes), np.nan)
    for name in _LATENCY:
        samples = values(name)
        if np.isfinite(samples).any():
            return np.asarray(samples, dtype=np.float64)
    return None


def _values(capture: Capture, metric: str, entity: Entity, times: NDArray[np.int64]) -> Array:
    """A metric of an entity at these moments, float64 [n]; NaN where no sample is within half an interval."""
    samples = np.full(len(times), np.nan)
    for group in capture.of(metric):
        row = group.row(entity)
        if row is None:
            continue
        at = np.clip(np.searchsorted(group.times_ns, times), 1, max(len(group.times_ns) - 1, 1))
        at -= times - group.times_ns[at - 1] <= group.times_ns[np.minimum(at, len(group.times_ns) - 1)] - times
        near = np.abs(group.times_ns[at] - times) <= 0.5e9 * group.interval_s
        samples[near] = row[at[near]]
    return samples


def _fit(seen: Seen, name: str, results: Sequence[Result]) -> Fitted:
    loads = loads_of(seen)
    most = float(seen.outstanding[seen.busy].max())
    top = float(np.ceil(max(DEPTH, BEYOND * most)))
    parts = [level.fitted for level in loads.levels]
    sums = sums_of(seen, parts)
    sight = _sight(loads, sums, *sums.means())
    law = _law(loads, sight, top)
    law = replace(law, intervals=_intervals(law, loads, sums))
    notes = [*_load_notes(loads, seen), *_law_notes(law, loads)]
    notes.append(
        f"seen up to {seen.rate[seen.busy].max():,.0f}/s and {most:.3g} outstanding; beyond that it is a guess"
    )
    if not isinstance(law, Queue):
        notes.append(
            f"spread {SPREAD_ASSUMED:g} around the mean is assumed: captures hold means, so percentiles are a guess"
        )
    streams = _closed(seen, loads.written) if loads.is_closed else _open(seen)
    device, recorded = law.device(SPREAD_ASSUMED), _recorded(seen, loads, results)
    return Fitted(name, seen, loads, law, streams, device, top, tuple(notes), recorded=recorded)


def _sight(loads: Loads, sums: Sums, rate: Array, latency: Array) -> Sight:
    """What was seen of each level, with weights from how much its windows differ."""
    arriving = np.array([level.arriving for level in loads.levels])
    rate = np.where(loads.is_closed, [level.rate for level in loads.levels], rate)
    off = (sums.work - latency[sums.label] * sums.rate) ** 2
    size = len(loads.levels)
    missed, whole = np.bincount(sums.label, off, size), np.bincount(sums.label, sums.work, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = 1.0 / ((np.sqrt(missed) / whole) ** 2 + SURE_SHARE**2)
    known = np.isfinite(latency) & np.isfinite(weight)
    return Sight(rate[known], arriving[known], latency[known], weight[known])


def _law(loads: Loads, sight: Sight, top: float) -> AnyLaw:
    """The law of the device; of one load a constant, of a loop up to what it kept outstanding."""
    if not loads.is_one and len(sight.rate) > 1:
        return closed_law(sight, top) if loads.is_closed else open_law(sight, top)
    mean = float(np.average(sight.latency_ms, weights=sight.weight))
    end = float(max(level.clients for level in loads.levels))  # none of the loop finds more
    return LinearLaw(against="nothing", base_ms=mean, slope_ms=0.0, ends=(end, end) if loads.is_closed else (1.0, top))


def _intervals(law: AnyLaw, loads: Loads, sums: Sums) -> dict[str, tuple[float, float]]:
    """95 % intervals of the law's numbers, by windows drawn anew."""
    drawn = [refitted(law, _sight(loads, sums, *means)) for means in sums.resampled(REFITS)]
    if not drawn:
        return {}
    bounds = {name: np.quantile([refit[name] for refit in drawn], [0.025, 0.975]) for name in drawn[0]}
    return {name: (float(low), float(high)) for name, (low, high) in bounds.items()}


def _load_notes(loads: Loads, seen: Seen) -> Iterator[str]:
    if loads.is_closed:
        kept = " or ".join(f"{level.outstanding:.3g}" for level in loads.levels)
        yield f"the load keeps {kept} requests outstanding, whatever the rate: a closed loop"
    else:
        yield "the load comes at its own rate: an open stream; idle intervals count"
    if len(loads.levels) > 1:
        levels = ", ".join(level.words for level in loads.levels)
        mine = loads.written.words if loads.is_closed else "the mean of all intervals"
        yield f"seen at {len(loads.levels)} loads: {levels}; the file has {mine}; a file of one disk goes through all"
    yield "outstanding as the tool counted it" if seen.is_counted else "outstanding by Little's law"


def _law_notes(law: AnyLaw, loads: Loads) -> Iterator[str]:
    if law.against == "nothing":
        yield "the recording has one load, which cannot separate base and slope of the latency; record a second load"
        if loads.is_closed:
            yield "assumed: with fewer outstanding the device is as slow, with more it does no more operations"
        else:
            yield "assumed: the device is as slow under any load; under more load it is probably slower than that"
    elif isinstance(law, LinearLaw) and law.intervals.get("slope_ms", (1.0, 1.0))[0] <= 0.0:
        yield "the slope may be 0: latency hardly differs between the loads that were seen"


def _recorded(seen: Seen, loads: Loads, results: Sequence[Result]) -> RecordedLatencies:
    """95th percentiles from the load tool's own results of this job: of each level that whole results belong to."""
    mine = [one for one in results if seen.entity.kind is EntityKind.JOB and one.job == seen.entity.name]
    kinds = {str(one.workload.get("percentiles_of")) for one in mine}
    kind = next((name for name in ("lat", "clat") if name in kinds), None)
    mine = [one for one in mine if kind is None or one.workload.get("percentiles_of") == kind]
    by_level: list[list[Histogram]] = [[] for _ in loads.levels]
    for one in mine:
        histograms = [part.histogram for part in one.operations if part.histogram is not None]
        level = _level_of(seen, loads, one)
        if level is not None:
            by_level[level] += histograms
    return RecordedLatencies(
        tuple(_p95(histograms) for histograms in by_level),
        _p95([part for histograms in by_level for part in histograms]),
    )


def _level_of(seen: Seen, loads: Loads, result: Result) -> int | None:
    """Return the index of the load level that a result belongs to; None where its time is unknown or spans several."""
    if len(loads.levels) == 1:
        return 0
    if result.start_ns is None or not result.duration_s > 0:
        return None
    begin, end = result.start_ns, result.start_ns + result.duration_s * 1e9
    times = [seen.times_ns[np.concatenate([level.fitted, level.held_out])] for level in loads.levels]
    inside = [int(((of > begin) & (of <= end)).sum()) for of in times]
    return int(np.argmax(inside)) if max(inside) > 0.9 * sum(inside) else None


def _p95(histograms: Sequence[Histogram]) -> float:
    return Histogram.merged(histograms).quantile(0.95) if histograms else float("nan")


def _block(sizes: Array, weights: Array) -> int:
    """The mean size of an operation, to 512 bytes; 8 KiB where nothing says it."""
    known = np.isfinite(sizes) & (weights > 0)
    if not known.any():
        return 8192
    return max(round(float(np.average(sizes[known], weights=weights[known])) / 512), 1) * 512


def _open(seen: Seen) -> tuple[dict[str, Any], ...]:
    busy = seen.busy
    known = np.isfinite(seen.rate)
    reads, writes = float(seen.reads[known].mean()), float(seen.writes[known].mean())
    sizes = _block(seen.read_bytes[busy], seen.reads[busy]), _block(seen.write_bytes[busy], seen.writes[busy])
    ways = [("reads", reads, sizes[0], 100.0), ("writes", writes, sizes[1], 0.0)]
    return tuple(
        {"name": name, "block": size, "read_pct": pct, "rate_iops": round(rate, 3)}
        for name, rate, size, pct in ways
        if rate >= 0.01
    )


def _closed(seen: Seen, level: LoadLevel) -> tuple[dict[str, Any], ...]:
    busy = seen.busy
    reads, writes = float(seen.reads[busy].sum()), float(seen.writes[busy].sum())
    share = reads / (reads + writes)
    sizes = _block(seen.read_bytes[busy], seen.reads[busy]), _block(seen.write_bytes[busy], seen.writes[busy])
    if min(share, 1.0 - share) < 0.01:
        blocks: Any = sizes[0] if share > 0.5 else sizes[1]
    elif max(sizes) / min(sizes) < SIZES_APART:
        blocks = round((share * sizes[0] + (1.0 - share) * sizes[1]) / 512) * 512
    else:
        blocks = {sizes[0]: round(100.0 * share, 1), sizes[1]: round(100.0 - round(100.0 * share, 1), 1)}
    think = {"think_time_s": round(level.think_s, 9)} if level.think_s else {}
    return ({"name": "io", "block": blocks, "read_pct": round(100.0 * share, 1), "oio": level.clients, **think},)
