"""Entities of the rows of a series group, with what is asked of them again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.core.model.entities import Entity
    from leadline.core.model.vocabulary import EntityKind


class EntityColumn(tuple["Entity", ...]):
    """The entities of the rows of series groups, one object for all groups that have the same.

    Attributes:
        part_of: the column that it is a part of, and its first row there; None where it is whole.
    """

    part_of: tuple[EntityColumn, int] | None
    _rows: dict[Entity, list[int]] | None
    _kinds: frozenset[EntityKind] | None
    _parts: dict[tuple[int, int], EntityColumn]
    _chosen: dict[tuple[EntityKind, ...], tuple[list[int], EntityColumn]]

    def __new__(cls, entities: Sequence[Entity], part_of: tuple[EntityColumn, int] | None = None) -> EntityColumn:
        """A column; itself where it is one."""
        if isinstance(entities, EntityColumn) and part_of is None:
            return entities
        column = super().__new__(cls, entities)
        column.part_of, column._rows, column._kinds, column._parts, column._chosen = part_of, None, None, {}, {}
        return column

    @property
    def rows(self) -> dict[Entity, list[int]]:
        """The rows of each entity."""
        if self._rows is None:
            self._rows = {}
            for row, entity in enumerate(self):
                self._rows.setdefault(entity, []).append(row)
        return self._rows

    @property
    def kinds(self) -> frozenset[EntityKind]:
        """The kinds of the entities."""
        if self._kinds is None:
            self._kinds = frozenset(entity.kind for entity in self)
        return self._kinds

    def part(self, first: int, end: int) -> EntityColumn:
        """The entities of some rows, the same object at every call."""
        if (first, end) == (0, len(self)):
            return self
        if (first, end) not in self._parts:
            self._parts[first, end] = EntityColumn(self[first:end], (self, first))
        return self._parts[first, end]

    def of_kinds(self, kinds: tuple[EntityKind, ...]) -> tuple[list[int], EntityColumn]:
        """The rows of entities of some kinds, and these, the same object at every call."""
        if kinds not in self._chosen:
            rows = [row for row, entity in enumerate(self) if entity.kind in kinds]
            self._chosen[kinds] = (rows, EntityColumn([self[row] for row in rows]))
        return self._chosen[kinds]
