"""A capacity will be used up soon if it goes on growing as it did.

Finds:
    Hosts whose busiest hours (95th percentile of a day) reach 80 % CPU, datastores that reach 85 %, and vSAN
    datastores that reach 70 % within 90 days (warning) or 30 days (critical) on the trend of at least 14 recorded
    days. Trends that do not stand out of their own noise are left out.

Why:
    Hardware takes weeks to order and install. Past these levels it is slow before it is full: CPU queues grow steeply,
    vSAN starts to rebalance, snapshots and swap files find no room.

Do:
    Order capacity now, or take load away: remove what is left over (snapshots, powered-off VMs, orphaned disks), move
    VMs, and look for what made the trend start.

When it is wrong:
    A straight line knows nothing of weekdays, month ends and projects that end. Two weeks are the least; a quarter is
    better.

Sources:
    Theil and Sen: the median of the slopes between all pairs of days, which single odd days do not move.
    Judgement: 80 %, 85 %, 70 %, and 90 and 30 days are planners' habits, not measured limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.timeline import host_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="HST140",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host_cpu_util_pct|host_cpu_used_pct|datastore_used_pct",),
    thresholds={
        "cpu": Threshold(80.0, "pct", "Judgement: queues grow steeply above"),
        "vsan": Threshold(70.0, "pct", "Judgement: room to rebuild and rebalance"),
        "datastore": Threshold(85.0, "pct", "Judgement: room for snapshots and swap files"),
        "warn": Threshold(90.0 * 86_400.0, "s", "Judgement: time to order, install and move"),
        "crit": Threshold(30.0 * 86_400.0, "s", "Judgement: too late to order without haste"),
        "recorded_min": Threshold(14.0 * 86_400.0, "s", "Judgement: two of each weekday"),
    },
    clears=False,
    judgement=True,
)
_S_PER_DAY = 86_400.0
_BUSY_QUANTILE = 0.95
_NOISE = 3.0  # the rise must be this many times the median distance of days from the line
_NS_PER_DAY = 86_400_000_000_000


@dataclass(frozen=True, slots=True)
class _Trend:
    """A line through days: value at the last day, rise per day, and the median distance of days from it."""

    last: float
    per_day: float
    noise: float
    day_count: int


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per host and datastore."""
    seen: set[Entity] = set()
    for metric in ("host_cpu_util_pct", "host_cpu_used_pct"):
        for group in _long(context, host_groups(context, metric) if context.of(metric) else []):
            yield from _of_group(context, group, seen, "the busiest hours' CPU use")
    for group in _long(context, context.of("datastore_used_pct", EntityKind.DATASTORE)):
        yield from _of_group(context, group, seen, "space in use")


def _long(context: RuleContext, groups: list[SeriesGroup]) -> list[SeriesGroup]:
    need_ns = context.limit("recorded_min") * 1e9
    return [group for group in groups if len(group.times_ns) and float(np.ptp(group.times_ns)) >= need_ns]


def _of_group(context: RuleContext, group: SeriesGroup, seen: set[Entity], noun: str) -> Iterator[Finding]:
    for row, entity in enumerate(group.entities):
        if entity in seen:
            continue
        seen.add(entity)
        trend = _trend(group.times_ns, group.values[row])
        limit = context.limit(_limit_name(context, entity))
        if trend is None or trend.per_day <= 0.0 or trend.per_day * trend.day_count <= _NOISE * trend.noise:
            continue
        days = max(limit - trend.last, 0.0) / trend.per_day
        if days * _S_PER_DAY < context.limit("warn"):
            yield _finding(context, entity, trend, (limit, days), noun, context.source_name(group))


def _limit_name(context: RuleContext, entity: Entity) -> str:
    if entity.kind is EntityKind.HOST:
        return "cpu"
    return "vsan" if str(context.inventory.get(entity, "type")).casefold() == "vsan" else "datastore"


def _trend(times_ns: NDArray[np.int64], values: NDArray[np.floating[Any]]) -> _Trend | None:
    """The trend of the daily 95th percentiles; None for fewer than three days with samples.

    Args:
        times_ns: [n] UTC nanoseconds, ascending.
        values: [n]; NaN is not measured.
    """
    measured = np.isfinite(values)
    days, first = np.unique((times_ns[measured] - times_ns[0]) // _NS_PER_DAY, return_index=True)
    if len(days) < 3:
        return None
    peaks = np.array([np.quantile(part, _BUSY_QUANTILE) for part in np.split(values[measured], first[1:])])
    one, other = np.triu_indices(len(days), k=1)
    slope = float(np.median((peaks[other] - peaks[one]) / (days[other] - days[one])))
    base = float(np.median(peaks - slope * days))
    noise = float(np.median(np.abs(peaks - base - slope * days)))
    return _Trend(base + slope * float(days[-1]), slope, noise, int(days[-1] - days[0]))


def _finding(
    context: RuleContext, entity: Entity, trend: _Trend, reach: tuple[float, float], noun: str, source: str
) -> Finding:
    limit, days = reach
    when = "is reached now" if days == 0.0 else f"will be reached in {days:.0f} days"
    statement = (
        f"{noun} of {entity.label()}: {show(trend.last, 'pct')} on the trend, "
        f"rising {show(trend.per_day * 30.0, 'pct')} in 30 days"
    )
    critical = days * _S_PER_DAY < context.limit("crit")
    return context.finding(
        entity,
        f"{show(limit, 'pct')} of {noun} of {entity.label()} {when}",
        [
            Evidence(
                statement,
                entity=entity,
                statistic="trend",
                value=trend.last,
                threshold=limit,
                unit="pct",
                source=source,
            )
        ],
        severity=META.severity if critical else META.severity.lowered(),
        score=context.limit("warn") / max(days * _S_PER_DAY, _S_PER_DAY),
    )
