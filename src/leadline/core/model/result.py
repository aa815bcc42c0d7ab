"""Results of load tools: what one run of fio, pgbench, sysbench, ioping, iperf3, vdbench or HammerDB measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import isfinite
from typing import Any

from leadline.core.model.histogram import Histogram
from leadline.core.model.units import show

MANY_COUNT = 1.5  # more than one at a time
CLIPPED_SLACK = 1e-3  # tools print rounded


class Subject(StrEnum):
    """What an operation is done on."""

    DISK = "disk"
    DATABASE = "database"


_SUBJECTS = {
    **dict.fromkeys(("read", "write", "trim", "mixed", "sync", "io", "request", "fsync", "fdatasync"), Subject.DISK),
    **dict.fromkeys(("open_sync", "open_datasync", "fsync_writethrough"), Subject.DISK),
    **dict.fromkeys(("transaction", "query"), Subject.DATABASE),
}
_PLACES = ("filename", "directory", "lun")  # what names a disk among a tool's options
# Metrics of which a result is one sample: the mean over its whole run.
_MEANS = {"job_latency_ms": Subject.DISK, "db_latency_ms": Subject.DATABASE}


@dataclass(frozen=True, slots=True)
class Operation:
    """What was measured for one kind of operation (read, write, transaction, stream).

    Every field may be NaN: not measured. ``latency_ms`` maps statistics the tool printed itself (``mean``, ``min``,
    ``max``, ``stddev``, ``p50``, ``p99``, ``p99.9``) to milliseconds; percentiles of several results must come from
    ``histogram``, never from these. ``ceiling_ms`` is the longest latency that the tool's own histogram can tell: a
    percentile there means "at least"; NaN: it has no such end.
    """

    name: str
    per_s: float = float("nan")
    bytes_per_s: float = float("nan")
    count: float = float("nan")
    latency_ms: dict[str, float] = field(default_factory=dict)
    histogram: Histogram | None = None
    ceiling_ms: float = float("nan")

    @property
    def mean_ms(self) -> float:
        """The mean latency, as printed; NaN: not measured."""
        return self.latency_ms.get("mean", float("nan"))

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the histogram, else as printed; NaN: not measured."""
        if self.histogram is not None and self.histogram.unit == "ms":
            return self.histogram.quantile(0.99)
        return self.latency_ms.get("p99", float("nan"))

    @property
    def outstanding_count(self) -> float:
        """Operations under way on average: rate x mean latency (Little's law)."""
        return self.per_s * self.mean_ms / 1000.0

    def is_clipped(self, value_ms: float) -> bool:
        """Whether a percentile lies at the end of the tool's histogram, so that the latency was at least that."""
        return value_ms >= self.ceiling_ms * (1.0 - CLIPPED_SLACK)

    @property
    def clipped(self) -> tuple[str, ...]:
        """Names of the percentiles that mean "at least"."""
        return tuple(n for n, value in self.latency_ms.items() if n.startswith("p") and self.is_clipped(value))

    def latency_words(self) -> str:
        """Its latency as a text: "mean 7,653 ms, p99 at least 17,113 ms, with 3,660 under way"."""
        words = [f"mean {show(self.mean_ms, 'ms')}"]
        if isfinite(self.p99_ms):
            words.append(f"p99 {'at least ' if self.is_clipped(self.p99_ms) else ''}{show(self.p99_ms, 'ms')}")
        if self.outstanding_count >= MANY_COUNT:
            words.append(f"with {self.outstanding_count:,.0f} under way")
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Result:
    """One result: the tool, the job, how long it ran, what it was asked to do, what came out.

    ``is_observed``: the tool made no load itself but counted what others did (vscsiStats).
    """

    tool: str
    job: str
    operations: tuple[Operation, ...]
    duration_s: float = float("nan")
    start_ns: int | None = None
    tool_version: str | None = None
    host: str | None = None
    workload: dict[str, Any] = field(default_factory=dict)
    error_count: int = 0
    source: str = ""
    is_observed: bool = False

    def operation(self, name: str) -> Operation | None:
        """The operation of that name, or None."""
        return next((operation for operation in self.operations if operation.name == name), None)

    def measured(self, subject: Subject) -> tuple[Operation, ...]:
        """The operations on a subject whose mean latency was measured under the tool's own load."""
        if self.is_observed:
            return ()
        return tuple(o for o in self.operations if _SUBJECTS.get(o.name) is subject and isfinite(o.mean_ms))

    def has(self, metric: str) -> bool:
        """Whether it is a sample of a metric."""
        return metric in _MEANS and bool(self.measured(_MEANS[metric]))

    @property
    def place(self) -> str:
        """What it was asked to read or write: a device, file or folder; empty where the tool does not say."""
        return next((str(self.workload[name]) for name in _PLACES if self.workload.get(name)), "")

    @property
    def end_ns(self) -> int | None:
        """When it ended; None: not known."""
        if self.start_ns is None or not self.duration_s > 0:
            return None
        return self.start_ns + round(self.duration_s * 1e9)


def run_together(results: Iterable[Result]) -> list[Result]:
    """The results with those of one disk's jobs that ran at the same time pooled: they share its queue.

    Jobs belong together when one recording of one tool holds them, they read or wrote the same place, and their times
    overlap. Rates add up, means are weighted by rate, percentiles come from the merged histograms or are not known.
    """
    runs: list[list[Result]] = []
    ends: list[int] = []
    for result in sorted(results, key=lambda one: (one.source, one.tool, one.place, one.start_ns or 0)):
        last = runs[-1][-1] if runs else None
        start_ns, end_ns = result.start_ns, result.end_ns
        same = last is not None and (last.source, last.tool, last.place) == (result.source, result.tool, result.place)
        if same and start_ns is not None and end_ns is not None and start_ns < ends[-1]:
            runs[-1].append(result)
            ends[-1] = max(ends[-1], end_ns)
        else:
            runs.append([result])
            ends.append(end_ns or 0)
    return [_pooled(run) if len(run) > 1 else run[0] for run in runs]


def _pooled(run: list[Result]) -> Result:
    first = run[0]
    names = dict.fromkeys(each.name for result in run for each in result.operations)
    every = ([one for one in (result.operation(name) for result in run) if one is not None] for name in names)
    seconds = (max(result.end_ns or 0 for result in run) - (first.start_ns or 0)) / 1e9
    return replace(
        first,
        job=f"{first.job} and {len(run) - 1} more",
        operations=tuple(_pooled_operation(each) for each in every),
        duration_s=seconds,
        error_count=sum(result.error_count for result in run),
    )


def _pooled_operation(each: list[Operation]) -> Operation:
    per_s = sum(one.per_s for one in each)
    mean_ms = sum(one.per_s * one.mean_ms for one in each) / per_s if per_s > 0 else float("nan")
    histograms = [one.histogram for one in each if one.histogram is not None]
    return Operation(
        each[0].name,
        per_s,
        sum(one.bytes_per_s for one in each),
        sum(one.count for one in each),
        {"mean": mean_ms},
        Histogram.merged(histograms) if len(histograms) == len(each) else None,
        each[0].ceiling_ms,
    )


@dataclass(frozen=True, slots=True)
class Tick:
    """What came out of about one second: operations and bytes per second, p99 latency in ms (NaN: not known)."""

    elapsed_s: float
    per_s: float
    bytes_per_s: float = float("nan")
    p99_ms: float = float("nan")


Watch = Callable[[Tick], bool]
