"""Lines of time that a shell loop or a collector writes between samples: pt-stalk, OSWatcher, ``date``.

``TS 1795510800.123456789 2026-11-24 09:00:00``, ``zzz ***Tue Nov 24 09:00:00 CET 2026``, ``# 2026-11-24T09:00:00Z``
or the seconds since 1970 alone.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from leadline.core.io.clock import to_ns
from leadline.formats.loadtool import zone_named
from leadline.formats.stamps import YEARS

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request

_EPOCH = re.compile(r"(?:TS )?(\d{10})(?:\.(\d{1,9}))?(?: \d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?)?", re.ASCII)
_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_CLOCK = r"(?P<clock>\d{1,2}:\d\d:\d\d)(?: (?P<half>[AP]M))?"
_ZONE = r"(?: (?P<zone>[A-Z]{1,5}|[+-]\d\d(?::?\d\d)?))?"
_DATES = (
    re.compile(rf"[A-Z][a-z]{{2}} (?P<month>{_MONTH}) {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}{_ZONE} (?P<year>\d{{4}})"),
    re.compile(rf"[A-Z][a-z]{{2}},? (?P<day>\d{{1,2}}) (?P<month>{_MONTH}) (?P<year>\d{{4}}),? {_CLOCK}{_ZONE}"),
)
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?: ?(Z|[A-Z]{2,5}|[+-]\d\d(?::?\d\d)?))?", re.ASCII
)
_LEAD = re.compile(r"(?:zzz \*\*\*|# ?|=+ ?)?")
_LINE_MAX = 120


def stamp_of(line: str, request: Request) -> tuple[int, bool] | None:
    """UTC nanoseconds of a line that holds a time and nothing else, and whether its zone is known; None for others."""
    if len(line) > _LINE_MAX:
        return None
    text = line.strip().rstrip("= ")
    lead = _LEAD.match(text)
    text = text[lead.end() :] if lead is not None else text
    try:
        epoch = _EPOCH.fullmatch(text)
        if epoch is not None:
            return int(epoch[1]) * 1_000_000_000 + int((epoch[2] or "0").ljust(9, "0")), True
        moment = _moment(text)
    except ValueError:
        return None
    if moment is None or moment.year not in YEARS:
        return None
    return to_ns(moment, request), moment.tzinfo is not None


def _moment(text: str) -> datetime | None:
    if (iso := _ISO.fullmatch(text)) is not None:
        micro = (iso[3] or "0").ljust(6, "0")[:6]
        return _zoned(datetime.fromisoformat(f"{iso[1]}T{iso[2]}.{micro}"), iso[4])
    match = next(filter(None, (form.fullmatch(text) for form in _DATES)), None)
    if match is None:
        return None
    form = "%Y %b %d %I:%M:%S %p" if match["half"] else "%Y %b %d %H:%M:%S"
    half = f" {match['half']}" if match["half"] else ""
    printed = f"{match['year']} {match['month']} {match['day']} {match['clock']}{half}"
    return _zoned(datetime.strptime(printed, form), match["zone"])  # noqa: DTZ007 - its zone follows


def _zoned(moment: datetime, zone: str | None) -> datetime:
    """A moment in its zone; without one where none is named, or one that means several."""
    if not zone:
        return moment
    if zone == "Z" or zone[0] in "+-":
        offset = "+00:00" if zone == "Z" else f"{zone[:3]}:{zone[-2:] if len(zone) > 3 else '00'}"
        return datetime.fromisoformat(f"{moment.isoformat()}{offset}")
    known = zone_named(zone)
    return moment if known is None else moment.replace(tzinfo=known)
