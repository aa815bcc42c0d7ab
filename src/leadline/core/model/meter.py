"""The meter: what rules ask of a capture, counted; no clock, so that a test may bound it.

A capture has none unless a test or a bench gives it one.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from leadline.core.model.entities import Entity

_PASSED_ON = frozenset({"capture", "meter", "rule", "dataclasses", "functools"})  # modules that pass a question on


class Work(NamedTuple):
    """A kind of work: what was done ("rows", "cells", "entities"), of which metric, and for which function."""

    kind: str
    metric: str
    helper: str


@dataclass(eq=False)
class Meter:
    """Counts series rows handed out, cells unpacked and entities scanned."""

    counts: Counter[Work] = field(default_factory=Counter)
    _watched: dict[int, tuple[Sequence[Entity], Scanned]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All work; a thousand unpacked cells weigh as much as one row or one entity."""
        return sum(count // 1000 if work.kind == "cells" else count for work, count in self.counts.items())

    def count(self, kind: str, metric: str, amount: int) -> None:
        """Add work of a metric, for the nearest function that is not the capture's own."""
        self.counts[Work(kind, metric, _helper())] += amount

    def watched(self, entities: Sequence[Entity], metric: str) -> Sequence[Entity]:
        """The same entities, which count when they are gone through; one object for one sequence."""
        if isinstance(entities, Scanned):
            return entities
        if id(entities) not in self._watched:
            self._watched[id(entities)] = (entities, Scanned(entities, metric, self))
        return self._watched[id(entities)][1]


class Scanned(list["Entity"]):
    """Entities of a series group that count when they are gone through."""

    def __init__(self, entities: Sequence[Entity], metric: str, meter: Meter) -> None:
        super().__init__(entities)
        self._metric = metric
        self._meter = meter

    def __iter__(self) -> Iterator[Entity]:
        self._meter.count("entities", self._metric, len(self))
        return super().__iter__()


def _helper() -> str:
    frame = sys._getframe(2)
    while frame.f_back is not None:
        name = PurePath(frame.f_code.co_filename).stem
        if name not in _PASSED_ON and not frame.f_code.co_name.startswith("<"):
            return f"{name}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "?"
