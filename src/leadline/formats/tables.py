"""Tables that tools print again and again: collected row by row, handed to a capture as columns.

A table is what one heading of a tool holds: named columns, one row per item (a CPU, a disk, a process; "" when the
table speaks of the whole machine) and moment. Its moments are counted as they come, so two reports within one printed
second stay two samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, Request
from leadline.core.model.capture import CaptureBuilder, SeriesGroup, usual_interval_s
from leadline.core.model.entities import Entity
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor

SPARSE_FILL = 0.25  # Judgement: below this share of filled cells a series per item is smaller than a matrix

Columns = dict[str, NDArray[np.float64]]  # canonical metric -> one value per row


@dataclass(slots=True)
class SampleTable:
    """The rows of one kind of table of a recording, in the order they were printed.

    Attributes:
        group: what its items are in the tool's words (``CPU``, ``DEV``; "" for the machine).
        columns: the tool's own names of its values, with the group where the name alone is not enough.
        moments: per sample, its time in nanoseconds on the clock of whoever fills the table.
        lead_in: the time printed in the heading of the first sample, if any: where the first interval starts.
    """

    group: str
    columns: tuple[str, ...]
    moments: list[int] = field(default_factory=list)
    lead_in: int | None = None
    _items: dict[str, int] = field(default_factory=dict)
    _row_item: list[int] = field(default_factory=list)
    _row_moment: list[int] = field(default_factory=list)
    _rows: list[list[float]] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def add(self, moment: int, item: str, values: list[float]) -> None:
        """Add a row: a new sample begins when the time changes or the item has been seen in this one."""
        index = self._items.setdefault(item, len(self._items))
        if not self.moments or self.moments[-1] != moment or index in self._seen:
            self.moments.append(moment)
            self._seen.clear()
        self._seen.add(index)
        self._row_item.append(index)
        self._row_moment.append(len(self.moments) - 1)
        self._rows.append(values)

    @property
    def starts_at_boot(self) -> bool:
        """Whether the first sample ends where its heading says it starts: the average since boot."""
        return bool(self.moments) and self.moments[0] == self.lead_in

    @property
    def items(self) -> list[str]:
        """The items, in order of appearance."""
        return list(self._items)

    def arrays(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Per row: index of its item [r], index of its sample [r], values [r, columns]; NaN and infinite are NaN."""
        values = np.array(self._rows, dtype=np.float64).reshape(len(self._rows), len(self.columns))
        values[~np.isfinite(values)] = np.nan
        return np.array(self._row_item, dtype=np.intp), np.array(self._row_moment, dtype=np.intp), values


def _derive_nothing(columns: Columns) -> None:
    del columns


@dataclass(frozen=True, slots=True)
class TableScheme:
    """How a tool's tables become series.

    Attributes:
        tool: prefix of raw counters.
        fields: the tool's own names and what they become.
        entity_of: the entity of an item of a group; None when canonical metrics do not speak of it.
        scales: multipliers of own names beside the unit, for instance KiB per memory page.
        sums: metrics a tool splits in parts, with the own names to add, in the metric's unit.
        derive: adds metrics computed from others, in place; called on one value per row.
    """

    tool: str
    fields: Mapping[str, Field]
    entity_of: Callable[[str, str], Entity | None]
    scales: Mapping[str, float] = field(default_factory=dict)
    sums: tuple[tuple[str, tuple[str, ...]], ...] = ()
    derive: Callable[[Columns], None] = _derive_nothing
    guest: Entity = UNNAMED_GUEST


def emit(
    table: SampleTable,
    times_ns: NDArray[np.int64],
    scheme: TableScheme,
    builder: CaptureBuilder,
    request: Request,
    *,
    since_boot: frozenset[str] | bool = False,
) -> None:
    """Hand a table to a capture.

    Args:
        table: the rows.
        times_ns: int64 [samples], UTC nanoseconds of ``table.moments``; put in order here if they are not.
        scheme: what the columns become.
        builder: takes the series.
        request: which metrics are wanted.
        since_boot: the first sample is an average since boot, for all metrics or for those named.
    """
    if not table.moments:
        return
    row_item, row_moment, values = table.arrays()
    times, row_moment = _in_order(times_ns, row_moment, builder)
    placed = _Placed(times, row_moment, row_item, usual_interval_s(times))

    def flagged(metric: str) -> bool:
        return since_boot if isinstance(since_boot, bool) else metric in since_boot

    columns, leftover = _canonical(table, scheme, values)
    entities = [scheme.entity_of(table.group, item) for item in table.items]
    known = [(i, entity) for i, entity in enumerate(entities) if entity is not None]
    for metric, column in columns.items():
        if request.wants(metric):
            _add(builder, placed, (metric, column), known, flagged(metric))
    if request.metrics is None:
        for j, name in enumerate(table.columns):
            raw = (f"{RAW_PREFIX}{scheme.tool}.{name}", values[:, j])
            _add_raw(builder, placed, raw, table, (scheme, entities, name not in leftover))


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where the rows of a table belong: times [n], sample and item of each row, usual distance."""

    times: NDArray[np.int64]
    row_moment: NDArray[np.intp]
    row_item: NDArray[np.intp]
    interval_s: float


def _canonical(table: SampleTable, scheme: TableScheme, values: NDArray[np.float64]) -> tuple[Columns, set[str]]:
    """Canonical columns in the metric's unit, and the own columns that have no canonical metric."""
    columns: Columns = {}
    leftover: set[str] = set()
    for j, name in enumerate(table.columns):
        known = scheme.fields.get(name)
        if known is None:
            leftover.add(name)
        elif known.metric not in columns:  # a tool may print one thing in two units; the first is as good
            scale = factor(known.unit, metric_of(known.metric).unit) * scheme.scales.get(name, 1.0)
            columns[known.metric] = values[:, j] * scale
    for metric, parts in scheme.sums:
        if all(part in table.columns for part in parts):
            columns[metric] = values[:, [table.columns.index(part) for part in parts]].sum(axis=1)
    scheme.derive(columns)
    return columns, leftover


