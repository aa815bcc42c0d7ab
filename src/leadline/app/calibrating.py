"""Use case: a scenario fitted to captures: what each disk is asked for, and how its latency grows with the load.

Of every disk each interval gives a rate, a size, a share of reads, a mean latency and, by Little's law or as the tool
counts them, requests outstanding. The load is what was asked for; the device is the line of `calibrating_fits`. Latency
against outstanding at a given rate would be latency against itself: there it is fitted against the rate. Traces hold
every request, and are `calibrating_traces`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.app.calibrating_fits import (
    NAME,
    WEAK_PCT,
    Array,
    Calibrated,
    Fitted,
    Seen,
    fit_line,
    scenario_of,
    text_of,
)
from leadline.app.calibrating_traces import fit_trace, split, traced_disks
from leadline.app.importing import import_paths
from leadline.core.capture import Capture, SeriesGroup
from leadline.core.entities import Entity
from leadline.core.errors import InputError, UsageError
from leadline.core.vocabulary import EntityKind

WINDOWS_MIN = 10  # Judgement: a line on five intervals, tried on five
DISKS_MAX = 16  # Judgement: the busiest; more can be named one by one
SIZES_APART = 1.5  # Judgement: reads and writes whose sizes differ more are two streams
SPREAD_ASSUMED = 0.5
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
    paths: Sequence[Path], entity: str | None = None, name: str = "calibrated", *, replay: bool = False
) -> Calibrated:
    """A scenario of the busiest disks of captures and traces, or of one machine's or one disk.

    ``replay``: what was traced is the load, request by request, instead of what is fitted to it.

    Raises:
        InputError: a file is damaged, or the captures do not hold what is needed.
        UsageError: there is no such entity, or nothing to replay.
    """
    traces, captures = split(paths)
    seen = list(seen_disks(import_paths(captures).capture)) if captures else []
    traced = list(traced_disks(traces))
    if replay and not traced:
        raise UsageError("--replay", found="no trace", expected="an I/O trace", advice="Name the trace.")
    known = [*seen, *(own.seen for own in traced)]
    found = [own for own in known if entity is None or _is_meant(own.entity, entity)]
    if entity is not None and not found:
        labels = sorted({own.entity.label() for own in known})
        raise UsageError(
            f"--entity {entity}",
            found="no disk of that name, or of a machine of that name, with rates and latencies",
            expected=f"one of {', '.join(labels[:8]) or 'none'}",
            advice="`leadline show` lists what the captures hold.",
        )
    by_seen = {id(own.seen): own for own in traced}  # two traces may name a disk alike
    whole = [own for own in found if id(own) in by_seen or own.busy.sum() >= WINDOWS_MIN]
    if not whole:
        raise InputError(
            ", ".join(str(path) for path in paths),
            found=f"{len(found)} disks with rates and latencies, none in {WINDOWS_MIN} intervals of load",
            expected="reads and writes per second, throughput and latency of a loaded disk over time",
            advice="Record longer (iostat -x 1, esxtop -b), or fio with its logs (bench run keeps them).",
        )
    whole.sort(key=lambda own: -float(np.nansum(own.rate)))
    disks = tuple(
        fit_trace(by_seen[id(own)], label, replay=replay) if id(own) in by_seen else _fit(own, label)
        for own, label in _named(whole[:DISKS_MAX])
    )
    scenario = scenario_of(disks, name)
    return Calibrated(scenario, text_of(scenario, disks, paths), disks)


def _is_meant(entity: Entity, name: str) -> bool:
    return name in {str(entity), entity.label(), *(own.name for own in entity.lineage())}


def _named(disks: Sequence[Seen]) -> Iterator[tuple[Seen, str]]:
    """A name of its own for each."""
    taken: set[str] = set()
    for own in disks:
        base = NAME.sub("-", own.entity.label()).strip("-_")[:50] or "disk"
        name = next(text for n in range(1, len(disks) + 2) if (text := base if n == 1 else f"{base}-{n}") not in taken)
        taken.add(name)
        yield own, name


def seen_disks(capture: Capture) -> Iterator[Seen]:
    """Every disk whose rates and latencies the capture holds."""
    for reads_name, writes_name in _RATES:
        for group in capture.of(reads_name, *_KINDS):
            for entity in group.entities:
                found = _seen(capture, entity, group, (reads_name, writes_name))
                if found is not None:
                    yield found


def _seen(capture: Capture, entity: Entity, group: SeriesGroup, names: tuple[str, str]) -> Seen | None:
    times = group.times_ns

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
    is_counted = counted is not None
    return Seen(entity, reads, writes, of_read, of_write, latency, outstanding, is_counted, group.interval_s)


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


def _fit(own: Seen, name: str) -> Fitted:
    busy = own.busy
    closed, notes = own.is_closed, []
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
    low, most = float(own.outstanding[busy].min()), float(own.outstanding[busy].max())
    notes.append(f"seen up to {own.rate[busy].max():,.0f}/s and {most:.3g} outstanding; beyond that it is a guess")
    notes.append(
        f"spread {SPREAD_ASSUMED:g} around the mean is assumed: captures hold means, so percentiles are a guess"
    )
    device = {"curve": line.curve(low, most, float(own.rate[busy].mean())), "spread": SPREAD_ASSUMED}
    most = max(float(stream.get("oio", 1)) for stream in streams)
    return Fitted(name, own, line, streams, device, most, tuple(notes))


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
