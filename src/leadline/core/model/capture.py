"""The capture: series of metrics of entities over time, as columns.

Series sampled together share one time vector and one matrix (`SeriesGroup`), so a recording of 60,000 columns is a
few arrays, not 60,000 objects. NaN is "not measured". On disk a capture is Parquet with one row per series.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.io.packed import PackedValues
from leadline.core.model.derived import P, T, TableDefinition, TableStore
from leadline.core.model.entities import Entity, EntityColumn, Inventory
from leadline.core.model.meter import Meter, looked_at
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.result import Result

NS_PER_S = 1_000_000_000
NAN = float("nan")
LEFT_OUT = "left-out"  # the code of warnings about damaged lines that are not in the capture
SLICE_BYTES_MAX = 8 * 1024**2  # Judgement: a rule holds ten arrays of this size at a time


@dataclass(frozen=True, slots=True)
class Warn:
    """Something an importer repaired or left out: what, how often, and what that means for the numbers."""

    code: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Where series come from.

    ``start_ns``/``end_ns`` are UTC; ``clock_known`` is False when the file has no date or time zone and one was
    assumed (then a warning says which).
    """

    name: str
    importer: str
    tool: str
    host: str | None = None
    tool_version: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    clock_known: bool = True
    offset_s: float = 0.0
    series_count: int = 0
    warnings: tuple[Warn, ...] = ()


class _Values:
    """The field of a series group that may hold its values packed, and unpacks them when they are looked at."""

    def __get__(self, group: SeriesGroup | None, owner: type[SeriesGroup]) -> NDArray[np.floating[Any]]:
        if group is None:
            raise AttributeError  # there is no default
        stored = group.stored
        if group.meter is not None and isinstance(stored, PackedValues):
            group.meter.count("cells", group.metric, stored.shape[0] * stored.shape[1])
        values = stored.unpacked() if isinstance(stored, PackedValues) else stored
        return values if group.meter is None else looked_at(values, group.metric, group.meter)

    def __set__(self, group: SeriesGroup, values: NDArray[np.floating[Any]] | PackedValues) -> None:
        group.__dict__["stored"] = values


