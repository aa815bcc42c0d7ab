"""The meter: what rules ask of a capture, counted; no clock, so that a test may bound it.

A capture has none unless a test or a bench gives it one.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


class _LookedAt(np.ndarray[Any, np.dtype[Any]]):
    """Values of a series group that count the rows that are computed with; what comes of them is a plain array."""

    metric: str
    meter: Meter | None = None

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - as NumPy has it
        part = self.view(np.ndarray)[key]
        self._count(part)
        return part

    def __iter__(self) -> Iterator[Any]:
        self._count(self)
        return iter(self.view(np.ndarray))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:  # noqa: ANN401
        self._count(self)
        plain = [_plain(one) for one in inputs]
        if "out" in named:
            named["out"] = tuple(map(_plain, named["out"]))
        return getattr(ufunc, method)(*plain, **named)

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:  # noqa: ANN401
        self._count(self)
        return function(*_all_plain(arguments), **{name: _all_plain(value) for name, value in named.items()})

    def astype(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        """As NumPy has it, and counted."""
        self._count(self)
        return self.view(np.ndarray).astype(*arguments, **named)

    def _count(self, part: Any) -> None:  # noqa: ANN401
        if self.meter is not None:
            self.meter.count("rows", self.metric, part.shape[0] if getattr(part, "ndim", 0) == 2 else 1)


def looked_at(values: NDArray[Any], metric: str, meter: Meter) -> NDArray[Any]:
    """The same values [k, n], which count when they are computed with."""
    counted = values.view(_LookedAt)
    counted.metric, counted.meter = metric, meter
    return counted


def _plain(value: Any) -> Any:  # noqa: ANN401
    return value.view(np.ndarray) if isinstance(value, _LookedAt) else value


def _all_plain(value: Any) -> Any:  # noqa: ANN401
    return type(value)(map(_all_plain, value)) if isinstance(value, list | tuple) else _plain(value)


def _helper() -> str:
    frame = sys._getframe(2)
    while frame.f_back is not None:
        name = PurePath(frame.f_code.co_filename).stem
        if name not in _PASSED_ON and not frame.f_code.co_name.startswith("<"):
            return f"{name}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "?"
