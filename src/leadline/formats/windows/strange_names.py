"""What is said of a log whose names are in a language, or a wording, that the list of names does not have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.core.model.capture import CaptureBuilder
    from leadline.formats.windows.localised import EnglishNames
    from leadline.formats.windows.pdh import PdhColumns

SHOWN_MAX = 3
_DISKS = frozenset({"PhysicalDisk", "LogicalDisk"})
_DISK_INSTANCE = re.compile(r"^(\d+( [A-Za-z]:)+|[A-Za-z]:)$")
# Words in names of time zones, which Windows writes in its own language or in English, and the languages there.
_ZONES = (
    ("Tokyo", "Japanese"),
    ("Korea", "Korean"),
    ("China", "Chinese"),
    ("Taipei", "Chinese"),
    ("Turkey", "Turkish"),
    ("Israel", "Hebrew"),
    ("GTB", "Greek or Romanian"),
    ("FLE", "Finnish, Ukrainian or a Baltic language"),
    ("Central European", "Polish, Croatian or Serbian"),
    ("Central Europe", "Czech, Hungarian, Slovak or Slovenian"),
    ("Romance", "French, Spanish, Danish or Dutch"),
    ("W. Europe", "German, Italian, Dutch, Swedish or Norwegian"),
    ("Mitteleurop", "German"),
    ("Paris", "French"),
    ("South America", "Portuguese or Spanish"),
    ("Russia", "Russian"),
)


def warn_of_strange_names(
    table: PdhColumns, translation: EnglishNames, used: frozenset[tuple[str, str]], builder: CaptureBuilder
) -> None:
    """Warn once of disks that no name shows to be disks, and once of counters of a known language that are not known.

    Args:
        table: the log, its names as written.
        translation: what they are in English.
        used: English objects and counters that mean something to Leadline; where a log has all of an object's, its
            other counters are none of them, whatever they are called.
        builder: takes the warnings.
    """
    if not any(name in _DISKS for name, _ in translation.counters):
        for name in translation.strange_objects:
            instance = _disk_instance(table, name)
            if instance is not None:
                builder.warn(
                    "object-name-unknown",
                    f"{name!r} has instances named as disks are ({instance}), but this name of the object is not known "
                    f"in any language; its counters were kept raw{_hint(table.file.zone_name)}. "
                    "Record on a Windows with English as its display language to have them read",
                )
                break
    missed = {object_name for object_name, _ in used - set(translation.counters)}
    strange = [pair for pair in translation.strange_counters if pair[0] in missed]
    if strange:
        more = f" and {len(strange) - SHOWN_MAX} more" if len(strange) > SHOWN_MAX else ""
        shown = ", ".join(f"{object_name}\\{name}" for object_name, name in strange[:SHOWN_MAX])
        builder.warn(
            "counter-name-unknown",
            f"counters whose {' or '.join(translation.languages)} name is not known were kept raw: {shown}{more}",
            len(strange),
        )


def _disk_instance(table: PdhColumns, name: str) -> str | None:
    for index in table.of_object(name):
        for instance in table.instances(table.columns(index)):
            if instance is not None and _DISK_INSTANCE.match(instance):
                return instance
    return None


def _hint(zone: str | None) -> str:
    for word, spoken in _ZONES:
        if zone is not None and word.casefold() in zone.casefold():
            return f" (the time zone {zone!r} is one where Windows may be {spoken})"
    return ""
