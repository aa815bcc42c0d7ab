"""The series of each entity, and what it was on average over some time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from leadline.core.model.derived import Recorded, derived
from leadline.core.statistics.rows import row_window_means
from leadline.estate.arithmetic.episodes import sample_bounds
from leadline.estate.derived.disks import means_over

if TYPE_CHECKING:
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Window


class SeriesPlace(NamedTuple):
    """Where one series lies."""

    group: SeriesGroup
    row: int

    def alone(self) -> SeriesGroup:
        """A group that holds this series only."""
        return self.group.take([self.row])


Places = Mapping["Entity", list[SeriesPlace]]


@derived()
def places_by_entity(reader: Recorded, metric: str) -> Places:
    """The series of a metric, by entity: one for each recording that has it."""
    return placed(reader.of(metric))


@derived()
def places_by_parent(reader: Recorded, metric: str) -> Places:
    """The series of a metric, by what the entity is a part of: the waits of a server, the devices of a host."""
    return placed_by_parent(reader.of(metric))


def placed(groups: Iterable[SeriesGroup]) -> Places:
    """The series of groups, by entity."""
    by_entity: dict[Entity, list[SeriesPlace]] = {}
    for group in groups:
        for row, entity in enumerate(group.entities):
            by_entity.setdefault(entity, []).append(SeriesPlace(group, row))
    return by_entity


def placed_by_parent(groups: Iterable[SeriesGroup]) -> Places:
    """The series of groups, by what their entities are parts of."""
    by_parent: dict[Entity, list[SeriesPlace]] = {}
    for group in groups:
        for row, entity in enumerate(group.entities):
            if entity.parent is not None:
                by_parent.setdefault(entity.parent, []).append(SeriesPlace(group, row))
    return by_parent


def mean_of(context: Recorded, metric: str, entity: Entity, windows: Iterable[Window]) -> float | None:
    """The mean of an entity's metric over windows, weighted by time; None where it was not measured then.

    Of several recordings the last that measured it counts.
    """
    return mean_at(context.table(places_by_entity, metric).get(entity, ()), windows)


def means_of_parts(context: Recorded, metric: str, parent: Entity, windows: Iterable[Window]) -> dict[Entity, float]:
    """The means of a metric of the parts of an entity over windows, weighted by time; of those measured then."""
    return means_at(context.table(places_by_parent, metric).get(parent, ()), windows)


def mean_at(places: Iterable[SeriesPlace], windows: Iterable[Window]) -> float | None:
    """The mean over windows of an entity's series, of the last that was measured then; None where none was."""
    spans = list(windows)
    starts, ends = (
        np.array(side, dtype=np.int64) for side in zip(*((w.start_ns, w.end_ns) for w in spans), strict=True)
    )
    weighted: float | None = None
    for group, row in places:
        means = row_window_means(group.one(row), sample_bounds(group), (starts, ends))[0].tolist()
        known = [(mean, span.duration_s) for mean, span in zip(means, spans, strict=True) if not isnan(mean)]
        if known:
            weighted = sum(mean * length for mean, length in known) / sum(length for _, length in known)
    return weighted


def means_at(places: Iterable[SeriesPlace], windows: Iterable[Window]) -> dict[Entity, float]:
    """The means over windows of some series, by entity, as `means_over` of their groups."""
    rows_by_group: dict[int, tuple[SeriesGroup, list[int]]] = {}
    for group, row in places:
        rows_by_group.setdefault(id(group), (group, []))[1].append(row)
    return means_over((group.take(rows) for group, rows in rows_by_group.values()), windows)
