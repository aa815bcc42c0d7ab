"""The names of Windows' performance objects and counters in other languages, and what they are in English.

The list itself, with the source of every name, is ``localised_names.csv`` beside this file.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

# Rows of the list that hold for several objects, whose counters share their names.
_FAMILIES = {"disk": ("PhysicalDisk", "LogicalDisk"), "cpu": ("Processor", "Processor Information")}
_NAMED_INSTANCE = re.compile(r"^MSSQL\$[^:]+:")  # its counters are kept under the default instance's name
_SAME_SIGNS = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u00a0": " ", "\u202f": " ", "\u2013": "-"})


@dataclass(frozen=True, slots=True)
class ListedNames:
    """What the list says: languages by object and by counter, the English name by both."""

    objects: dict[str, dict[str, set[str]]]  # name -> English object -> languages
    counters: dict[tuple[str, str], dict[str, set[str]]]  # English object, name -> English counter -> languages
    english: frozenset[tuple[str, str]]  # English objects and counters the list has names of

    def of_object(self, name: str) -> tuple[str, set[str]]:
        """The English name of an object and the languages it may be of; the name itself and none where not listed."""
        return _first(self.objects.get(key(name)), name)

    def of_counter(self, object_name: str, name: str) -> tuple[str, set[str]]:
        """The English name of a counter of an object with an English name, and the languages it may be of."""
        return _first(self.counters.get((object_name, key(name))), name)


def _first(listed: dict[str, set[str]] | None, otherwise: str) -> tuple[str, set[str]]:
    return next(iter(listed.items())) if listed else (otherwise, set())


def key(name: str) -> str:
    """A name without what versions of Windows and programs in between change: case, kinds of apostrophe and blank.

    >>> key("Pourcentage d\N{RIGHT SINGLE QUOTATION MARK}utilisation") == key("pourcentage d'utilisation")
    True
    """
    return " ".join(unicodedata.normalize("NFC", name).translate(_SAME_SIGNS).casefold().split())


@cache
def names() -> ListedNames:
    """Every name of the list."""
    text = resources.files(__package__).joinpath("localised_names.csv").read_text(encoding="utf-8")
    objects: dict[str, dict[str, set[str]]] = {}
    counters: dict[tuple[str, str], dict[str, set[str]]] = {}
    english: set[tuple[str, str]] = set()
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        for object_name in _FAMILIES.get(row["object"], (row["object"],)):
            if row["counter"]:
                english.add((object_name, row["counter"]))
                listed = counters.setdefault((object_name, key(row["name"])), {})
                listed.setdefault(row["counter"], set()).add(row["language"])
            else:
                objects.setdefault(key(row["name"]), {}).setdefault(object_name, set()).add(row["language"])
    return ListedNames(objects, counters, frozenset(english))


@dataclass(slots=True)
class EnglishNames:
    """Objects and counters of a log in English.

    Attributes:
        counters: (object, counter) in the log's order, in English where the list has them.
        strange_objects: objects no list has, as they are written.
        strange_counters: counters no list has, of objects that were translated.
        votes: how many names are of each language.
    """

    counters: list[tuple[str, str]] = field(default_factory=list)
    strange_objects: list[str] = field(default_factory=list)
    strange_counters: list[tuple[str, str]] = field(default_factory=list)
    votes: Counter[str] = field(default_factory=Counter)

    @property
    def languages(self) -> list[str]:
        """The languages most names are of; several where the names do not tell them apart, none in an English log."""
        most = max(self.votes.values(), default=0)
        return sorted(language for language, votes in self.votes.items() if votes == most)

    @property
    def known_count(self) -> int:
        """How many objects and counters have an English name by the list."""
        return sum(self.votes.values())


def translate(counters: list[tuple[str, str]], known: frozenset[tuple[str, str]]) -> EnglishNames:
    """Objects and counters in English.

    Args:
        counters: (object, counter) as the log names them.
        known: English objects and counters that need no translation.
    """
    listed, done = names(), EnglishNames()
    english = {key(name): name for name, _ in known | listed.english}
    english_counters = {(name, key(counter)): counter for name, counter in known | listed.english}
    for written, counter in counters:
        default = _NAMED_INSTANCE.sub("SQLServer:", written)
        object_name, languages = listed.of_object(default)
        object_name = object_name if languages else english.get(key(default), default)
        known_counter = english_counters.get((object_name, key(counter)))
        name, of_counter = listed.of_counter(object_name, counter) if known_counter is None else (known_counter, set())
        done.votes.update(languages)
        done.votes.update(of_counter)
        done.counters.append((object_name, name))
        if not languages and key(default) not in english and written not in done.strange_objects:
            done.strange_objects.append(written)
        elif languages and known_counter is None and not of_counter:
            done.strange_counters.append((object_name, counter))
    return done
