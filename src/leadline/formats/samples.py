"""Samples that come one by one or in short runs, in any order, put together into series.

Exports of monitoring systems hold a row per entity, counter and moment. Where several counters make one metric (reads
and writes, received and sent) they are its parts: a sum of parts is only known where every part is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.io.clock import EPOCH
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity

if TYPE_CHECKING:
    from numpy.typing import NDArray

YEARS = range(1970, 2200)  # beyond, nanoseconds do not fit into 64 bits
NS_PER_S = 1_000_000_000


@dataclass(slots=True)
class _Part:
    times_ns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Samples:
    """Samples by metric and entity.

    Attributes:
        sums: metrics whose parts are added; of the parts of others the highest counts.
    """

    sums: frozenset[str] = frozenset()
    _parts: dict[tuple[str, Entity], dict[str, _Part]] = field(default_factory=dict)

    def put(self, metric: str, entity: Entity, time_ns: int, value: float, part: str = "") -> None:
        """Add one sample: the value in the metric's unit at a UTC nanosecond; NaN is not measured."""
        samples = self._parts.setdefault((metric, entity), {}).setdefault(part, _Part())
        samples.times_ns.append(time_ns)
        samples.values.append(value)

    def extend(
        self, metric: str, entity: Entity, times_ns: Iterable[int], values: Iterable[float], part: str = ""
    ) -> None:
        """Add samples of equal count: times in UTC nanoseconds, values in the metric's unit, NaN not measured."""
        samples = self._parts.setdefault((metric, entity), {}).setdefault(part, _Part())
        samples.times_ns.extend(times_ns)
        samples.values.extend(values)

    @property
    def count(self) -> int:
        """How many samples there are."""
        return sum(len(part.times_ns) for parts in self._parts.values() for part in parts.values())

    def into(self, builder: CaptureBuilder, *, interval_s: float | None = None) -> None:
        """Add the series to a capture; where one part has a moment twice, warn and keep the last value."""
        for (metric, entity), parts in self._parts.items():
            columns = [_sorted(part, builder) for part in parts.values()]
            times, values = columns[0]
            if len(columns) > 1:
                times = np.unique(np.concatenate([part_times for part_times, _ in columns]))
                matrix = np.full((len(columns), len(times)), np.nan)
                for row, (part_times, part_values) in enumerate(columns):
                    matrix[row, np.searchsorted(times, part_times)] = part_values
                values = np.sum(matrix, axis=0) if metric in self.sums else np.fmax.reduce(matrix, axis=0)
            builder.add_series(metric, entity, times, values, interval_s=interval_s)


def _sorted(part: _Part, builder: CaptureBuilder) -> tuple[NDArray[np.int64], NDArray[Any]]:
    times = np.array(part.times_ns, dtype=np.int64)
    values = np.array(part.values, dtype=np.float64)
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, dtype=bool)
    twice = int(np.count_nonzero(~last))
    if twice:
        builder.warn("twice", "samples of the same moment are there twice; the last one counts", twice)
    return times[last], values[last]


def iso_ns(text: str) -> int | None:
    """UTC nanoseconds of an ISO 8601 time, which is UTC where it has no zone; None when it is none.

    >>> iso_ns("2026-11-20 08:30:00"), iso_ns("2026-11-20T09:30:00+01:00"), iso_ns("yesterday")
    (1795163400000000000, 1795163400000000000, None)
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.year not in YEARS:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return round((moment - EPOCH).total_seconds() * 1e6) * 1000


def epoch_ns(value: float, unit_ns: int) -> int | None:
    """UTC nanoseconds of a count of units since 1970; None outside of the years there can be recordings from."""
    total = value * unit_ns
    return int(total) if 0 <= total < (YEARS.stop - 1970) * 365 * 86_400 * NS_PER_S else None
