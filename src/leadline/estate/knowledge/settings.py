"""The catalogue of settings: what may be known about an entity of each kind, with type and meaning.

The list itself is ``settings.csv`` beside this file, as `metrics.csv` is for metrics. The inventory file, guest facts,
importers and rules (``META.needs`` of the form ``kind.setting``) use these names and no others. Types: ``count`` (a
whole number, not negative), ``number``, ``text``, ``flag``, ``role``, ``list`` (of texts or numbers), ``map`` (text to
text or number), ``parts`` (a list of name, type, connected), ``events`` (a list of time, kind, text).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from leadline.core.model.vocabulary import EntityKind

TYPES = ("count", "number", "text", "flag", "role", "list", "map", "parts", "events")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a kind of entity; a unit, where there is one, is in the name."""

    kind: EntityKind
    name: str
    type: str
    meaning: str
    is_by_hand: bool  # no importer or collector reads it: it stands in an inventory that people write


@cache
def settings() -> dict[EntityKind, dict[str, Setting]]:
    """Every setting by kind and name."""
    text = resources.files(__package__).joinpath("settings.csv").read_text(encoding="utf-8")
    known: dict[EntityKind, dict[str, Setting]] = {}
    for row in csv.DictReader(text.splitlines()):
        setting = Setting(EntityKind(row["kind"]), row["setting"], row["type"], row["meaning"], row["fed"] == "by hand")
        known.setdefault(setting.kind, {})[setting.name] = setting
    return known


def is_by_hand(need: str) -> bool:
    """Whether ``kind.setting`` is known only where people wrote it down."""
    kind, _, name = need.partition(".")
    return is_setting(need) and settings()[EntityKind(kind)][name].is_by_hand


def is_setting(need: str) -> bool:
    """Whether ``kind.setting`` names a setting."""
    kind, _, name = need.partition(".")
    return kind in {k.value for k in EntityKind} and name in settings().get(EntityKind(kind), {})
