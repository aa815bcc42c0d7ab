"""Tables derived from a capture: each is computed once, over all entities, whoever asks for it.

A rule that asks a question of one entity after the other must not look at all series each time. It asks for a table
over all of them (`Capture.table`, `RuleContext.table`) and takes one entity's row. A definition says which metrics it
reads, is handed a `TableReader` that gives these and no others, and says how its table is kept while samples arrive.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.entities import Inventory
    from leadline.core.model.vocabulary import EntityKind

KEPT_BYTES_MAX = 64 * 1024**2  # Judgement: as much as the slices that a rule computes with
P = ParamSpec("P")
T = TypeVar("T")


class Upkeep(Enum):
    """How a table is brought up to date when a live window moves on."""

    APPEND = "append"  # what new samples add is added to it (`TableDefinition.append`)
    WINDOW = "window"  # computed anew where one of its metrics has new samples, or the inventory changed
    WHOLE = "whole"  # of the inventory and of which series there are: kept until one of them changes


class Recorded(Protocol):
    """What a definition, or a helper that it shares with rules, may ask: a capture, a rule's context, a reader."""

    @property
    def inventory(self) -> Inventory:
        """What is known about settings."""

    def of(self, metric: str, *kinds: EntityKind) -> list[SeriesGroup]:
        """Groups of a metric, as `Capture.of`."""

    def aligned(self, group: SeriesGroup, metric: str) -> NDArray[np.floating[Any]] | None:
        """Another metric of the same entities at the same times, as `Capture.aligned`."""

    def table(self, definition: TableDefinition[P, T], *key: P.args, **named: P.kwargs) -> T:
        """A derived table, as `Capture.table`."""


@dataclass(frozen=True, eq=False)
class TableDefinition(Generic[P, T]):
    """How a table is computed.

    Attributes:
        name: of the function that computes it.
        reads: metrics it reads beside those named in its key.
        upkeep: how it is kept while samples arrive.
        compute: gives the table from a reader and the key.
        append: the table with the samples of a reader added, for `Upkeep.APPEND`; its first argument is the table.
    """

    name: str
    reads: tuple[str, ...]
    upkeep: Upkeep
    compute: Callable[Concatenate[Recorded, P], T]
    append: Callable[[Any, Recorded], Any] | None = None

    def metrics(self, key: Iterable[Hashable]) -> frozenset[str]:
        """The metrics that the table of a key reads; a text in the key names a metric."""
        return frozenset(self.reads) | {part for part in key if isinstance(part, str)}


def derived(
    *reads: str, upkeep: Upkeep = Upkeep.WINDOW, append: Callable[[Any, Recorded], Any] | None = None
) -> Callable[[Callable[Concatenate[Recorded, P], T]], TableDefinition[P, T]]:
    """Make a definition of a function that takes a reader and a key, and returns a table over all entities."""

    def define(compute: Callable[Concatenate[Recorded, P], T]) -> TableDefinition[P, T]:
        return TableDefinition(compute.__name__, reads, upkeep, compute, append)

    return define


@dataclass(frozen=True, slots=True)
class TableReader:
    """A capture as one definition sees it: the metrics it declares, the inventory, and other tables of the like."""

    capture: Capture
    definition: TableDefinition[..., Any]
    metrics: frozenset[str]

    @property
    def inventory(self) -> Inventory:
        """What is known about settings."""
        return self.capture.inventory

    def of(self, metric: str, *kinds: EntityKind) -> list[SeriesGroup]:
        """Groups of a declared metric, as `Capture.of`."""
        self._check((metric,))
        return self.capture.of(metric, *kinds)

    def aligned(self, group: SeriesGroup, metric: str) -> NDArray[np.floating[Any]] | None:
        """A declared metric of the same entities at the same times, as `Capture.aligned`."""
        self._check((metric,))
        return self.capture.aligned(group, metric)

    def table(self, definition: TableDefinition[P, T], *key: P.args, **named: P.kwargs) -> T:
        """Another table, whose metrics are declared too."""
        self._check(definition.metrics(key))
        return self.capture.table(definition, *key, **named)

    def _check(self, metrics: Iterable[str]) -> None:
        missing = set(metrics) - self.metrics
        if missing:
            message = f"{self.definition.name} reads {', '.join(sorted(missing))} and does not declare it"
            raise LookupError(message)


Key = tuple[TableDefinition[..., Any], tuple[Hashable, ...]]


@dataclass(eq=False)
class TableStore:
    """The tables of one capture that were asked for.

    Tables of arrays are dropped when they take more than `KEPT_BYTES_MAX` together: first the one that nobody has asked
    for longest. Tables of single numbers are kept.
    """

    _kept: OrderedDict[Key, Any] = field(default_factory=OrderedDict)
    _bytes: dict[Key, int] = field(default_factory=dict)
    _version: int = -1

    def of(self, capture: Capture, definition: TableDefinition[..., Any], key: tuple[Hashable, ...]) -> Any:  # noqa: ANN401
        """The table of a definition and a key, computed when it is asked for first."""
        if self._version != capture.inventory.version:
            self._kept.clear()
            self._bytes.clear()
            self._version = capture.inventory.version
        place: Key = (definition, key)
        if place in self._kept:
            self._kept.move_to_end(place)
            return self._kept[place]
        if capture.meter is not None:
            capture.meter.count("tables", definition.name, 1)
        table = definition.compute(TableReader(capture, definition, definition.metrics(key)), *key)
        self._keep(place, table)
        return table

    def carried(self, changed: frozenset[str], added: Capture) -> TableStore:
        """The tables that still hold, or can be brought up to date, when metrics got new samples.

        Args:
            changed: metrics with new samples.
            added: a capture of the new samples alone; its inventory is that of the window.
        """
        carried = TableStore(_version=self._version)
        if added.inventory.version != self._version:
            return carried
        for (definition, key), table in self._kept.items():
            metrics = definition.metrics(key)
            if definition.upkeep is Upkeep.WHOLE or changed.isdisjoint(metrics):
                carried._keep((definition, key), table)
            elif definition.upkeep is Upkeep.APPEND and definition.append is not None:
                carried._keep((definition, key), definition.append(table, TableReader(added, definition, metrics)))
        return carried

    def _keep(self, place: Key, table: Any) -> None:  # noqa: ANN401
        self._kept[place] = table
        size = held_bytes(table)
        if size:
            self._bytes[place] = size
        for oldest in [one for one in self._kept if one in self._bytes and one != place]:
            if sum(self._bytes.values()) <= KEPT_BYTES_MAX:
                break
            del self._kept[oldest], self._bytes[oldest]


def held_bytes(table: Any) -> int:  # noqa: ANN401
    """The memory that the arrays of a table take; those that are views of a capture's take none."""
    if isinstance(table, np.ndarray):
        return table.nbytes if table.base is None else 0
    if isinstance(table, dict):
        return sum(map(held_bytes, table.values()))
    if isinstance(table, list | tuple):
        return sum(map(held_bytes, table))
    stored = getattr(table, "stored", None)
    return held_bytes(stored) if isinstance(stored, np.ndarray) else 0
