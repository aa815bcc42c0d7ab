"""Things that happened once, as the inventory lists them: settings of type ``events``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from leadline.core.io.clock import EPOCH
from leadline.core.model.entities import Entity, Inventory

_NS_PER_US = 1000


@dataclass(frozen=True, slots=True)
class Happened:
    """An event: UTC nanoseconds, its kind, what was said of it (empty when nothing was) and where it was read."""

    time_ns: int
    kind: str
    text: str
    source: str


def events_of(inventory: Inventory, entity: Entity, kinds: Collection[str]) -> list[Happened]:
    """Events of an entity that are of some kinds, in order of time; a time without a zone is taken as UTC."""
    fact = inventory.fact(entity, "events")
    if fact is None:
        return []
    events = [
        Happened(_ns(str(event["time"])), str(event["kind"]), str(event.get("text") or ""), fact.source)
        for event in fact.value
        if event["kind"] in kinds
    ]
    return sorted(events, key=lambda event: event.time_ns)


def _ns(text: str) -> int:
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return ((aware - EPOCH) // timedelta(microseconds=1)) * _NS_PER_US
