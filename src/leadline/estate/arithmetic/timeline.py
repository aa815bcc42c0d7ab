"""Series of several recordings on one time line, and series of a whole made from those of its parts.

Two recordings of one incident have different sample times and intervals. They are compared over the same windows: the
finer one is averaged over the sample intervals of the coarser one, so neither is credited with detail it lacks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.core.statistics.rows import Fold, row_window_means, rows_by_owner
from leadline.estate.arithmetic.episodes import sample_bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from leadline.core.contracts.rule import RuleContext


def window_mean(
    group: SeriesGroup, starts_ns: NDArray[np.int64], ends_ns: NDArray[np.int64]
) -> NDArray[np.floating[Any]]:
    """Means of every series of a group over windows, weighted by time.

    Args:
        group: k series; each sample stands for the interval that ends at its time.
        starts_ns: int64 [m], UTC nanoseconds, where the windows begin.
        ends_ns: int64 [m], where they end; the windows may overlap or leave gaps.

    Returns:
        float64 [k, m] in the group's unit; NaN where less than half of a window was measured.
    """
    if not len(group.times_ns) or not len(starts_ns):
        return np.full((len(group.entities), len(starts_ns)), np.nan)
    return row_window_means(group.values, sample_bounds(group), (starts_ns, ends_ns))


def on_same_windows(
    one: SeriesGroup, other: SeriesGroup
) -> tuple[SeriesGroup, NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Two groups over the sample intervals of the coarser one.

    Returns:
        The coarser group, which gives the n windows; over them the values of ``one`` [k1, n] and of ``other`` [k2, n].
        A recording of one sample of unknown interval covers no window: NaN.
    """
    if one.times_ns is other.times_ns or np.array_equal(one.times_ns, other.times_ns):
        return one, one.values, other.values
    grid = one if np.isnan(other.interval_s) or one.interval_s >= other.interval_s else other
    starts, ends = sample_bounds(grid)
    if grid is one:
        return grid, one.values, window_mean(other, starts, ends)
    return grid, window_mean(one, starts, ends), other.values


def host_groups(context: RuleContext, metric: str) -> list[SeriesGroup]:
    """Groups of a host metric; a host that was only recorded per physical CPU has the mean over its CPUs."""
    groups = context.of(metric, EntityKind.HOST)
    known = {entity for group in groups for entity in group.entities}
    for group in context.of(metric, EntityKind.PCPU):
        means = whole_of_parts(group, EntityKind.HOST, "mean")
        rows = [row for row, host in enumerate(means.entities) if host not in known]
        if rows:
            groups.append(means.take(rows))
    return groups


def whole_of_parts(group: SeriesGroup, kind: EntityKind, fold: Fold) -> SeriesGroup:
    """One series per ancestor of ``kind``, made from the series of its parts.

    Args:
        group: series of parts; those without such an ancestor are left out.
        kind: kind of the whole; an entity of that kind is its own part.
        fold: what the whole is of its parts at each time.

    Returns:
        The same metric and times; NaN where no part was measured.
    """
    places: dict[Entity, int] = {}
    owners = np.full(len(group.entities), -1, dtype=np.int64)
    for row, entity in enumerate(group.entities):
        whole = entity.ancestor(kind)
        if whole is not None:
            owners[row] = places.setdefault(whole, len(places))
    values = rows_by_owner(group.values, owners, len(places), fold)
    return replace(group, entities=list(places), values=values)


def ever_above(
    group: SeriesGroup, limit: float, value: Callable[[SeriesGroup], NDArray[np.floating[Any]]] | None = None
) -> SeriesGroup | None:
    """The series of a group that exceed a limit at any time, or None: most parts of a large recording never do.

    ``value`` computes what is compared and kept, [k, n], from some of the series; their values when None.
    """
    kept: list[Entity] = []
    values: list[NDArray[np.floating[Any]]] = []
    for part in group.slices():
        compared = part.values if value is None else value(part)
        with np.errstate(invalid="ignore"):
            rows = np.flatnonzero((compared > limit).any(axis=1))
        if len(rows):
            kept.extend(part.entities[int(row)] for row in rows)
            values.append(compared[rows])
    return replace(group, entities=kept, values=np.concatenate(values)) if kept else None
