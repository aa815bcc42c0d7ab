"""Answers of vCenter put into columns: a row for each metric of each entity, the same from one cycle to the next.

Which row a series of an answer belongs to is worked out once, for answers have the same series in the same order from
cycle to cycle; from then on values are moved as whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.collectors._vcenter_live.counters import LiveCounter, metric_and_scale
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity, EntityColumn
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.vcenter.counters import SUMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline._core import VspherePerfAnswer

_NUMBERED = (EntityKind.VCPU, EntityKind.PCPU)


@dataclass(slots=True)
class _Plan:
    """Where the series of an answer go.

    Attributes:
        keys: what the answer must have for the plan to hold.
        first: the series that fill a row first, [m].
        rows: their rows, [m].
        entities: which entity of the answer each is of, [m].
        scales: of all series, float32 [series, 1].
        more: further parts of rows: which of the m, the series, and whether they are added.
    """

    keys: tuple[Any, ...]
    first: NDArray[np.int64]
    rows: NDArray[np.int64]
    entities: NDArray[np.int64]
    scales: NDArray[np.float32]
    more: list[tuple[NDArray[np.int64], NDArray[np.int64], bool]]

    def holds(self, answer: VspherePerfAnswer, owners: Sequence[Entity | None]) -> bool:
        """Whether an answer has the same series of the same entities."""
        known, instances, *columns = self.keys
        new = (answer.series_entities, answer.series_counters, answer.series_instances)
        same = len(known) == len(owners) and all(one is other for one, other in zip(known, owners, strict=True))
        return (
            same
            and bool(instances == answer.instances)
            and all(np.array_equal(one, other) for one, other in zip(columns, new, strict=True))
        )

    def values(self, series: NDArray[np.float32]) -> NDArray[np.float32]:
        """The values [m, n] of the rows, from those of the series [series, n]."""
        scaled = series * self.scales
        whole: NDArray[np.float32] = scaled[self.first]
        for places, further, is_sum in self.more:
            with np.errstate(invalid="ignore"):
                one, other = whole[places], scaled[further]
                whole[places] = one + other if is_sum else np.fmax(one, other)
        return whole


@dataclass(slots=True)
class Placing:
    """How series are named: the counters by key, the name of an instance, the vCPUs of a VM."""

    counters: dict[int, LiveCounter]
    part_name: Callable[[Entity, EntityKind, str], str]
    vcpu_count: Callable[[Entity], int | None]


@dataclass(slots=True)
class LiveColumns:
    """Rows of metrics and entities, and the samples that a cycle brought."""

    placing: Placing
    interval_s: float
    source: int = 0
    _rows: dict[tuple[str, Entity], int] = field(default_factory=dict)
    _plans: dict[tuple[int, int], _Plan] = field(default_factory=dict)
    _pieces: list[tuple[NDArray[np.int64], tuple[int, ...], NDArray[np.float32]]] = field(default_factory=list)
    _layout: list[tuple[str, NDArray[np.int64], EntityColumn]] | None = None
    _newest_ns: int | None = None

    def take(
        self,
        place: tuple[int, int],
        answer: VspherePerfAnswer,
        owners: Sequence[Entity | None],
        fresh: Sequence[tuple[int, ...]],
    ) -> int:
        """Take in the new samples of an answer, and count them.

        Args:
            place: which query it is the answer to.
            answer: of vCenter.
            owners: the entities of the answer; None for one that is not known.
            fresh: the moments of each that are new, UTC nanoseconds, ascending.
        """
        plan = self._plans.get(place)
        if plan is None or not plan.holds(answer, owners):
            plan = self._plans[place] = self._planned(answer, owners)
        groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        moments = answer.entity_moments.tolist()
        for index, times in enumerate(fresh):
            if times and owners[index] is not None:
                groups.setdefault((moments[index], times), []).append(index)
        if not groups or not len(plan.first):
            return 0
        counts = np.array([len(times_ns) for times_ns, _ in answer.moments], dtype=np.int64)
        per_series = counts[answer.entity_moments][answer.series_entities]
        offsets = np.cumsum(per_series) - per_series
        taken = 0
        for (moment, times), members in groups.items():
            columns = _columns(answer.moments[moment][0], times)
            is_whole = len(members) == len(owners)
            if is_whole:
                series = answer.values.reshape(len(per_series), -1)[:, columns]
            else:
                chosen = np.isin(answer.series_entities, members)
                series = np.full((len(per_series), len(times)), np.nan, dtype=np.float32)
                series[chosen] = answer.values[offsets[chosen, None] + columns]
            values, rows = plan.values(series), plan.rows
            if not is_whole:
                kept = np.isin(plan.entities, members)
                values, rows = values[kept], rows[kept]
            self._pieces.append((rows, times, values))
            taken += values.size
        return taken

    def _planned(self, answer: VspherePerfAnswer, owners: Sequence[Entity | None]) -> _Plan:
        keys = (tuple(owners), answer.instances, *_columns_of(answer))
        places: dict[int, int] = {}
        first: list[int] = []
        of_first: list[int] = []
        rounds: list[int] = []
        further: dict[tuple[int, bool], tuple[list[int], list[int]]] = {}
        scales = np.ones((len(answer.series_counters), 1), dtype=np.float32)
        for series, entity, metric, target, scale in self._placed(answer, owners):
            scales[series] = scale
            row = self._row(metric, target)
            if row not in places:
                places[row] = len(first)
                first.append(series)
                of_first.append(entity)
                rounds.append(0)
                continue
            at = places[row]
            rounds[at] += 1
            lists = further.setdefault((rounds[at], metric in SUMS), ([], []))
            lists[0].append(at)
            lists[1].append(series)
        more = [
            (np.array(at, dtype=np.int64), np.array(series, dtype=np.int64), is_sum)
            for (_, is_sum), (at, series) in sorted(further.items())
        ]
        columns = np.array([first, list(places), of_first], dtype=np.int64)
        return _Plan(keys, columns[0], columns[1], columns[2], scales, more)

    def _placed(
        self, answer: VspherePerfAnswer, owners: Sequence[Entity | None]
    ) -> Iterator[tuple[int, int, str, Entity, float]]:
        """Series that have a metric: which it is, which entity of the answer's, the metric, whose it is, the factor."""
        columns = list(zip(*(column.tolist() for column in _columns_of(answer)), strict=True))
        placing, names = self.placing, answer.instances
        coarser = {counter.coarser: key for key, counter in placing.counters.items() if counter.coarser is not None}
        fine = set(coarser.values())
        finer = {(entity, instance, key) for entity, key, instance in columns if key in fine}
        wholes = {(entity, key) for entity, key, instance in columns if not names[instance]}
        parts: dict[tuple[int, int, EntityKind], Entity] = {}
        for series, (entity, key, instance) in enumerate(columns):
            owner, counter, name = owners[entity], placing.counters.get(key), names[instance]
            if owner is None or counter is None or (entity, instance, coarser.get(key)) in finer:
                continue
            if owner.kind is EntityKind.DATASTORE and (entity, key) not in wholes:
                # A datastore may be an instance of itself.
                name = "" if placing.part_name(owner, EntityKind.DATASTORE, name) == owner.name else name
            if not name:
                whole = metric_and_scale(counter, owner, placing.vcpu_count(owner) if counter.shares_vcpus else None)
                if whole is not None:
                    yield series, entity, whole[0], owner, whole[1]
                continue
            if counter.part is None or (counter.part in _NUMBERED and not name.isdigit()):
                continue
            part = (entity, instance, counter.part)
            if part not in parts:
                parts[part] = Entity(counter.part, placing.part_name(owner, counter.part, name), owner)
            yield series, entity, counter.metric, parts[part], counter.scale

    def _row(self, metric: str, entity: Entity) -> int:
        row = self._rows.get((metric, entity))
        if row is None:
            row = self._rows[metric, entity] = len(self._rows)
            self._layout = None
        return row

    def keep(self, owners: set[Entity]) -> None:
        """Drop the rows of entities that are not, and are not part of, one of some."""
        gone = [key for key in self._rows if not any(entity in owners for entity in key[1].lineage())]
        if not gone:
            return
        for key in gone:
            del self._rows[key]
        numbers = np.full(len(self._rows) + len(gone), -1, dtype=np.int64)
        for row, (key, old) in enumerate(list(self._rows.items())):
            numbers[old] = row
            self._rows[key] = row
        self._layout = None
        for place, plan in list(self._plans.items()):
            plan.rows = numbers[plan.rows]
            if (plan.rows < 0).any():
                del self._plans[place]

    def drop(self) -> None:
        """Forget the samples of a cycle that broke off."""
        self._pieces.clear()

    def groups(self) -> list[SeriesGroup]:
        """The samples of this cycle: whole columns of moments later than all before, and late samples apart."""
        pieces, self._pieces = self._pieces, []
        moments = sorted({time_ns for _, times, _ in pieces for time_ns in times})
        newest = self._newest_ns
        late = [time_ns for time_ns in moments if newest is not None and time_ns <= newest]
        on_time = moments[len(late) :]
        groups = []
        if on_time:
            matrix, _ = self._matrix(pieces, on_time)
            times_ns = np.array(on_time, dtype=np.int64)
            for metric, rows, entities in self._laid_out():
                groups.append(self._group(metric, entities, times_ns, matrix[rows]))
            self._newest_ns = on_time[-1]
        if late:
            matrix, filled = self._matrix(pieces, late)
            times_ns = np.array(late, dtype=np.int64)
            for metric, rows, entities in self._laid_out():
                kept = np.flatnonzero(filled[rows])
                if len(kept):
                    some = EntityColumn([entities[place] for place in kept.tolist()])
                    groups.append(self._group(metric, some, times_ns, matrix[rows[kept]]))
        return groups

    def _group(
        self, metric: str, entities: EntityColumn, times_ns: NDArray[np.int64], values: NDArray[np.float32]
    ) -> SeriesGroup:
        return SeriesGroup(metric, entities, times_ns, values, self.interval_s, self.source)

    def _matrix(
        self, pieces: list[tuple[NDArray[np.int64], tuple[int, ...], NDArray[np.float32]]], moments: list[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The values [rows, moments], and whether a row has any sample."""
        matrix = np.full((len(self._rows), len(moments)), np.nan, dtype=np.float32)
        filled = np.zeros(len(self._rows), dtype=bool)
        places = {time_ns: place for place, time_ns in enumerate(moments)}
        for rows, times, values in pieces:
            columns = [index for index, time_ns in enumerate(times) if time_ns in places]
            for index in columns:
                matrix[rows, places[times[index]]] = values[:, index]
            if columns:
                filled[rows] = True
        return matrix, filled

    def _laid_out(self) -> list[tuple[str, NDArray[np.int64], EntityColumn]]:
        """Metric, rows and entities; metrics of the same entities have the same column of them."""
        if self._layout is None:
            by_metric: dict[str, tuple[list[int], list[Entity]]] = {}
            for (metric, entity), row in self._rows.items():
                rows, entities = by_metric.setdefault(metric, ([], []))
                rows.append(row)
                entities.append(entity)
            columns: dict[tuple[Entity, ...], EntityColumn] = {}
            self._layout = [
                (metric, np.array(rows, dtype=np.int64), columns.setdefault(tuple(entities), EntityColumn(entities)))
                for metric, (rows, entities) in by_metric.items()
            ]
        return self._layout


def _columns_of(answer: VspherePerfAnswer) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    return answer.series_entities, answer.series_counters, answer.series_instances


def _columns(moments: NDArray[np.int64], times: tuple[int, ...]) -> NDArray[np.int64]:
    """Where times stand among moments in any order."""
    order = np.argsort(moments, kind="stable")
    wanted: NDArray[np.int64] = order[np.searchsorted(moments[order], np.array(times, dtype=np.int64))]
    return wanted
