"""Use case: what changed between a baseline and now, per entity and metric, by how much and how surely.

Medians and 95th percentiles are compared: a few wild samples move a mean, and trouble that lasts a third of the time
does not move a median. Their intervals come from the ranks of the samples, whatever their distribution, and from how
many samples are independent: neighbouring ones resemble each other, so their number is cut down by the lag-1
autocorrelation of the baseline. Over many series some differ by chance; the false discovery rate is held at 5 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import erfc, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.app.measure.discovery import discovery_limit
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.vocabulary import Better

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Diagnosis, Finding

    Floats = NDArray[np.float64]

Z_95 = 1.959964  # two-sided 95 % of a normal distribution
STATISTICS = {"p50": 0.5, "p95": 0.95}
CHANGE_SHARE_MIN = 0.05  # Judgement: a change of less than 5 % is not worth a line, however sure
SAMPLE_COUNT_MIN = 8  # Judgement: fewer independent samples say nothing of a spread
SEASON_DAYS_MIN = 14.0  # history of two weeks has every weekday and hour twice
SEASON_SAMPLES_MIN = 20
NS_PER_HOUR = 3_600_000_000_000


@dataclass(frozen=True, slots=True)
class StatisticChange:
    """A statistic of one series before and after, in the metric's unit; ``low`` to ``high`` is the 95 % interval of the
    difference. Of median and p95 the one that changed more surely.
    """

    entity: Entity
    metric: str
    unit: str
    statistic: str
    before: float
    after: float
    low: float
    high: float
    p_value: float
    worse: bool | None

    @property
    def difference(self) -> float:
        """After less before."""
        return self.after - self.before

    @property
    def share(self) -> float:
        """Difference as a share of before; inf where it was zero."""
        return abs(self.difference) / abs(self.before) if self.before else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {"entity": str(self.entity), **plain, "difference": self.difference, "p_value": self.p_value}


_PLAIN = ("metric", "unit", "statistic", "before", "after", "low", "high", "worse")


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that differs."""

    entity: Entity
    setting: str
    before: Any
    after: Any

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"entity": str(self.entity), "setting": self.setting, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between a baseline and now.

    Attributes:
        changes: series that changed beyond chance and by more than 5 %, the largest share first.
        compared_count: series that both have with enough samples.
        new: findings only now; ``gone``: only in the baseline.
        settings: settings known to both that differ.
        seasonal: the baseline was long enough to compare the same weekdays and hours only.
    """

    changes: tuple[StatisticChange, ...]
    compared_count: int
    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    settings: tuple[SettingChange, ...]
    seasonal: bool

    @property
    def advice(self) -> str | None:
        """What to say when several settings were changed at once."""
        if len(self.settings) < 2:
            return None
        return (
            f"{len(self.settings)} settings differ: which of them made the difference cannot be told. "
            "Change one at a time."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "compared_count": self.compared_count,
            "seasonal": self.seasonal,
            "changes": [change.to_dict() for change in self.changes],
            "new_findings": [{"rule": f.rule, "entity": str(f.entity), "summary": f.summary} for f in self.new],
            "gone_findings": [{"rule": f.rule, "entity": str(f.entity), "summary": f.summary} for f in self.gone],
            "settings": [setting.to_dict() for setting in self.settings],
            "advice": self.advice,
        }


def compare(now: Capture, baseline: Capture, found_now: Diagnosis, found_before: Diagnosis) -> Comparison:
    """What changed from the baseline to now.

    Args:
        now: the capture at hand.
        baseline: of the same entities at another time; matched by entity and metric.
        found_now: diagnosis of ``now``.
        found_before: diagnosis of ``baseline``.
    """
    seasonal = _span_days(baseline) >= SEASON_DAYS_MIN
    pairs = list(_pairs(now, baseline, seasonal=seasonal))
    changes = [change for change in pairs if change.share >= CHANGE_SHARE_MIN and change.low * change.high > 0]
    limit = discovery_limit(np.array([change.p_value for change in pairs]))
    kept = sorted((c for c in changes if c.p_value <= limit), key=lambda c: (-c.share, c.metric, str(c.entity)))
    before = {(f.rule, f.entity): f for f in found_before.findings}
    after = {(f.rule, f.entity): f for f in found_now.findings}
    return Comparison(
        tuple(kept),
        len(pairs),
        tuple(f for key, f in after.items() if key not in before),
        tuple(f for key, f in before.items() if key not in after),
        tuple(_settings(now, baseline)),
        seasonal,
    )


def _pairs(now: Capture, baseline: Capture, *, seasonal: bool) -> Iterator[StatisticChange]:
    known: dict[tuple[str, Entity], tuple[SeriesGroup, int]] = {}
    for group, row in baseline.series():
        known.setdefault((group.metric, group.entities[row]), (group, row))
    compared: set[tuple[str, Entity]] = set()
    for group in now.groups:
        keys = [(group.metric, entity) for entity in group.entities]
        rows = [i for i, key in enumerate(keys) if key in known and key not in compared]
        compared.update(keys[i] for i in rows)
        by_group: dict[int, list[tuple[int, int]]] = {}
        groups: dict[int, SeriesGroup] = {}
        for i in rows:
            other, row = known[keys[i]]
            by_group.setdefault(id(other), []).append((i, row))
            groups[id(other)] = other
        for key, members in by_group.items():
            yield from _changes(group, groups[key], members, seasonal=seasonal)


def _changes(
    now: SeriesGroup, before: SeriesGroup, members: list[tuple[int, int]], *, seasonal: bool
) -> Iterator[StatisticChange]:
    """Changes of the series of two groups; ``members`` are (row now, row before)."""
    now_part = now.take([row for row, _ in members]).measured()
    before_part = before.take([row for _, row in members]).measured()
    old = before_part.values
    if seasonal:
        same = np.isin(_hour_of_week(before_part.times_ns), np.unique(_hour_of_week(now_part.times_ns)))
        old = old[:, same] if np.count_nonzero(same) >= SEASON_SAMPLES_MIN else old
    share = _independent_share(old.astype(np.float64))
    better = metric_of(now.metric).better
    tables = {name: (_quantile(now_part.values, q, share), _quantile(old, q, share)) for name, q in STATISTICS.items()}
    counts = share * np.minimum(np.isfinite(now_part.values).sum(axis=1), np.isfinite(old).sum(axis=1))
    for i, (row, _) in enumerate(members):
        if counts[i] < SAMPLE_COUNT_MIN:
            continue
        of_series = []
        for name, (after, earlier) in tables.items():
            if counts[i] < _least_count(STATISTICS[name]):
                continue
            difference = float(after[0][i] - earlier[0][i])
            half = float(np.hypot(after[1][i], earlier[1][i]))
            of_series.append(
                StatisticChange(
                    now.entities[row],
                    now.metric,
                    now.unit,
                    name,
                    float(earlier[0][i]),
                    float(after[0][i]),
                    difference - half,
                    difference + half,
                    _p_value(difference, half / Z_95),
                    None if better is Better.NEUTRAL else (difference > 0) == (better is Better.LOW),
                )
            )
        yield min(of_series, key=lambda change: change.p_value)


def _least_count(q: float) -> float:
    """Independent samples from which the ranks of a quantile's interval lie within the sample."""
    return Z_95**2 * max(q, 1.0 - q) / min(q, 1.0 - q)


