"""Settings that were changed while a PostgreSQL server ran, as its log tells them after each reload.

.. code-block:: text

    ... [4500] LOG:  received SIGHUP, reloading configuration files
    ... [4500] LOG:  parameter "commit_delay" changed to "50000"
    ... [4500] LOG:  parameter "commit_delay" removed from configuration file, reset to default

Values are kept of the settings whose values are harmless (``POSTGRESQL_HARMLESS``); of others the name alone.

Source: PostgreSQL ``src/backend/utils/misc``, guc-file.l and guc.c, ProcessConfigFileInternal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from leadline.estate.knowledge.database_settings import POSTGRESQL_HARMLESS

KEPT_MAX = 200  # Judgement: a log with more of them is of a server that is being set up


@dataclass(frozen=True, slots=True)
class LoggedSetting:
    """A setting that got another value.

    Attributes:
        at_s: UTC seconds.
        value: as it was written; None where it was reset, or is not kept.
    """

    at_s: float
    name: str
    value: str | None
    is_reset: bool


def changes_of(settings: Iterable[LoggedSetting]) -> dict[str, list[LoggedSetting]]:
    """The changes by setting and the value it got, in order of appearance, the last `KEPT_MAX` of them."""
    named: dict[str, list[LoggedSetting]] = {}
    for one in settings:
        named.setdefault(f"{one.name} {_end(one)}", []).append(one)
    return dict(list(named.items())[-KEPT_MAX:])


def setting_facts(change: LoggedSetting) -> dict[str, Any]:
    """What is known of a change beside its time; the value only where it may be kept."""
    return {"setting": change.name, "value": _kept(change), "is_reset": change.is_reset}


def _kept(change: LoggedSetting) -> str | None:
    return change.value if change.name.casefold() in POSTGRESQL_HARMLESS else None


def _end(change: LoggedSetting) -> str:
    if change.is_reset:
        return "reset to its default"
    value = _kept(change)
    return "changed" if value is None else f"= {value}"
