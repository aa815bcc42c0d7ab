"""The profile, ``leadline.toml``: a site's own limits, clock offsets and disk roles.

.. code-block:: toml

    [rules.cpu-ready-high]
    warn = 2.5          # same unit as the rule's own limit
    enabled = true

    [clock_offsets]     # seconds to add to every time of a source, by file name
    "esxtop.csv" = 3.5
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline.core.io.pipes import as_file
from leadline.core.model.errors import UsageError
from leadline.core.model.numbers import NUMBER_MAX, OFFSET_S_MAX

BYTES_MAX = 1024**2
SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Profile:
    """Overrides by rule, rules switched off, clock offsets in seconds by file name."""

    limits: dict[str, dict[str, float]] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    clock_offsets: dict[str, float] = field(default_factory=dict)
    path: str | None = None


def load_profile(path: Path, known: dict[str, frozenset[str]]) -> Profile:
    """The profile a file holds.

    Args:
        path: the TOML file.
        known: the names of every rule's limits, to find typing mistakes.

    Raises:
        UsageError: it is not TOML, or names a rule, limit or table that does not exist, or a limit is not a number.
    """
    try:
        with as_file(path).open("rb") as stream:
            document = tomllib.loads(stream.read(BYTES_MAX).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # a date or number that is none, tables nested without end
        raise _wrong(str(path), f"unreadable ({error})", "a TOML file") from error
    unknown = set(document) - {"rules", "clock_offsets"}
    if unknown:
        raise _wrong(str(path), f"table {sorted(unknown)[0]}", "[rules.NAME] or [clock_offsets]")
    limits: dict[str, dict[str, float]] = {}
    disabled = set()
    for rule, settings in _table(document, "rules", path).items():
        where = f"{path}: rules.{rule}"
        if rule not in known or not isinstance(settings, dict):
            raise _wrong(where, "no such rule", "the name of a rule (`leadline rules`)")
        for name, value in settings.items():
            if name == "enabled" and isinstance(value, bool):
                disabled |= set() if value else {rule}
            elif name not in known[rule]:
                raise _wrong(where, f"limit {name}", f"one of {', '.join(sorted(known[rule]))} or enabled")
            else:
                limits.setdefault(rule, {})[name] = _number(where, name, value)
    offsets = {
        name: _number(f"{path}: clock_offsets", name, v) for name, v in _table(document, "clock_offsets", path).items()
    }
    for name, seconds in offsets.items():
        if abs(seconds) > OFFSET_S_MAX:
            raise _wrong(f"{path}: clock_offsets", f"{name} = {seconds:g}", "at most a hundred years")
    return Profile(limits, frozenset(disabled), offsets, str(path))


def _table(document: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise _wrong(str(path), f"{name} = {table!r}"[:SHOWN_CHARACTERS], f"a table [{name}]")
    return table


def _number(where: str, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= NUMBER_MAX:
        raise _wrong(where, f"{name} = {value!r}"[:SHOWN_CHARACTERS], "a number")
    return float(value)


def _wrong(where: str, problem: str, expected: str) -> UsageError:
    return UsageError(where, found=problem, expected=expected, advice="See the guide on profiles.")