def _quantile(values: NDArray[np.floating[Any]], q: float, independent_share: Floats) -> tuple[Floats, Floats]:
    """A quantile of each series [k, n] and half the width [k] of its 95 % interval, from the ranks of the samples.

    Source: Hahn and Meeker, Statistical Intervals (1991), section 5.2: ranks about n q by the binomial's deviation.
    """
    whole = np.sort(values.astype(np.float64), axis=1)  # NaN last
    counts = np.isfinite(whole).sum(axis=1)
    independent = np.maximum(counts * independent_share, 1.0)
    away = Z_95 * np.sqrt(q * (1.0 - q) / independent)
    rows = np.arange(len(whole))
    last = np.maximum(counts - 1, 0)

    def at(level: Floats) -> Floats:
        rank = np.clip(np.rint(level * last), 0, last).astype(np.int64)
        quantiles: Floats = whole[rows, rank]
        return quantiles

    middle = at(np.full(len(whole), q))
    return middle, (at(np.minimum(q + away, 1.0)) - at(np.maximum(q - away, 0.0))) / 2.0


def _independent_share(values: Floats) -> Floats:
    """The share of samples [k] that are independent, (1 - r) / (1 + r) for the lag-1 autocorrelation r."""
    if values.shape[1] < 3:
        return np.ones(len(values))
    known = np.isfinite(values)
    centred = np.where(known, values, 0.0)
    centred -= np.where(known, (centred.sum(axis=1) / np.maximum(known.sum(axis=1), 1))[:, np.newaxis], 0.0)
    power = (centred**2).sum(axis=1)
    lagged = (centred[:, 1:] * centred[:, :-1]).sum(axis=1)
    correlation = np.clip(np.where(power > 0, lagged / np.where(power > 0, power, 1.0), 0.0), 0.0, 0.98)
    share: Floats = (1.0 - correlation) / (1.0 + correlation)
    return share


def _p_value(difference: float, error: float) -> float:
    if error == 0.0:
        return 1.0 if difference == 0.0 else 0.0
    return erfc(abs(difference) / error / sqrt(2.0))


def _settings(now: Capture, baseline: Capture) -> Iterator[SettingChange]:
    for entity, facts in now.inventory.facts.items():
        old = baseline.inventory.settings(entity)
        for name, fact in facts.items():
            if name in old and not fact.guessed and not old[name].guessed and old[name].value != fact.value:
                yield SettingChange(entity, name, old[name].value, fact.value)


def _span_days(capture: Capture) -> float:
    span = capture.span_ns()
    return 0.0 if span is None else (span[1] - span[0]) / NS_PER_HOUR / 24.0


def _hour_of_week(times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hour of the week [n], 0 to 167, in UTC."""
    hours: NDArray[np.int64] = (times_ns // NS_PER_HOUR) % (7 * 24)
    return hours