def _in_order(
    times: NDArray[np.int64], row_moment: NDArray[np.intp], builder: CaptureBuilder
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Times ascending and distinct, with the samples of rows renumbered."""
    back_count = int(np.count_nonzero(np.diff(times) < 0))
    if back_count:
        builder.warn(
            "clock-back", "the clock went back while recording; samples are in the order of their times", back_count
        )
        order = np.argsort(times, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        times, row_moment = times[order], rank[row_moment]
    return spread(times), row_moment


def spread(times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending times made distinct: samples of one printed second are spread evenly over it.

    >>> spread(np.array([10, 10, 11], dtype=np.int64) * 10**9).tolist()
    [10000000000, 10500000000, 11000000000]
    """
    if len(times_ns) < 2 or bool(np.all(np.diff(times_ns) > 0)):
        return times_ns
    starts = np.flatnonzero(np.diff(times_ns, prepend=times_ns[0] - 1))
    lengths = np.diff(np.append(starts, len(times_ns)))
    position = np.arange(len(times_ns)) - np.repeat(starts, lengths)
    room = np.minimum(np.diff(np.append(times_ns[starts], times_ns[-1] + 10**9)), 10**9)
    shifts: NDArray[np.int64] = np.repeat(room // lengths, lengths) * position
    return times_ns + shifts


def _add(
    builder: CaptureBuilder,
    placed: _Placed,
    named: tuple[str, NDArray[np.float64]],
    wanted: list[tuple[int, Entity]],
    since_boot: bool,
) -> None:
    """Add the series of one metric: as a matrix, or one by one where most items are absent most of the time."""
    metric, column = named
    if not wanted:
        return
    present = np.bincount(placed.row_item[~np.isnan(column)], minlength=max(i for i, _ in wanted) + 1)
    wanted = [(i, entity) for i, entity in wanted if present[i]]
    items = [i for i, _ in wanted]
    entities = [entity for _, entity in wanted]
    if present[items].sum() < SPARSE_FILL * len(items) * len(placed.times):
        _add_sparse(builder, placed, named, wanted, since_boot)
    elif items:
        matrix = _matrix(placed, column, items)
        builder.add(SeriesGroup(metric, entities, placed.times, matrix, placed.interval_s, since_boot=since_boot))


def _matrix(placed: _Placed, column: NDArray[np.float64], items: list[int]) -> NDArray[np.float64]:
    """The values [items, samples] of some items, NaN where they have no row."""
    line = np.full(int(placed.row_item.max()) + 1, -1)
    line[items] = np.arange(len(items))
    kept = line[placed.row_item] >= 0
    matrix = np.full((len(items), len(placed.times)), np.nan)
    matrix[line[placed.row_item[kept]], placed.row_moment[kept]] = column[kept]
    return matrix


def _add_sparse(
    builder: CaptureBuilder,
    placed: _Placed,
    named: tuple[str, NDArray[np.float64]],
    wanted: list[tuple[int, Entity]],
    since_boot: bool,
) -> None:
    """Series of items that come and go, each with its own times; only what is in the first sample is since boot."""
    metric, column = named
    order = np.lexsort((placed.row_moment, placed.row_item))
    bounds = np.searchsorted(placed.row_item[order], [[i, i + 1] for i, _ in wanted])
    for (low, high), (_, entity) in zip(bounds, wanted, strict=True):
        rows = order[low:high]
        rows = rows[~np.isnan(column[rows])]
        moments = placed.row_moment[rows]
        first = since_boot and bool(moments[0] == 0)
        times = placed.times[moments]
        builder.add_series(metric, entity, times, column[rows], interval_s=placed.interval_s, since_boot=first)


def _add_raw(
    builder: CaptureBuilder,
    placed: _Placed,
    named: tuple[str, NDArray[np.float64]],
    table: SampleTable,
    reading: tuple[TableScheme, list[Entity | None], bool],
) -> None:
    """Add a counter without canonical metric; items that are no entities are told apart by the counter's name."""
    (name, column), (scheme, entities, mapped) = named, reading
    if not mapped:
        _add(builder, placed, named, [(i, e) for i, e in enumerate(entities) if e is not None], since_boot=False)
    other = [i for i, entity in enumerate(entities) if entity is None]
    if not other:
        return
    items = table.items
    for i, row in zip(other, _matrix(placed, column, other), strict=True):
        metric = f"{name}[{items[i]}]"
        if not np.isnan(row).all():
            builder.add(SeriesGroup(metric, [scheme.guest], placed.times, row[None, :], placed.interval_s))
