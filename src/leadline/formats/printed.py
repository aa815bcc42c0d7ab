"""Numbers and times as tools print them for people: with a unit behind, rounded, without a year."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import TYPE_CHECKING

from leadline.core.io.clock import assumed_date, to_ns
from leadline.core.model.numbers import NUMBER_MAX

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request
    from leadline.core.io.source import Source

_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "hour": 3600.0, "hours": 3600.0,
    "day": 86400.0, "days": 86400.0,
}  # fmt: skip
_THOUSANDS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}
_NO_YEAR = 1904  # stands for a year that is not printed; a leap year, so that the 29th of February can be read
_SIZE = re.compile(r"([\d.]+) ?([kKMGTP]?)i?(?:B|bytes)?")


def number_of(text: str) -> float:
    """A number; NaN for what only looks like one (``1.2.3`` in a damaged line) or that no tool prints."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if abs(value) < NUMBER_MAX else math.nan


def scaled(text: str, suffix: str = "") -> float:
    """A number with a letter for its thousands, behind a space or given apart; NaN when it is none.

    >>> scaled("38.5 k"), scaled("2788.6", "k")
    (38500.0, 2788600.0)
    """
    number, _, letter = text.partition(" ")
    return number_of(number) * _THOUSANDS.get(letter or suffix, math.nan)


def seconds_of(text: str) -> float:
    """A duration with its unit as seconds; NaN when it is none.

    >>> seconds_of("1.5 ms")
    0.0015
    """
    number, _, unit = text.partition(" ")
    return number_of(number) * _SECONDS.get(unit, math.nan)


def bytes_of(text: str) -> float:
    """A size as bytes, all letters in powers of 1024; NaN when it is none.

    >>> bytes_of("22.5 KiB"), bytes_of("4096 bytes"), bytes_of("4K")
    (23040.0, 4096.0, 4096.0)
    """
    match = _SIZE.fullmatch(text.strip())
    return number_of(match[1]) * _BINARY[match[2].upper()] if match else math.nan


def moment_printed(text: str) -> datetime | int | None:
    """A time as ISO, as seconds since 1970 (then UTC nanoseconds), or as ``Nov 20 22:53:46``; None for another text."""
    text = text.strip()
    try:
        if re.fullmatch(r"\d{9,10}(?:\.\d{1,9})?", text):
            return round(float(text) * 1e6) * 1000
        if re.match(r"\d{4}-\d\d-\d\d", text):
            moment = datetime.fromisoformat(text)
            return moment if 1970 < moment.year < 2200 else None
        if re.fullmatch(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d", text):
            return datetime.strptime(f"{_NO_YEAR} {text}", "%Y %b %d %H:%M:%S")  # noqa: DTZ007 - local, as printed
    except ValueError:
        return None
    return None


def year_printed(moment: datetime | int) -> bool:
    """Whether a time of `moment_printed` has its year."""
    return isinstance(moment, int) or moment.year != _NO_YEAR


def printed_ns(moment: datetime | int, source: Source, request: Request) -> int:
    """UTC nanoseconds of a time of `moment_printed`; a missing year is that of the date to assume, or the one before.

    Raises:
        UsageError: the request names no time zone or no date.
    """
    if isinstance(moment, int):
        return moment
    if year_printed(moment):
        return to_ns(moment, request)
    day = assumed_date(source, request)
    later = (moment.month, moment.day) > (day.month, day.day)  # recorded before New Year, changed after
    year = max(day.year - 1 if later else day.year, 1971)
    try:
        return to_ns(moment.replace(year=year), request)
    except ValueError:  # the 29th of February in a year without one
        return to_ns(moment.replace(year=year, day=28), request)
