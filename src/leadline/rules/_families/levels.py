"""Rules that look at a mean over the incident, or over the whole recording where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.derived import Recorded, derived
from leadline.core.model.finding import Window
from leadline.core.model.incident import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.entities import Entity
    from leadline.core.model.vocabulary import EntityKind

_NAN = float("nan")


def looked_at(context: RuleContext) -> tuple[Window, ...]:
    """The incident, or all of the recording."""
    if context.incident is not None:
        return (context.incident.window,)
    span = context.capture.span_ns()
    return () if span is None else (Window(span[0], span[1]),)


def level(context: RuleContext, metric: str, *kinds: EntityKind) -> Change | None:
    """The change of the series that had most of a metric; without an incident its mean, with a normal of NaN."""
    if context.incident is not None:
        return context.change(metric, *kinds)
    means = (
        change for entity, change in context.table(mean_levels, metric).items() if not kinds or entity.kind in kinds
    )
    return max(means, key=lambda change: change.during, default=None)


def level_of(context: RuleContext, metric: str, entity: Entity) -> Change | None:
    """The same of one entity."""
    return context.change_of(metric, entity) or (
        None if context.incident is not None else context.table(mean_levels, metric).get(entity)
    )


@derived()
def mean_levels(reader: Recorded, metric: str) -> Mapping[Entity, Change]:
    """The mean of each series of a metric as a change without a normal; of several recordings the highest."""
    levels: dict[Entity, Change] = {}
    for group in reader.of(metric):
        for entity, values in zip(group.entities, group.values, strict=True):
            known = values[np.isfinite(values)]
            if len(known) and not (entity in levels and levels[entity].during >= known.mean()):
                levels[entity] = Change(entity, metric, group.unit, _NAN, float(np.mean(known)), _NAN, 0.0)
    return levels


def is_more(change: Change, times: float) -> bool:
    """Whether it is so many times the normal; true where there is nothing to compare with."""
    return not np.isfinite(change.normal) or change.during >= times * change.normal
