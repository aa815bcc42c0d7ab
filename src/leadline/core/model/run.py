"""Runs: one execution of a workload on a target, with its rounds, what it ran on, and what came out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.units import factor
from leadline.core.statistics.resampling import Interval, mean_interval
from leadline.core.statistics.steady import SteadyState

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
BEHIND_MIN = 10  # Judgement: samples above a percentile, without which it is one unlucky request


@dataclass(frozen=True, slots=True)
class Round:
    """One measured round: its results by job, and its seconds."""

    label: str
    results: tuple[Result, ...]
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class Pooled:
    """One kind of operation over all jobs, machines and rounds: percentiles from the merged histogram.

    Attributes:
        name: ``job operation``.
        per_s: operations per second with its interval over the seconds, where seconds are known; else over rounds.
        percentiles_ms: name -> (ms, samples above it); absent where fewer than ten samples are above.
    """

    name: str
    per_s: float
    bytes_per_s: float
    count: float
    mean_ms: float
    percentiles_ms: dict[str, tuple[float, int]]
    histogram: Histogram | None


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it is stored."""

    id: str
    name: str
    state: str
    tool: str
    target: str
    started: str
    seed: int
    workload: dict[str, Any]
    commands: tuple[tuple[str, ...], ...] = ()
    tool_version: str | None = None
    warm_up: SteadyState | None = None
    rounds: tuple[Round, ...] = ()
    host: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def per_s(self) -> Interval:
        """Operations per second of all jobs together, by seconds, with a bootstrap interval."""
        return mean_interval([[tick.per_s for tick in part.ticks] for part in self.rounds], self.seed)

    @property
    def is_network(self) -> bool:
        """Whether a network was loaded: its rate is told in bits, not in operations."""
        return "network" in self.workload

    def mbit_per_s(self) -> Interval:
        """10^6 bits per second of all jobs together, by seconds, with a bootstrap interval."""
        seconds = [[tick.bytes_per_s * 8.0 / 1e6 for tick in part.ticks] for part in self.rounds]
        return mean_interval(seconds, self.seed)

    def counted_per_s(self) -> float:
        """Operations per second as the tool counted them over all its time, all jobs together."""
        return float(sum(operation.per_s for operation in self.pooled()))

    def pooled(self) -> list[Pooled]:
        """Every job's operations over all rounds, of all hosts together."""
        by_operation: dict[tuple[str, str], list[Operation]] = {}
        for part in self.rounds:
            at_once: dict[tuple[str, str], dict[str | None, list[Operation]]] = {}
            for result in part.results:
                for operation in result.operations:
                    by_host = at_once.setdefault((result.job, operation.name), {})
                    by_host.setdefault(result.host, []).append(operation)
            for key, hosts in at_once.items():
                by_operation.setdefault(key, []).extend(_together(hosts))
        return [pool(f"{job} {name}", operations) for (job, name), operations in by_operation.items()]


def pool(name: str, operations: Iterable[Operation]) -> Pooled:
    """Operations of equal kind measured one after the other: rates averaged, histograms merged."""
    parts = list(operations)
    histograms = [part.histogram for part in parts if part.histogram is not None and part.histogram.total]
    merged = Histogram.merged(histograms) if histograms else None
    counts = np.array([part.count for part in parts], dtype=np.float64)
    weights = counts
    if not np.isfinite(counts).any():  # rounds are equally long, so that rates stand for counts
        weights = np.array([part.per_s for part in parts], dtype=np.float64)
    means = np.array([part.latency_ms.get("mean", float("nan")) for part in parts])
    known = np.isfinite(weights) & np.isfinite(means) & (weights > 0)
    mean = float(np.average(means[known], weights=weights[known])) if known.any() else float("nan")
    return Pooled(
        name,
        _mean(part.per_s for part in parts),
        _mean(part.bytes_per_s for part in parts),
        float(np.nansum(counts)) if np.isfinite(counts).any() else float("nan"),
        mean,
        {} if merged is None else percentiles(merged),
        merged,
    )


def _together(hosts: dict[str | None, list[Operation]]) -> list[Operation]:
    """What hosts did at the same time as one operation: rates added, histograms merged; one host's stay as they are."""
    if len(hosts) == 1:
        return next(iter(hosts.values()))
    parts = [pool("", operations) for operations in hosts.values()]
    histograms = [part.histogram for part in parts if part.histogram is not None]
    counts = np.array([part.count for part in parts])
    means = np.array([part.mean_ms for part in parts])
    known = np.isfinite(counts) & np.isfinite(means) & (counts > 0)
    mean = float(np.average(means[known], weights=counts[known])) if known.any() else float("nan")
    return [
        Operation(
            next(iter(hosts.values()))[0].name,
            float(sum(part.per_s for part in parts)),
            float(sum(part.bytes_per_s for part in parts)),
            float(counts.sum()),
            {"mean": mean},
            Histogram.merged(histograms) if histograms else None,
        )
    ]


def percentiles(histogram: Histogram) -> dict[str, tuple[float, int]]:
    """Percentile -> (ms, samples above it), for those with enough samples above."""
    total, to_ms = histogram.total, factor(histogram.unit, "ms")
    above = {name: int(total * (1.0 - share) + 1e-9) for name, share in PERCENTILES.items()}
    return {
        name: (histogram.quantile(share) * to_ms, above[name])
        for name, share in PERCENTILES.items()
        if above[name] >= BEHIND_MIN
    }


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if value == value]  # noqa: PLR0124 - NaN is not measured
    return float(np.mean(known)) if known else float("nan")
