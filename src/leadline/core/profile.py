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

from leadline.core.errors import UsageError


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
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(str(path), f"unreadable ({error})", "a TOML file") from error
    unknown = set(document) - {"rules", "clock_offsets"}
    if unknown:
        raise _wrong(str(path), f"table {sorted(unknown)[0]}", "[rules.NAME] or [clock_offsets]")
    limits: dict[str, dict[str, float]] = {}
    disabled = set()
    for rule, settings in document.get("rules", {}).items():
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
        name: _number(f"{path}: clock_offsets", name, v) for name, v in document.get("clock_offsets", {}).items()
    }
    return Profile(limits, frozenset(disabled), offsets, str(path))


def _number(where: str, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(where, f"{name} = {value!r}", "a number")
    return float(value)


def _wrong(where: str, found: str, expected: str) -> UsageError:
    return UsageError(where, found=found, expected=expected, advice="See the guide on profiles.")
