"""Use case: two runs compared: what changed, by how much, and whether these data can show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leadline.core.histogram import Histogram
from leadline.core.resampling import difference_interval
from leadline.core.run import PERCENTILES, Pooled, Run, percentiles

NOTICEABLE = 0.02  # Judgement: less than 2 % of change matters to nobody, however sure
Z_95 = 1.959964
HISTOGRAM_ERROR = 1.0 / 64.0  # width of fio's buckets, below which a percentile cannot be told


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric before and after; ``change``, ``low`` and ``high`` are shares of before, NaN when not known."""

    name: str
    unit: str
    before: float
    after: float
    change: float
    low: float
    high: float
    lower_is_better: bool

    @property
    def shown(self) -> bool:
        """Whether these data show a difference that matters."""
        return self.low * self.high > 0 and abs(self.change) >= NOTICEABLE

    @property
    def worse(self) -> bool:
        """Whether it became worse, surely."""
        return self.shown and (self.change > 0) == self.lower_is_better

    @property
    def word(self) -> str:
        """For people."""
        if self.low != self.low:
            return "too few samples"
        return "no difference shown" if not self.shown else "worse" if self.worse else "better"


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs side by side."""

    before: Run
    after: Run
    metrics: tuple[MetricChange, ...]
    unlike: tuple[str, ...]

    @property
    def worse(self) -> bool:
        """Whether anything became worse, surely."""
        return any(part.worse for part in self.metrics)

    @property
    def sentence(self) -> str:
        """For people."""
        if any(part.shown for part in self.metrics):
            worse = [part.name for part in self.metrics if part.worse]
            better = [part.name for part in self.metrics if part.shown and not part.worse]
            parts = [f"{word}: {', '.join(names)}" for word, names in (("worse", worse), ("better", better)) if names]
            return "; ".join(parts).capitalize() + "."
        if all(part.low != part.low for part in self.metrics):
            return "Too few samples to tell a difference; measure longer."
        return "No difference that this data can show."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        fields = ("name", "unit", "before", "after", "change", "low", "high", "shown", "worse")
        return {
            "before": self.before.id,
            "after": self.after.id,
            "unlike": list(self.unlike),
            "metrics": [{name: getattr(part, name) for name in fields} for part in self.metrics],
            "sentence": self.sentence,
        }


def compare_runs(before: Run, after: Run) -> RunComparison:
    """What changed between two runs, per metric; what the runs did not have in common is named."""
    sides = [[[tick.per_s for tick in part.ticks] for part in run.rounds] for run in (before, after)]
    change, low, high = difference_interval(sides[0], sides[1], before.seed)
    name, unit, rates = "operations", "per_s", (before.per_s(), after.per_s())
    if before.is_network and after.is_network:
        name, unit, rates = "throughput", "mbit_per_s", (before.mbit_per_s(), after.mbit_per_s())
    metrics = [MetricChange(name, unit, rates[0].mean, rates[1].mean, change, low, high, False)]
    later = {part.name: part for part in after.pooled()}
    for old in before.pooled():
        new = later.get(old.name)
        if new is not None and old.histogram is not None and new.histogram is not None:
            metrics += _percentile_changes(old, new)
    return RunComparison(before, after, tuple(metrics), tuple(_unlike(before, after)))


def _percentile_changes(old: Pooled, new: Pooled) -> list[MetricChange]:
    found: list[MetricChange] = []
    if old.histogram is None or new.histogram is None:
        return found
    now = percentiles(new.histogram)
    for name, (ms, _) in percentiles(old.histogram).items():
        if name in now:
            ratio = now[name][0] / ms - 1.0
            error = np.hypot(_error(old.histogram, PERCENTILES[name]), _error(new.histogram, PERCENTILES[name]))
            low, high = ratio - error * (1 + ratio), ratio + error * (1 + ratio)
            found.append(
                MetricChange(f"{old.name} {name}", "ms", ms, now[name][0], ratio, float(low), float(high), True)
            )
    return found


def _error(histogram: Histogram, share: float) -> float:
    """Relative half width of a percentile's 95 % interval: from the ranks of the samples, and the buckets' width.

    Source: Hahn and Meeker, Statistical Intervals (1991), section 5.2. Requests of one second resemble each other, so
    of every hundred only one is counted: Judgement.
    """
    independent = max(histogram.total / 100.0, 1.0)
    away = Z_95 * np.sqrt(share * (1.0 - share) / independent)
    middle = histogram.quantile(share)
    low, high = histogram.quantile(max(share - away, 0.0)), histogram.quantile(min(share + away, 1.0))
    return float(max(high - low, 0.0) / 2.0 / middle + HISTOGRAM_ERROR) if middle > 0 else float("nan")


def _unlike(before: Run, after: Run) -> list[str]:
    """Conditions that differ, because of which the runs may not be comparable."""
    found = []
    keys = sorted({*before.workload, *after.workload} - {"name", "about", "source", "notes", "timing", "steady"})
    found += [f"workload: {key} differs" for key in keys if before.workload.get(key) != after.workload.get(key)]
    for key in sorted({*before.host, *after.host}):
        if before.host.get(key) != after.host.get(key):
            found.append(f"{key}: {before.host.get(key)} then {after.host.get(key)}")
    if before.tool_version != after.tool_version:
        found.append(f"{before.tool}: {before.tool_version} then {after.tool_version}")
    for run in (before, after):
        if run.warm_up is not None and not run.warm_up.steady:
            found.append(f"{run.id}: {run.warm_up.sentence()}")
    return found
