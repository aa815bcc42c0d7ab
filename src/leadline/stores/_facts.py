"""Facts of entities as stores keep them: rows of text, and only those that are not known yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.core.model.entities import Entity, Fact, Inventory

EVENTS, EVENTS_MAX = "events", 1000  # the setting that grows instead of being replaced, and how far, per entity
GONE = "(gone)"  # the setting of an entity that is there no more, true until it comes back
# Entity, setting, value, source, guessed, when in UTC nanoseconds; a link has the setting "".
StoredFact = tuple[str, str, Any, str, bool, int]
_TRUE, _NULL = json.dumps(True), json.dumps(None)


def facts_of(rows: Sequence[tuple[str, str, str, str, int, int]]) -> list[StoredFact]:
    """Facts of the rows of a table, whose values are JSON: read in one go, an estate has half a million."""
    values = json.loads(f"[{','.join([row[2] for row in rows])}]")
    return [
        (entity, name, value, source, bool(guessed), changed_ns)
        for (entity, name, _, source, guessed, changed_ns), value in zip(rows, values, strict=True)
    ]


@dataclass(slots=True)
class KnownFacts:
    """The last value of each setting that a store has, as JSON."""

    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    _last: tuple[Inventory, int] | None = None

    @classmethod
    def of(cls, facts: Iterable[StoredFact]) -> KnownFacts:
        """What is known after facts, oldest first."""
        known = cls({(fact[0], fact[1]): json.dumps(fact[2]) for fact in facts})
        known._forget({entity for (entity, name), text in known.texts.items() if name == GONE and text == _TRUE})
        return known

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
        present = {name for name, *_ in rows}
        rows += [(name, GONE, False, "", False) for name in present if self.texts.get((name, GONE)) == _TRUE]
        if inventory.gone:
            rows += self._no_more({str(entity) for entity in inventory.gone}, present, {row[:2] for row in rows})
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

    def _no_more(
        self, gone: set[str], present: set[str], known: set[tuple[str, str]]
    ) -> Iterator[tuple[str, str, Any, str, bool]]:
        """What holds no more: of entities that are gone all, of those read anew the settings that they have no more."""
        yield from ((name, GONE, True, "", False) for name in sorted(gone - present))
        for (name, key), text in self.texts.items():
            is_setting = key not in {"", GONE, EVENTS}
            if is_setting and name in gone and name in present and (name, key) not in known and text != _NULL:
                yield name, key, None, "", False

    def keep(self, inventory: Inventory, texts: dict[tuple[str, str], str]) -> None:
        """Take note of facts that are kept now."""
        self.texts.update(texts)
        self._forget({entity for (entity, name), text in texts.items() if name == GONE and text == _TRUE})
        self._last = (inventory, inventory.version)

    def _forget(self, gone: set[str]) -> None:
        """What is gone has its settings written anew when it comes back."""
        if gone:
            self.texts = {key: text for key, text in self.texts.items() if key[0] not in gone or key[1] == GONE}


def inventory_of(facts: Sequence[StoredFact], start_ns: int) -> Inventory:
    """What is known of the entities that were there at a time or later; of several values of a setting the last one."""
    last_gone = {text: changed_ns if value else None for text, name, value, _, _, changed_ns in facts if name == GONE}
    gone = {text for text, gone_ns in last_gone.items() if gone_ns is not None and gone_ns <= start_ns}
    inventory, entities = Inventory(), dict[str, Entity]()
    for text, name, value, source, guessed, _ in facts:
        if text in gone or name == GONE or (name == "" and value in gone):
            continue
        entity = entities.get(text)
        if entity is None:
            entity = entities[text] = Entity.parse(text)
        if name == "":
            if value is not None:
                inventory.links[entity] = Entity.parse(value)
            else:
                inventory.facts.setdefault(entity, {})
        elif value is None:  # it has the setting no more
            inventory.facts.setdefault(entity, {}).pop(name, None)
        else:
            inventory.facts.setdefault(entity, {})[name] = Fact(value, source, guessed)
    return inventory


def _with_events(known: str, newer: str) -> str:
    """Events as JSON, those that are known and others; the latest `EVENTS_MAX`."""
    events = json.loads(known)
    return json.dumps([*events, *(event for event in json.loads(newer) if event not in events)][-EVENTS_MAX:])
