"""Rules that look at a mean over the incident, or over the whole recording where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.finding import Window
from leadline.core.model.incident import Change

if TYPE_CHECKING:
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


def level(context: RuleContext, metric: str, *kinds: EntityKind, of: Entity | None = None) -> Change | None:
    """The change of the series that had most of a metric; without an incident its mean, with a normal of NaN.

    ``of`` leaves only one entity's series.
    """
    if context.incident is not None and of is None:
        return context.change(metric, *kinds)
    if context.incident is not None:
        changes = (change for change in context.changes(metric, *kinds) if change.entity == of)
        return max(changes, key=lambda change: max(change.normal, change.during), default=None)
    means = [
        Change(entity, metric, group.unit, _NAN, float(np.mean(values[np.isfinite(values)])), _NAN, 0.0)
        for group in context.of(metric, *kinds)
        for entity, values in zip(group.entities, group.values, strict=True)
        if np.isfinite(values).any() and of in (None, entity)
    ]
    return max(means, key=lambda change: change.during, default=None)


def is_more(change: Change, times: float) -> bool:
    """Whether it is so many times the normal; true where there is nothing to compare with."""
    return not np.isfinite(change.normal) or change.during >= times * change.normal
