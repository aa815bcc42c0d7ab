"""Use case: runs compared: what changed, by how much, and whether these data can show it.

A side is one run or several. The interval of a change comes from how much runs of one kind differ among themselves
(`leadline.core.statistics.between_runs`): the runs of the sides, else like runs that were kept earlier. With one run
on each side and no history the spread within the two runs is all there is; then nothing is called better or worse.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import sqrt
from typing import Any

import numpy as np

from leadline.app.measure.discovery import discovery_limit
from leadline.core.model.errors import UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.run import PERCENTILES, Run, percentiles
from leadline.core.model.units import duration
from leadline.core.statistics.between_runs import HISTORY_COUNT_MIN, shift
from leadline.core.statistics.resampling import difference_interval
from leadline.stores.runs import RunStore

NOTICEABLE = 0.02  # Judgement: less than 2 % of change matters to nobody, however sure
Z_95 = 1.959964
HISTOGRAM_ERROR = 1.0 / 64.0  # width of fio's buckets, below which a percentile cannot be told
SHORT_SPAN_S = 3600.0  # Judgement: runs within an hour see one state of a shared system
SIMULATION = "simulation"  # the tool of simulated runs
OPERATIONS, THROUGHPUT = "operations", "throughput"
# Of a workload: what it says and how long it waits, not what it does.
_TOLD = ("name", "about", "source", "notes", "steady")
UNKNOWN = "one run each: what changes from run to run is not known; repeat each side three times"
_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric before and after; ``change``, ``low`` and ``high`` are shares of before, NaN when not known.

    ``before`` and ``after`` are geometric means over the runs of a side, of each run's own value. ``certain`` is False
    where only the spread within two runs is known. ``beyond_chance`` is False where one of so many metrics may well
    differ so much by chance (false discovery rate of 5 % over all metrics).
    """

    name: str
    unit: str
    before: float
    after: float
    change: float
    low: float
    high: float
    lower_is_better: bool
    p_value: float = _NAN
    spread_pct: float = _NAN
    certain: bool = True
    beyond_chance: bool = True

    @property
    def shown(self) -> bool:
        """Whether these data show a difference that matters."""
        return self.low * self.high > 0 and abs(self.change) >= NOTICEABLE and self.beyond_chance

    @property
    def worse(self) -> bool:
        """Whether it became worse, surely."""
        return self.certain and self.shown and (self.change > 0) == self.lower_is_better

    @property
    def word(self) -> str:
        """For people."""
        if self.low != self.low:
            return "too few samples"
        if not self.certain:
            return "differs in these two runs" if self.shown else "alike in these two runs"
        return "no difference shown" if not self.shown else "worse" if self.worse else "better"


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two groups of runs side by side; ``history_count`` like runs of the store told how much runs differ."""

    before: tuple[Run, ...]
    after: tuple[Run, ...]
    metrics: tuple[MetricChange, ...]
    unlike: tuple[str, ...]
    history_count: int = 0

    @property
    def certain(self) -> bool:
        """Whether it is known how much runs of one kind differ among themselves."""
        return max(len(self.before), len(self.after)) > 1 or self.history_count > 0

    @property
    def worse(self) -> bool:
        """Whether anything became worse, surely."""
        return any(part.worse for part in self.metrics)

    @property
    def basis(self) -> str:
        """Where the intervals come from."""
        if not self.certain:
            return UNKNOWN
        if self.history_count:
            return f"what changes from run to run is taken from {self.history_count} like runs kept earlier"
        counts = f"{len(self.before)} and {len(self.after)} runs"
        spans = [_span_s(side) for side in (self.before, self.after) if len(side) > 1]
        if max(spans) >= SHORT_SPAN_S:
            return f"what changes from run to run is taken from these {counts}"
        return (
            f"what changes from run to run is taken from these {counts}, made within {duration(max(spans))}: what "
            "changes over hours is not in it"
        )

    @property
    def sentence(self) -> str:
        """For people."""
        if all(part.low != part.low for part in self.metrics):
            return "Too few samples to tell a difference; measure longer."
        shown = [part for part in self.metrics if part.shown]
        if not self.certain:
            differ = f"in these two runs {_listed(shown)} differ" if shown else "these two runs are alike"
            return f"{differ[0].upper()}{differ[1:]}, but {UNKNOWN}."
        words = (("worse", [p for p in shown if p.worse]), ("better", [p for p in shown if not p.worse]))
        parts = [f"{word}: {_listed(changes)}" for word, changes in words if changes]
        verdict = "; ".join(parts) or "no difference that this data can show"
        return f"{verdict[0].upper()}{verdict[1:]}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        fields = ("name", "unit", "before", "after", "change", "low", "high", "p_value", "spread_pct")
        judged_fields = ("certain", "shown", "worse", "word")
        return {
            "before": [run.id for run in self.before],
            "after": [run.id for run in self.after],
            "history_count": self.history_count,
            "certain": self.certain,
            "worse": self.worse,
            "unlike": list(self.unlike),
            "metrics": [{name: getattr(part, name) for name in (*fields, *judged_fields)} for part in self.metrics],
            "basis": self.basis,
            "sentence": self.sentence,
        }


def _listed(parts: Iterable[MetricChange]) -> str:
    return ", ".join(part.name for part in parts)


def _span_s(runs: Sequence[Run]) -> float:
    """Seconds from the first start to the last."""
    moments = [datetime.fromisoformat(run.started) for run in runs]
    return (max(moments) - min(moments)).total_seconds()


def compare_runs(before: Sequence[Run], after: Sequence[Run], history: Sequence[Sequence[Run]] = ()) -> RunComparison:
    """What changed between two groups of runs, per metric; what the runs did not have in common is named.

    ``history`` are other runs by group of equal conditions (see `history_of`).

    Raises:
        UsageError: a run is on both sides, which only makes sense when each is that one run; or some runs were
            measured and others simulated.
    """
    _require_one_kind((*before, *after))
    both = {run.id for run in before} & {run.id for run in after}
    if both and len(before) + len(after) > 2:
        raise UsageError(
            f"run {min(both)}", found="on both sides", expected="runs before, and other runs after", advice="Drop one."
        )
    sides = [_levels_of(side) for side in (before, after)]
    single = max(len(before), len(after)) == 1
    others = [_levels_of(group) for group in history] if min(len(before), len(after)) == 1 else []
    metrics: list[MetricChange] = []
    used = 0
    for name, first in sides[0].items():
        second = sides[1].get(name)
        if second is None or len(first) < len(before) or len(second) < len(after):
            continue  # a percentile that not every run has enough samples for
        known = [[level.value for level in levels.get(name, [])] for levels in others]
        change = _change(name, first, second, known)
        if change.low == change.low and max(len(before), len(after)) < HISTORY_COUNT_MIN:
            used = max(used, sum(len(values) for values in known if len(values) > 1))
        if single and change.low != change.low:
            change = _within(change, before[0], after[0])
        metrics.append(change)
    used = used if used >= HISTORY_COUNT_MIN else 0
    return RunComparison(tuple(before), tuple(after), _by_chance(metrics), tuple(_unlike(before, after)), used)


def _require_one_kind(runs: Sequence[Run]) -> None:
    """Refuse runs of which some were measured and others simulated.

    Raises:
        UsageError: both kinds are among them.
    """
    simulated = [run.id for run in runs if run.tool == SIMULATION]
    measured = [run.id for run in runs if run.tool != SIMULATION]
    if simulated and measured:
        raise UsageError(
            f"run {simulated[0]}",
            found=f"a simulation, and {measured[0]} was measured",
            expected="runs of one kind on both sides",
            advice="`leadline simulate SCENARIO --check-real` sets a simulation beside the real thing.",
        )


@dataclass(frozen=True, slots=True)
class _Level:
    """One run's value of a metric, and the share of it below which it cannot be told."""

    value: float
    unit: str
    resolution: float = 0.0


