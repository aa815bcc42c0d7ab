"""What tests of the report are made of: small groups of series, captures with other names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
NS = 1_000_000_000


def group_of(values: Any, step_s: float = 5.0, metric: str = "disk_iops") -> SeriesGroup:
    array = np.atleast_2d(np.asarray(values, dtype=np.float64))
    entities = [Entity(EntityKind.DEVICE, f"lun{k}") for k in range(len(array))]
    times = NS * 1_700_000_000 + (np.arange(array.shape[1]) * step_s * NS).astype(np.int64)
    return SeriesGroup(metric, entities, times, array, step_s)


def renamed(capture: Capture, old: str, new: str) -> Capture:
    def of(entity: Entity) -> Entity:
        parent = None if entity.parent is None else of(entity.parent)
        return Entity(entity.kind, new if entity.name == old else entity.name, parent)

    return Capture(
        [replace(group, entities=[of(entity) for entity in group.entities]) for group in capture.groups],
        list(capture.sources),
        replace(capture.inventory, facts={of(entity): own for entity, own in capture.inventory.facts.items()}),
    )
