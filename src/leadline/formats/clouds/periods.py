"""Values of periods, as clouds keep them, put together into series.

A cloud keeps of each counter and period some of: mean, sum, highest, lowest. Its time is the period's beginning, while
a sample of a series stands for the interval that ends there. Which of them an export holds decides what can be known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import duration, factor
from leadline.formats.clouds.counters import SUMMED, CloudCounter, CloudOwner, CloudPlace, Way

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request
    from leadline.core.model.capture import CaptureBuilder
    from leadline.core.model.entities import Entity

NS_PER_S = 1_000_000_000
LONG_S = 300.0  # Judgement: a stall of a minute is a fifth of such a mean
SHARE_MAX = 200.0  # Judgement: bursts take a share of a limit above 100 %; far above it is another unit
MEAN, SUM, HIGHEST, LOWEST = "average", "sum", "maximum", "minimum"
_TO_PCT = 100.0


@dataclass(frozen=True, slots=True)
class TimeShare:
    """A latency that is made of two sums: the time of all requests of a period, and their count."""

    metric: str
    time: str
    count: str
    unit: str
    disk: str = ""


@dataclass(slots=True)
class _Run:
    """The values of one counter and statistic of one owner, by when their periods began."""

    values: dict[int, float] = field(default_factory=dict)
    period_s: float = math.nan
    differs: bool = False


@dataclass(slots=True)
class CloudSeries:
    """Values by owner, counter and statistic, and what they become.

    Attributes:
        tool: prefix of raw counters.
        counters: what is known of them, by name.
        shares: latencies made of two sums.
        again: the command or menu that exports what is missing.
        begins: a value's time is the beginning of its period, not its end.
    """

    tool: str
    counters: Mapping[str, CloudCounter]
    shares: tuple[TimeShare, ...] = ()
    again: str = ""
    begins: bool = True
    _runs: dict[tuple[CloudOwner, str, str], _Run] = field(default_factory=dict)
    _assumed: int = 0

    def put(
        self,
        owner: CloudOwner,
        name: str,
        statistic: str,
        points: Iterable[tuple[int, float]],
        period_s: float = math.nan,
    ) -> None:
        """Add values: UTC nanoseconds and numbers; ``statistic`` is empty where the export does not say."""
        known = self.counters.get(name)
        if not statistic and known is not None:
            statistic = SUM if known.way in SUMMED else MEAN
            self._assumed += 1
        run = self._runs.setdefault((owner, name, statistic), _Run())
        for time_ns, value in points:
            before = run.values.get(time_ns)
            if before is not None and not (before == value or math.isnan(before) or math.isnan(value)):
                run.differs = True
            run.values[time_ns] = value
        run.period_s = run.period_s if math.isnan(period_s) else period_s

    @property
    def names(self) -> list[str]:
        """The names of all counters, in order of appearance."""
        return list(dict.fromkeys(name for _, name, _ in self._runs))

    @property
    def has_known(self) -> bool:
        """Whether any counter is known and has a value."""
        return any(name in self.counters and run.values for (_, name, _), run in self._runs.items())

    def into(self, request: Request, builder: CaptureBuilder) -> None:
        """Add the series to a capture, with warnings about what had to be assumed or left out."""
        self._drop_mixed(builder)
        self._set_periods()
        if self._assumed:
            message = "the export names no statistic; values were taken as means, those of amounts as sums"
            builder.warn("statistic", message, self._assumed)
        columns: dict[tuple[str, Entity, float], dict[int, float]] = {}
        for (owner, name, statistic), run in self._runs.items():
            known = self.counters.get(name)
            values = None if known is None else self._converted(known, statistic, name, run, builder)
            if known is None or values is None:
                place = known.place if known is not None else CloudPlace.DISK if owner.disk else CloudPlace.MACHINE
                entity = owner.entity(place, "" if known is None else known.disk)
                suffix = f".{statistic}" if statistic and statistic != MEAN else ""
                metric = f"{RAW_PREFIX}{self.tool}.{name}{suffix}"
                if request.metrics is None:
                    _join(columns, metric, entity, run.period_s, run.values)
            elif request.wants(known.metric):
                _join(columns, known.metric, owner.entity(known.place, known.disk), run.period_s, values)
        for share in self.shares:
            if request.wants(share.metric):
                self._add_share(share, columns)
        self._say_period(builder)
        self._emit(columns, builder)

    def _drop_mixed(self, builder: CaptureBuilder) -> None:
        """Leave out what two things without a name seem to have given: two values of one moment."""
        mixed = [key for key, run in self._runs.items() if run.differs and key[0] == CloudOwner()]
        for key in mixed:
            del self._runs[key]
        if mixed:
            names = ", ".join(sorted({name for _, name, _ in mixed})[:4])
            message = (
                f"{names} left out: two values of one moment, and the export does not say whose; "
                "put the files of each machine or disk into a separate folder"
            )
            builder.warn("two-owners", message, len(mixed))

    def _set_periods(self) -> None:
        for run in self._runs.values():
            if math.isnan(run.period_s) and len(run.values) > 1:
                run.period_s = float(np.diff(np.sort(np.array(list(run.values), dtype=np.int64))).min()) / NS_PER_S
        known = {run.period_s for run in self._runs.values() if not math.isnan(run.period_s)}
        if len(known) == 1:
            for run in self._runs.values():
                run.period_s = next(iter(known))

    def _converted(
        self, counter: CloudCounter, statistic: str, name: str, run: _Run, builder: CaptureBuilder
    ) -> dict[int, float] | None:
        """The values in the metric's unit; None where this statistic cannot tell it."""
        wanted = SUM if counter.way in SUMMED else MEAN
        if statistic != wanted and not (counter.peak and statistic in {HIGHEST, LOWEST}):
            if not any(key[1:] == (name, wanted) for key in self._runs):
                again = f"; {self.again}" if self.again else ""
                builder.warn("no-" + wanted, f"{name} is known by its {wanted} only, which is not here{again}")
            return None
        if statistic != wanted and any(key[1:] == (name, wanted) for key in self._runs):
            return None
        if counter.way in SUMMED and math.isnan(run.period_s):
            builder.warn("one-sample", f"{name} has one value and no period: no rate can be made of it")
            return None
        scale = factor(counter.unit, metric_of(counter.metric).unit)
        values = {time_ns: _valued(counter.way, value, run.period_s) * scale for time_ns, value in run.values.items()}
        if counter.unit == "pct" and max(values.values(), default=0.0) > SHARE_MAX * scale:
            builder.warn("unit", f"{name} was left out: its values are more than per cent can be")
            return None
        return values

    def _add_share(self, share: TimeShare, columns: dict[tuple[str, Entity, float], dict[int, float]]) -> None:
        scale = factor(share.unit, metric_of(share.metric).unit)
        for (owner, name, statistic), run in list(self._runs.items()):
            counts = self._runs.get((owner, share.count, SUM))
            if name != share.time or statistic != SUM or counts is None:
                continue
            values = {
                time_ns: spent * scale / counts.values[time_ns] if counts.values[time_ns] > 0 else math.nan
                for time_ns, spent in run.values.items()
                if time_ns in counts.values
            }
            _join(columns, share.metric, owner.entity(CloudPlace.DISK, share.disk), run.period_s, values)

    def _say_period(self, builder: CaptureBuilder) -> None:
        periods = [run.period_s for run in self._runs.values() if run.period_s >= LONG_S]
        if periods:
            message = (
                f"values are of periods of {duration(max(periods))}: shorter peaks cannot be seen in them; "
                "export periods of 60 s"
            )
            builder.warn("period", message, len(periods))

    def _emit(self, columns: dict[tuple[str, Entity, float], dict[int, float]], builder: CaptureBuilder) -> None:
        """Series of one period share their times, so that rules can compare them; NaN where one has no value."""
        moments: dict[float, set[int]] = {}
        for (_, _, period_s), values in columns.items():
            moments.setdefault(_key(period_s), set()).update(values)
        grids = {key: np.array(sorted(times), dtype=np.int64) for key, times in moments.items()}
        for (metric, entity, period_s), values in columns.items():
            grid = grids[_key(period_s)]
            row = np.array([values.get(int(time_ns), math.nan) for time_ns in grid], dtype=np.float64)
            shift = round(period_s * NS_PER_S) if self.begins and not math.isnan(period_s) else 0
            interval = None if math.isnan(period_s) else period_s
            builder.add_series(metric, entity, grid + shift, row, interval_s=interval)


def _key(period_s: float) -> float:
    return -1.0 if math.isnan(period_s) else period_s


def _join(
    columns: dict[tuple[str, Entity, float], dict[int, float]],
    metric: str,
    entity: Entity,
    period_s: float,
    values: Mapping[int, float],
) -> None:
    """Add values to a column; where two counters make one metric, the higher counts."""
    column = columns.setdefault((metric, entity, period_s), {})
    for time_ns, value in values.items():
        before = column.get(time_ns, math.nan)
        column[time_ns] = value if math.isnan(before) else before if math.isnan(value) else max(before, value)


def _valued(way: Way, value: float, period_s: float) -> float:
    if way is Way.AMOUNT:
        return value / period_s
    if way is Way.IDLE:
        return min(max(_TO_PCT * (1.0 - value / period_s), 0.0), _TO_PCT)
    if way is Way.REST:
        return _TO_PCT - value
    return value * _TO_PCT if way is Way.FLAG else value