def _levels_of(runs: Sequence[Run]) -> dict[str, list[_Level]]:
    levels_by_name: dict[str, list[_Level]] = {}
    for run in runs:
        for name, level in _levels(run).items():
            if level.value > 0.0:
                levels_by_name.setdefault(name, []).append(level)
    return levels_by_name


def _levels(run: Run) -> dict[str, _Level]:
    """A run in one number per metric: operations per second of all its seconds, percentiles of all its requests."""
    pooled = run.pooled()
    seconds = [tick.per_s for part in run.rounds for tick in part.ticks if tick.per_s == tick.per_s]
    if run.is_network:
        levels = {THROUGHPUT: _Level(run.mbit_per_s().mean, "mbit_per_s")}
    elif seconds:
        levels = {OPERATIONS: _Level(float(np.mean(seconds)), "per_s")}
    elif any(part.histogram is not None for part in pooled):
        levels = {OPERATIONS: _Level(sum(part.per_s for part in pooled), "per_s")}
    else:  # the tool gives no seconds, only a rate per round of things that have no sum
        levels = {part.name: _Level(part.per_s, "per_s") for part in pooled}
    for part in pooled:
        if part.histogram is not None:
            for name, (ms, _) in percentiles(part.histogram).items():
                low, up = part.histogram.quantile_bounds(PERCENTILES[name])
                width = (up - low) / (up + low) * 2.0 if np.isfinite(up) and up + low > 0 else HISTOGRAM_ERROR
                levels[f"{part.name} {name}"] = _Level(ms, "ms", width)
    return levels


def _change(
    name: str, before: Sequence[_Level], after: Sequence[_Level], history: Sequence[Sequence[float]]
) -> MetricChange:
    sides = [[level.value for level in side] for side in (before, after)]
    resolution = max(level.resolution for level in (*before, *after))
    difference = shift(sides[0], sides[1], history, resolution)
    means = [float(np.exp(np.mean(np.log(np.array(values))))) for values in sides]
    return MetricChange(
        name,
        before[0].unit,
        means[0],
        means[1],
        difference.change,
        difference.low,
        difference.high,
        before[0].unit == "ms",
        difference.p_value,
        difference.spread_pct,
    )