@dataclass(frozen=True, eq=False)
class SeriesGroup:
    """Series of one metric that were sampled at the same moments.

    Attributes:
        metric: canonical name, or ``raw.`` plus the tool's own.
        entities: k entities, one per series.
        times_ns: int64 [n], ascending, UTC nanoseconds; a sample stands for the interval that ends there.
        values: float64 or float32 [k, n] in the metric's unit; NaN is "not measured". Packed values are unpacked
            each time they are looked at.
        interval_s: the usual distance of samples; NaN when there is one sample and the tool does not say.
        source: index into ``Capture.sources``.
        since_boot: the first sample is an average since boot, not of an interval; rules leave it out.
        meter: counts what is looked at, where the capture that handed it out has one.
    """

    metric: str
    entities: Sequence[Entity]
    times_ns: NDArray[np.int64]
    values: _Values = _Values()
    interval_s: float = NAN
    source: int = 0
    since_boot: bool = False
    meter: Meter | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        expected = (len(self.entities), len(self.times_ns))
        if self.stored.shape != expected:
            message = f"{self.metric}: values have shape {self.stored.shape}, expected {expected}"
            raise ValueError(message)

    @property
    def stored(self) -> NDArray[np.floating[Any]] | PackedValues:
        """The values as they are kept, packed or not."""
        stored: NDArray[np.floating[Any]] | PackedValues = self.__dict__["stored"]
        return stored

    def relabelled(self, **labels: Any) -> SeriesGroup:  # noqa: ANN401 - fields of this class
        """The same values under another metric, other entities, times or source."""
        return replace(self, values=self.stored, **labels)

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return metric_of(self.metric).unit

    def row(self, entity: Entity) -> NDArray[np.floating[Any]] | None:
        """The values [n] of one entity, or None."""
        rows = self.rows_of(entity)
        return self.values[rows[0]] if rows else None

    def rows_of(self, entity: Entity) -> Sequence[int]:
        """The rows of one entity: one, or none."""
        rows: Sequence[int] = self._rows_by_entity.get(entity, ())
        return rows

    @cached_property
    def _rows_by_entity(self) -> dict[Entity, list[int]]:
        if isinstance(self.entities, EntityColumn):
            return self.entities.rows
        rows: dict[Entity, list[int]] = {}
        for row, entity in enumerate(self.entities):
            rows.setdefault(entity, []).append(row)
        return rows

    def one(self, row: int) -> NDArray[np.floating[Any]]:
        """The values [1, n] of one row; of packed values no other is unpacked."""
        if self.meter is not None:
            self.meter.count("rows", self.metric, 1)
        stored = self.stored
        return stored.take([row]).unpacked() if isinstance(stored, PackedValues) else stored[row : row + 1]

    def take(self, rows: Sequence[int]) -> SeriesGroup:
        """The group with only some of its series."""
        stored = self.stored
        values = stored.take(rows) if isinstance(stored, PackedValues) else stored[list(rows)]
        return replace(self, entities=[self.entities[i] for i in rows], values=values)

    def slices(self) -> Iterator[SeriesGroup]:
        """The group in pieces of some of its series, small enough to compute with; itself where it is small."""
        count, samples = self.stored.shape
        step = max(SLICE_BYTES_MAX // max(samples * 8, 1), 1)
        if count <= step:
            yield self
            return
        entities = EntityColumn(self.entities)
        for first in range(0, count, step):
            end = min(first + step, count)
            stored = self.stored
            values = stored.take(range(first, end)) if isinstance(stored, PackedValues) else stored[first:end]
            yield replace(self, entities=entities.part(first, end), values=values)

    def boot_marks(self) -> NDArray[np.bool_]:
        """Whether each sample [n] is an average since boot, not of an interval."""
        return np.arange(len(self.times_ns)) < int(self.since_boot)

    def measured(self) -> SeriesGroup:
        """The group without its since-boot sample."""
        if not self.since_boot:
            return self
        return replace(self, times_ns=self.times_ns[1:], values=self.values[:, 1:], since_boot=False)

    def metered(self, meter: Meter | None) -> SeriesGroup:
        """The group whose series count when they are looked at; itself without a meter."""
        if meter is None:
            return self
        meter.count("rows", self.metric, len(self.entities))
        return replace(self, values=self.stored, entities=meter.watched(self.entities, self.metric), meter=meter)

    def between(self, start_ns: int, end_ns: int) -> SeriesGroup:
        """The samples whose whole interval lies in a span; where no interval is known, the moment of the sample does.

        A sample stands for the interval that ends there. One that began before the span would tell what was before it.
        """
        step_ns = round(self.interval_s * NS_PER_S) if np.isfinite(self.interval_s) else 1
        first = int(np.searchsorted(self.times_ns, start_ns + step_ns))
        end = max(int(np.searchsorted(self.times_ns, end_ns, side="right")), first)
        if first == 0 and end == len(self.times_ns):
            return self
        times_ns, since_boot = self.times_ns[first:end], self.since_boot and first == 0 < end
        return replace(self, times_ns=times_ns, values=self.values[:, first:end], since_boot=since_boot)


@dataclass(slots=True)
class Capture:
    """Everything one or several recordings hold: series, results of load tools, inventory facts, sources.

    Groups may be appended and the list may be replaced; a group in the list never is.
    """

    groups: list[SeriesGroup] = field(default_factory=list)
    sources: list[SourceInfo] = field(default_factory=list)
    inventory: Inventory = field(default_factory=Inventory)
    results: list[Result] = field(default_factory=list)
    meter: Meter | None = field(default=None, repr=False, compare=False)
    _indexed: _Index | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def _index(self) -> _Index:
        """The groups by metric and recording; made anew when groups were added or replaced."""
        if self._indexed is None or not self._indexed.is_of(self.groups):
            self._indexed = _Index.of(self.groups)
        return self._indexed

    def metrics(self) -> list[str]:
        """Names of the metrics present, in order of appearance."""
        return list(dict.fromkeys(group.metric for group in self.groups))

    def of_metrics(self, metrics: Collection[str]) -> Capture:
        """The capture with the series of some metrics only; its sources, results and inventory stay."""
        groups = [group for group in self.groups if group.metric in metrics]
        return Capture(groups, self.sources, self.inventory, self.results)

    def of(self, metric: str, *kinds: EntityKind) -> list[SeriesGroup]:
        """Groups of a metric without since-boot samples, restricted to entity kinds if any are named."""
        handed_out = self._index.handed_out
        if (metric, kinds) not in handed_out:
            chosen = self._chosen(self._index.by_metric.get(metric, ()), metric, kinds)
            if kinds and sum(_copied_bytes(group) for group in chosen) > SLICE_BYTES_MAX:
                return chosen
            handed_out[metric, kinds] = chosen
        return list(handed_out[metric, kinds])

    def _chosen(
        self, candidates: Iterable[SeriesGroup], metric: str, kinds: tuple[EntityKind, ...] = ()
    ) -> list[SeriesGroup]:
        groups = []
        for group in candidates:
            if self.meter is not None and kinds:
                self.meter.count("entities", metric, len(group.entities))
            of_kinds = _of_kinds(group, kinds)
            if of_kinds is None:
                continue
            kept = of_kinds.measured()
            if kept.stored.shape[1]:
                groups.append(kept.metered(self.meter))
        return groups

    def aligned(self, group: SeriesGroup, metric: str) -> NDArray[np.floating[Any]] | None:
        """Another metric of the same entities at the same times: [k, n] like ``group.values``.

        Rows are NaN where that entity has no such series with these times. None when no entity has one.
        """
        whole: NDArray[np.floating[Any]] | None = None
        for other in self._sampled_with(group, metric):
            if other.entities is group.entities or _are_same(other.entities, group.entities):
                return other.values
            first = self._index.place_in(group.entities, other.entities)
            if first is not None:
                return other.values[first : first + len(group.entities)]
            if _are_disjoint(other.entities, group.entities):
                continue
            pairs = [
                (row, places[-1]) for row, entity in enumerate(group.entities) if (places := other.rows_of(entity))
            ]
            if not pairs:
                continue
            rows = [row for row, _ in pairs]
            values = other.take([place for _, place in pairs]).values
            whole = np.full(group.stored.shape, np.nan, dtype=values.dtype) if whole is None else whole
            whole[rows] = values
        return whole if whole is not None and not np.isnan(whole).all() else None

    def table(self, definition: TableDefinition[P, T], *key: P.args, **named: P.kwargs) -> T:
        """A table over all entities, computed once for whoever asks; its key is given in order, without names."""
        if named:  # the types cannot refuse them
            message = f"the key of {definition.name} is given in order, without names"
            raise TypeError(message)
        table: T = self._index.tables.of(self, definition, key)
        return table

    def moved_on(
        self, groups: list[SeriesGroup], added: Capture, sources: list[SourceInfo], inventory: Inventory
    ) -> Capture:
        """The capture of the next step of a live window, with the derived tables that still hold.

        Args:
            groups: all samples of the window, those that were added among them.
            added: a capture of the samples that were added.
            sources: of the window.
            inventory: of the window.
        """
        capture = Capture(groups, sources, inventory)
        changed = frozenset(group.metric for group in added.groups)
        same_series = len(groups) == len(self.groups) and all(
            new.entities is old.entities and new.metric == old.metric
            for new, old in zip(groups, self.groups, strict=True)
        )
        if same_series:
            capture._index.tables = self._index.tables.carried(changed, added)
            capture._index.same.update(self._index.same)
        return capture

    def is_aligned(self, group: SeriesGroup, metric: str) -> bool:
        """Whether any entity of a group has another metric at the same times, be it measured or not."""
        entities = set(group.entities)
        return any(not entities.isdisjoint(other.entities) for other in self._sampled_with(group, metric))

    def _sampled_with(self, group: SeriesGroup, metric: str) -> Iterator[SeriesGroup]:
        """Groups of a metric from the same recording with the same times, one after the other."""
        candidates = self._index.by_source.get((metric, group.source), ())
        for place, other in enumerate(candidates):
            if _may_share_times(other, group):
                kept = self._measured(other, (metric, group.source, place))
                if kept is not None and _sampled_together(kept, group):
                    yield kept

    def _measured(self, group: SeriesGroup, key: tuple[str, int, int]) -> SeriesGroup | None:
        """A group without its sample since boot, the same object at every call; None when nothing is left."""
        measured = self._index.measured
        if key in measured:
            return measured[key]
        kept = next(iter(self._chosen((group,), group.metric)), None)
        if not (group.since_boot and isinstance(group.stored, PackedValues)):  # that would keep it unpacked
            measured[key] = kept
        return kept

    def series(self) -> Iterator[tuple[SeriesGroup, int]]:
        """Every series as (group, row)."""
        for group in self.groups:
            for row in range(len(group.entities)):
                yield group, row

    @property
    def series_count(self) -> int:
        """How many series there are."""
        return sum(len(group.entities) for group in self.groups)

    def span_ns(self) -> tuple[int, int] | None:
        """First and last sample of all series, UTC nanoseconds, or None when nothing has a time."""
        starts = [int(g.times_ns[0]) for g in self.groups if len(g.times_ns)]
        ends = [int(g.times_ns[-1]) for g in self.groups if len(g.times_ns)]
        return (min(starts), max(ends)) if starts else None

    def shifted(self, offset_s: float) -> Capture:
        """The same capture with its clock put right by adding ``offset_s`` to every time."""
        delta = round(offset_s * NS_PER_S)
        groups = [g.relabelled(times_ns=g.times_ns + delta) for g in self.groups]
        sources = [
            replace(
                s,
                offset_s=s.offset_s + offset_s,
                start_ns=None if s.start_ns is None else s.start_ns + delta,
                end_ns=None if s.end_ns is None else s.end_ns + delta,
            )
            for s in self.sources
        ]
        return Capture(groups, sources, self.inventory, list(self.results))

    def between(self, start_ns: int, end_ns: int) -> Capture:
        """What was recorded in a span of time, UTC nanoseconds; the inventory stays.

        Samples are those of `SeriesGroup.between`. A result of a load tool is one number for its whole run: it stays
        when the whole run lies in the span.
        """
        cut = (group.between(start_ns, end_ns) for group in self.groups)
        groups = [group for group in cut if len(group.times_ns)]
        sources = []
        for index, source in enumerate(self.sources):
            kept = [group for group in groups if group.source == index]
            span = Capture(kept).span_ns() or (None, None)
            count = sum(len(group.entities) for group in kept)
            sources.append(replace(source, start_ns=span[0], end_ns=span[1], series_count=count))
        results = [result for result in self.results if _ran_between(result, start_ns, end_ns)]
        return Capture(groups, sources, self.inventory, results)

    @classmethod
    def merged(cls, captures: Iterable[Capture]) -> Capture:
        """Several captures on one time line; each keeps its own samples and its own clock offset."""
        whole = cls()
        for capture in captures:
            base = len(whole.sources)
            whole.groups.extend(g.relabelled(source=g.source + base) for g in capture.groups)
            whole.sources.extend(capture.sources)
            whole.inventory.merge(capture.inventory)
            whole.results.extend(capture.results)
        return whole


def _ran_between(result: Result, start_ns: int, end_ns: int) -> bool:
    if result.start_ns is None or not np.isfinite(result.duration_s):
        return False
    return start_ns <= result.start_ns and result.start_ns + round(result.duration_s * NS_PER_S) <= end_ns


@dataclass(slots=True)
class _Index:
    """The groups of a capture that have series, by metric, and by metric and recording; each in their order.

    ``groups`` is the list that was looked at and ``count`` its length then. ``handed_out`` is what `Capture.of`
    answered, ``measured`` what other metrics were aligned with, ``tables`` what was derived, and ``same`` which columns
    of entities were compared, and are the same.
    """

    groups: list[SeriesGroup]
    count: int
    by_metric: dict[str, list[SeriesGroup]]
    by_source: dict[tuple[str, int], list[SeriesGroup]]
    handed_out: dict[tuple[str, tuple[EntityKind, ...]], list[SeriesGroup]]
    measured: dict[tuple[str, int, int], SeriesGroup | None]
    tables: TableStore
    same: dict[tuple[int, int], tuple[Sequence[Entity], Sequence[Entity], bool]]

    @classmethod
    def of(cls, groups: list[SeriesGroup]) -> _Index:
        """The index of a list as it is now."""
        index = cls(groups, len(groups), {}, {}, {}, {}, TableStore(), {})
        for group in groups:
            if group.entities:
                index.by_metric.setdefault(group.metric, []).append(group)
                index.by_source.setdefault((group.metric, group.source), []).append(group)
        return index

    def place_in(self, part: Sequence[Entity], entities: Sequence[Entity]) -> int | None:
        """The row of entities at which a part of some column begins; None where they are not those of the column."""
        if not isinstance(part, EntityColumn) or part.part_of is None:
            return None
        whole, first = part.part_of
        key = (id(whole), id(entities))
        if key not in self.same:
            self.same[key] = (whole, entities, whole is entities or _are_same(whole, entities))
        return first if self.same[key][2] else None

    def is_of(self, groups: list[SeriesGroup]) -> bool:
        """Whether it still holds for a list."""
        return self.groups is groups and self.count == len(groups)


def _of_kinds(group: SeriesGroup, kinds: tuple[EntityKind, ...]) -> SeriesGroup | None:
    """The series of entities of some kinds, of all where none is named; None where there is none."""
    if not kinds:
        return group
    if isinstance(group.entities, EntityColumn):
        if group.entities.kinds.issubset(kinds):
            return group
        rows, entities = group.entities.of_kinds(kinds)
        return replace(group.take(rows), entities=entities) if rows else None
    rows = [row for row, entity in enumerate(group.entities) if entity.kind in kinds]
    if len(rows) == len(group.entities):
        return group
    return group.take(rows) if rows else None


def _are_same(ones: Sequence[Entity], others: Sequence[Entity]) -> bool:
    return len(ones) == len(others) and list(ones) == list(others)


def _are_disjoint(ones: Sequence[Entity], others: Sequence[Entity]) -> bool:
    """Whether columns are of other kinds of entities: cheap to see, and true of most that are sampled together."""
    if not (isinstance(ones, EntityColumn) and isinstance(others, EntityColumn)):
        return False
    return ones.kinds.isdisjoint(others.kinds)


def _copied_bytes(group: SeriesGroup) -> int:
    """The memory that values chosen from a larger group take; packed values take next to none."""
    stored = group.stored
    return 0 if isinstance(stored, PackedValues) else stored.nbytes


def _may_share_times(recorded: SeriesGroup, handed_out: SeriesGroup) -> bool:
    """Whether the groups have as many samples, that since boot left out of the one that is as recorded."""
    return len(recorded.times_ns) - int(recorded.since_boot) == len(handed_out.times_ns)


def _sampled_together(one: SeriesGroup, other: SeriesGroup) -> bool:
    if one.source != other.source or one.times_ns.shape != other.times_ns.shape:
        return False
    return one.times_ns is other.times_ns or np.array_equal(one.times_ns, other.times_ns)


class CaptureBuilder:
    """Collects what an importer reads into a capture of one source.

    Series are added as whole groups (`add`) or one by one (`add_series`); one-by-one series that share times are
    stacked at the end.
    """

    def __init__(self, name: str, importer: str, tool: str) -> None:
        self.info = SourceInfo(name=name, importer=importer, tool=tool)
        self.inventory = Inventory()
        self.results: list[Result] = []
        self._groups: list[SeriesGroup] = []
        self._loose: dict[
            tuple[str, bytes, bool], tuple[list[Entity], list[NDArray[Any]], NDArray[np.int64], float]
        ] = {}
        self._warnings: list[Warn] = []

    def warn(self, code: str, message: str, count: int = 1) -> None:
        """Note something repaired or left out; the same code is counted up."""
        for i, warning in enumerate(self._warnings):
            if warning.code == code and warning.message == message:
                self._warnings[i] = replace(warning, count=warning.count + count)
                return
        self._warnings.append(Warn(code, message, count))

    def add(self, group: SeriesGroup) -> None:
        """Add a group whose metric, entities and times are already columns."""
        if len(group.entities):
            self._groups.append(group)

    def add_series(
        self,
        metric: str,
        entity: Entity,
        times_ns: NDArray[np.int64],
        values: NDArray[Any],
        *,
        interval_s: float | None = None,
        since_boot: bool = False,
    ) -> None:
        """Add one series: times int64 [n] UTC nanoseconds, values [n] in the metric's unit, NaN not measured."""
        key = (metric, times_ns.tobytes(), since_boot)
        step = usual_interval_s(times_ns) if interval_s is None else interval_s
        entities, rows, _, _ = self._loose.setdefault(key, ([], [], times_ns, step))
        entities.append(entity)
        rows.append(np.asarray(values, dtype=np.float64))

    def build(self, **info: Any) -> Capture:  # noqa: ANN401 - the fields of SourceInfo
        """The capture; keyword arguments set fields of its `SourceInfo`."""
        for (metric, _, since_boot), (entities, rows, times, step) in self._loose.items():
            self._groups.append(SeriesGroup(metric, entities, times, np.vstack(rows), step, since_boot=since_boot))
        for group in self._groups:
            for entity in group.entities:
                if entity not in self.inventory.facts:
                    for part in reversed(list(entity.lineage())):
                        self.inventory.add(part, self.info.name)
        capture = Capture(self._groups, [], self.inventory, self.results)
        span = capture.span_ns() or (None, None)
        source = replace(
            self.info,
            start_ns=span[0],
            end_ns=span[1],
            series_count=capture.series_count,
            warnings=tuple(self._warnings),
        )
        capture.sources.append(replace(source, **info))
        return capture


def usual_interval_s(times_ns: NDArray[np.int64]) -> float:
    """The median distance of samples in seconds; NaN for fewer than two samples."""
    if len(times_ns) < 2:
        return float("nan")
    ordered = np.sort(times_ns[1:] - times_ns[:-1])  # `numpy.median` takes five times as long for the few of a report
    half = len(ordered) // 2
    middle = ordered[half] if len(ordered) % 2 else (float(ordered[half - 1]) + float(ordered[half])) / 2
    return float(middle) / NS_PER_S
