"""What one-off recordings tell of each entity: sums of a log, numbers of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.entities import Entity


def by_entity(context: RuleContext, metric: str) -> dict[Entity, float]:
    """The largest value of a metric of each entity that has one."""
    known: dict[Entity, float] = {}
    for group in context.of(metric):
        for entity, values in zip(group.entities, group.values, strict=True):
            if np.isfinite(values).any():
                known[entity] = max(float(np.nanmax(values)), known.get(entity, float("-inf")))
    return known
