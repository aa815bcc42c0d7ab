"""Facts of entities as stores keep them: rows of text, and only those that are not known yet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from leadline.core.model.entities import Entity, Fact, Inventory

EVENTS, EVENTS_MAX = "events", 1000  # the setting that grows instead of being replaced, and how far, per entity
# Entity, setting, value, source, guessed, when in UTC nanoseconds; a link has the setting "".
StoredFact = tuple[str, str, Any, str, bool, int]


@dataclass(slots=True)
class KnownFacts:
    """The last value of each setting that a store has, as JSON."""

    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    _last: tuple[Inventory, int] | None = None

    @classmethod
    def of(cls, facts: Iterable[StoredFact]) -> KnownFacts:
        """What is known after facts, oldest first."""
        return cls({(fact[0], fact[1]): json.dumps(fact[2]) for fact in facts})

    def changed(self, inventory: Inventory, changed_ns: int) -> tuple[list[StoredFact], dict[tuple[str, str], str]]:
        """The facts that are not known yet, or with another value; and what `keep` takes once they are kept."""
        last = self._last
        if last is not None and last[0] is inventory and last[1] == inventory.version:
            return [], {}
        rows: list[tuple[str, str, Any, str, bool]] = []
        for entity, settings in inventory.facts.items():
            name = str(entity)
            rows += [(name, key, fact.value, fact.source, fact.guessed) for key, fact in settings.items()]
            if not settings:
                rows.append((name, "", None, "", False))
        rows += [(str(guest), "", str(vm), "", False) for guest, vm in inventory.links.items()]
        changed, texts = [], {}
        for name, key, value, source, guessed in rows:
            known = self.texts.get((name, key))
            text = json.dumps(value, default=str)
            if key == EVENTS and known is not None and known != text:
                text = _with_events(known, text)
            if known != text:
                texts[name, key] = text
                changed.append((name, key, json.loads(text), source, guessed, changed_ns))
        return changed, texts

    def keep(self, inventory: Inventory, texts: dict[tuple[str, str], str]) -> None:
        """Take note of facts that are kept now."""
        self.texts.update(texts)
        self._last = (inventory, inventory.version)


def inventory_of(facts: Iterable[StoredFact]) -> Inventory:
    """What is known of entities; of several values of a setting the last one."""
    inventory, entities = Inventory(), dict[str, Entity]()
    for text, name, value, source, guessed, _ in facts:
        entity = entities.get(text)
        if entity is None:
            entity = entities[text] = Entity.parse(text)
        if name == "":
            if value is not None:
                inventory.links[entity] = Entity.parse(value)
            else:
                inventory.facts.setdefault(entity, {})
        else:
            inventory.facts.setdefault(entity, {})[name] = Fact(value, source, guessed)
    return inventory


def _with_events(known: str, newer: str) -> str:
    """Events as JSON, those that are known and others; the latest `EVENTS_MAX`."""
    events = json.loads(known)
    return json.dumps([*events, *(event for event in json.loads(newer) if event not in events)][-EVENTS_MAX:])