def _within(change: MetricChange, before: Run, after: Run) -> MetricChange:
    """The interval that the spread within two runs gives: it says nothing of a third."""
    if change.name in (OPERATIONS, THROUGHPUT):
        sides = [[[tick.per_s for tick in part.ticks] for part in run.rounds] for run in (before, after)]
        _, low, high = difference_interval(sides[0], sides[1], before.seed)
    elif change.unit == "per_s":
        return change  # a rate per round is too little for an interval
    else:
        name, _, percentile = change.name.rpartition(" ")
        histograms = [part.histogram for run in (before, after) for part in run.pooled() if part.name == name]
        error = sqrt(
            sum(_error(histogram, PERCENTILES[percentile]) ** 2 for histogram in histograms if histogram is not None)
        )
        low, high = (max(change.change + way * error * (1.0 + change.change), -1.0) for way in (-1.0, 1.0))
    return replace(change, low=low, high=high, certain=False)


def percentile_interval(histogram: Histogram, share: float) -> tuple[float, float]:
    """Return the 95 % interval of a percentile of one run, from the ranks of its samples, in the histogram's unit.

    Source: Hahn and Meeker, Statistical Intervals (1991), section 5.2. Requests of one second resemble each other, so
    of every hundred only one is counted: Judgement.
    """
    independent = max(histogram.total / 100.0, 1.0)
    away = float(Z_95 * np.sqrt(share * (1.0 - share) / independent))
    return histogram.quantile(max(share - away, 0.0)), histogram.quantile(min(share + away, 1.0))


def _error(histogram: Histogram, share: float) -> float:
    """Relative half width of a percentile's 95 % interval, with the width of the buckets."""
    middle = histogram.quantile(share)
    low, high = percentile_interval(histogram, share)
    return float(max(high - low, 0.0) / 2.0 / middle + HISTOGRAM_ERROR) if middle > 0 else float("nan")


def _by_chance(metrics: Sequence[MetricChange]) -> tuple[MetricChange, ...]:
    """Which changes stand although many metrics were looked at."""
    known = np.array([part.p_value for part in metrics if part.p_value == part.p_value])
    limit = discovery_limit(known)
    return tuple(
        part if part.p_value != part.p_value else replace(part, beyond_chance=part.p_value <= limit) for part in metrics
    )


def _unlike(before: Sequence[Run], after: Sequence[Run]) -> list[str]:
    """Conditions that differ, because of which the runs may not be comparable."""
    differences: list[str] = []
    first = before[0]
    for run in (*before[1:], *after):
        keys = sorted({*first.workload, *run.workload} - set(_TOLD))
        differences += [f"workload: {key} differs" for key in keys if first.workload.get(key) != run.workload.get(key)]
        facts = {key: (first.host.get(key), run.host.get(key)) for key in sorted({*first.host, *run.host})}
        facts |= {first.tool: (first.tool_version, run.tool_version), "target": (first.target, run.target)}
        differences += [f"{key}: {old} then {new}" for key, (old, new) in facts.items() if old != new]
    ids_by_text: dict[str, list[str]] = {}
    for run in (*before, *after):
        if run.state != "done":
            ids_by_text.setdefault(run.state, []).append(run.id)
        if run.warm_up is not None and not run.warm_up.steady:
            ids_by_text.setdefault(run.warm_up.sentence(), []).append(run.id)
    whole = len(before) + len(after)
    differences += [
        f"{ids[0] if len(ids) == 1 else f'{len(ids)} of {whole} runs'}: {text}" for text, ids in ids_by_text.items()
    ]
    return list(dict.fromkeys(differences))


def history_of(store: RunStore, before: Sequence[Run], after: Sequence[Run]) -> list[list[Run]]:
    """Whole runs of the store made under the very conditions of either side and on neither, by conditions."""
    sides = {run.id for run in (*before, *after)}
    groups: dict[str, list[Run]] = {conditions(run): [] for run in (*before, *after)}
    seen = {_draws(run) for run in (*before, *after)}
    for run in store.alike(before[0]):
        group = groups.get(conditions(run))
        if group is not None and run.id not in sides and run.rounds and _draws(run) not in seen:
            group.append(run)
            seen.add(_draws(run))
    return list(groups.values())


def _draws(run: Run) -> str:
    """What a run's chance came from: simulated runs of one seed and the same conditions are copies of each other."""
    return f"{conditions(run)} {run.seed}" if run.tool == SIMULATION else run.id


def conditions(run: Run) -> str:
    """All that was the same for runs that are like each other."""
    workload = {key: value for key, value in run.workload.items() if key not in _TOLD}
    return json.dumps([workload, run.target, run.tool, run.tool_version, run.host], sort_keys=True)


def subject(run: Run) -> str:
    """What was measured: the load, what it ran on and where; not for how long, nor on which kernel."""
    left_out = (*_TOLD, "timing")
    workload = {key: value for key, value in run.workload.items() if key not in left_out}
    return json.dumps([workload, run.target, run.tool, run.host.get("host")], sort_keys=True)
