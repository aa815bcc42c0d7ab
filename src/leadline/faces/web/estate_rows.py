"""Rows of the estate as a template shows them: names, links, states, what is above and below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from leadline.app.watch.views import ESTATE_KINDS
from leadline.core.model.units import several
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from leadline.app.watch.views import EstateRow
    from leadline.core.model.entities import Entity

_NOUNS = {EntityKind.VM: "VM"}
DEPTH_MAX = 5  # of an indentation


def estate_row(row: EstateRow, top_depth: int = 0) -> dict[str, Any]:
    """A row with its state as a class and in a word; ``top_depth`` is that of the first row of the list."""
    severity = row.severity
    calm = ("cleared", "nothing found") if row.is_measured else ("unexamined", "not measured")
    return {
        **link_of(row.entity),
        "depth": min(row.depth - top_depth, DEPTH_MAX),
        "state": calm[0] if severity is None else severity.label,
        "state_text": calm[1] if severity is None else severity.label,
        "reason": row.reason,
        "incident": row.incident,
    }


def link_of(entity: Entity) -> dict[str, str]:
    """What an entity is called, and where its page is: that of the nearest it is part of that has one."""
    shown = next((one for one in entity.lineage() if one.kind in ESTATE_KINDS), entity)
    name = entity.name if shown is entity else entity.label()
    return {
        "name": name,
        "kind": _NOUNS.get(entity.kind, entity.kind.value),
        "href": f"/entity?{urlencode({'name': str(shown)})}",
    }


def with_ancestors(rows: tuple[EstateRow, ...], count: int) -> list[EstateRow]:
    """The first rows in trouble with what they are part of, else simply the first rows."""
    chosen: dict[int, EstateRow] = {}
    for place in (place for place, one in enumerate(rows) if one.severity is not None):
        for index in [*_places_above(rows, place), place]:
            chosen[index] = rows[index]
        if len(chosen) >= count:
            break
    for place, row in enumerate(rows):
        if len(chosen) >= count:
            break
        chosen[place] = row
    return [chosen[place] for place in sorted(chosen)]


def _places_above(rows: tuple[EstateRow, ...], place: int) -> list[int]:
    depth, places = rows[place].depth, []
    for index in range(place - 1, -1, -1):
        if rows[index].depth < depth:
            depth = rows[index].depth
            places.append(index)
        if not depth:
            break
    return places


def above(rows: tuple[EstateRow, ...], place: int) -> list[Entity]:
    """What the entity of a row is below of, nearest first."""
    return [rows[index].entity for index in _places_above(rows, place)]


def below(rows: tuple[EstateRow, ...], place: int) -> list[EstateRow]:
    """The rows below that of an entity."""
    depth = rows[place].depth
    below = []
    for row in rows[place + 1 :]:
        if row.depth <= depth:
            break
        below.append(row)
    return below


def counts_of(rows: tuple[EstateRow, ...]) -> str:
    """How many entities of each kind there are."""
    kinds = [one.entity.kind for one in rows]
    parts = [several(kinds.count(kind), _NOUNS.get(kind, kind.value)) for kind in ESTATE_KINDS if kind in kinds]
    return ", ".join(parts)
