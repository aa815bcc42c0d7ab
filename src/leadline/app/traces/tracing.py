"""Use case: I/O traces characterised per disk: histograms, streams, burstiness, working set, miss-ratio curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline._core import TraceProfile
from leadline.core.model.histogram import Histogram
from leadline.formats.traces import Step, TraceFiles, find_traces, read_trace

if TYPE_CHECKING:
    from leadline._core import _TraceFacts as TraceFacts

WAYS = ("all", "read", "write")
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class LimitTable:
    """A histogram as vscsiStats prints it: ``limits`` are inclusive, the last count is above them all."""

    kind: str
    way: str
    limits: tuple[int, ...]
    counts: tuple[int, ...]
    low: float
    high: float
    mean: float

    @property
    def total(self) -> int:
        """How many values there are."""
        return sum(self.counts)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``; the limit of the last bucket is null."""
        buckets = [[limit, count] for limit, count in zip((*self.limits, None), self.counts, strict=True)]
        parts = {"kind": self.kind, "way": self.way, "count": self.total}
        return {**parts, "min": self.low, "max": self.high, "mean": self.mean, "buckets": buckets}


@dataclass(frozen=True, slots=True)
class Burstiness:
    """Events per window: variance over mean, the busiest over the mean, and idle windows; NaN is not measured."""

    window_s: float
    dispersion: float
    peak_to_mean: float
    idle_share: float


@dataclass(frozen=True, slots=True, eq=False)
class DiskTrace:
    """What one disk's requests are like."""

    profile: TraceProfile

    @property
    def name(self) -> str:
        """The disk's name."""
        return self.profile.name

    @property
    def facts(self) -> TraceFacts:
        """Single numbers; None is not measured."""
        return self.profile.facts()

    @property
    def request_count(self) -> int:
        """Reads and writes."""
        facts = self.facts
        return int(facts["read_count"] + facts["write_count"])

    @property
    def duration_s(self) -> float:
        """From the first request to the last; NaN when the trace has no times."""
        return float(self.facts["duration_ns"]) / _NS_PER_S or float("nan")

    def tables(self) -> list[LimitTable]:
        """All histograms over vscsiStats' limits."""
        nan = float("nan")
        tables = []
        for kind, way, limits, counts, summary in self.profile.tables():
            low, high, mean = summary or (nan, nan, nan)
            tables.append(LimitTable(kind, way, tuple(limits), tuple(counts), low, high, mean))
        return tables

    def histogram(self, kind: str, way: str = "all") -> Histogram | None:
        """Fine buckets of a kind, times in milliseconds; None when nothing was measured."""
        buckets = self.profile.buckets(kind, way)
        if buckets is None or not len(buckets[2]):
            return None
        unit, scale = ("ms", 1e-6) if kind.endswith("_us") else ("bytes" if "bytes" in kind else "count", 1.0)
        lower, upper, counts = buckets
        bounds = [np.asarray(bound, dtype=np.float64) * scale for bound in (lower, upper)]
        return Histogram(bounds[0], bounds[1], counts.astype(np.int64), unit)

    def quantiles(self, kind: str, way: str = "all") -> dict[str, float]:
        """Percentiles of a kind in the unit its name ends with; NaN when nothing was measured."""
        if kind == "io_size_bytes":  # lengths are no continuum: those that occur are the lower bounds of buckets
            sizes = self.histogram(kind, way)
            return {n: float("nan") if sizes is None else sizes.quantile_bounds(q)[0] for n, q in QUANTILES.items()}
        scale = 1e-3 if kind.endswith("_us") else 1.0  # of the profile's ns
        values = {name: self.profile.quantile(kind, way, share) for name, share in QUANTILES.items()}
        return {name: float("nan") if value is None else value * scale for name, value in values.items()}

    def burstiness(self) -> list[Burstiness]:
        """Over windows of 10 ms, 100 ms, 1 s and 10 s."""
        nan = float("nan")
        return [
            Burstiness(ns / _NS_PER_S, *(nan if value is None else value for value in values))
            for ns, *values in self.profile.dispersion()
        ]

    def curve(self) -> list[tuple[int, float]]:
        """Miss-ratio curve: cache size in bytes, share of page uses that miss under LRU."""
        return self.profile.curve()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "disk": self.name,
            "duration_s": self.duration_s,
            "facts": self.facts,
            "percentiles": {kind: {way: self.quantiles(kind, way) for way in WAYS} for kind in _FINE},
            "histograms": [table.to_dict() for table in self.tables()],
            "burstiness": [
                {name: getattr(part, name) for name in part.__dataclass_fields__} for part in self.burstiness()
            ],
            "miss_ratio_curve": [{"cache_bytes": size, "miss_ratio": ratio} for size, ratio in self.curve()],
        }


_FINE = ("io_size_bytes", "latency_us", "interarrival_us", "outstanding_count")


@dataclass(frozen=True, slots=True, eq=False)
class TraceReport:
    """One trace: its files and format, its disks, and what was repaired or left out (message, how often)."""

    files: TraceFiles
    disks: tuple[DiskTrace, ...]
    notes: tuple[tuple[str, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "trace": self.files.name,
            "format": self.files.format,
            "files": [str(path) for path in self.files.paths],
            "disks": [disk.to_dict() for disk in self.disks],
            "notes": [{"message": message, "count": count} for message, count in self.notes],
        }


def characterise(paths: Sequence[Path], step: Step | None = None) -> tuple[list[TraceReport], list[str]]:
    """Every trace among files and folders, and what in the folders is none.

    Raises:
        InputError: a trace cannot be read, or there is none.
    """
    traces, passed = find_traces(paths)
    reports = []
    for files in traces:
        trace = read_trace(files, step=step)
        disks = tuple(DiskTrace(profile) for profile in trace.profiles)
        reports.append(TraceReport(files, disks, tuple((message, count) for _, message, count in trace.notes)))
    return reports, passed
