"""Dates with times as tools print them in the locale of the recorder, turned into UTC nanoseconds.

A locale writes ``11/20/2026 10:57:04 PM``, ``20.11.2026 22:57:04``, ``20/11/26 22:57:04``, ``2026年11月20日
22時57分04秒`` or, when asked, ISO 8601 with a zone. Which of two numbers between slashes is the day is decided once for
a whole recording, from all dates in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.io.clock import assumed_date, rolled_over, to_ns
from leadline.core.model.errors import InputError
from leadline.formats.sysstat.text import dates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.importer import Request
    from leadline.core.io.source import Source
    from leadline.core.model.capture import CaptureBuilder

_STAMP = re.compile(
    r"^(?P<day>.*?)[\sT]*(?P<before>[AP]M|上午|下午|午前|午後|오전|오후)?\s*"
    r"(?P<h>\d{1,2})[:.時时시h]\s?(?P<m>\d{2})[:.分분m]\s?(?P<s>\d{2})(?:[.,](?P<fraction>\d{1,9}))?[秒초s]?"
    r"(?:\s*(?P<after>[AaPp]\.?\s?[Mm]\.?))?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?(?:\s+[A-Z]{3,5})?$"
)
_AFTERNOON = ("p", "下", "午後", "오후")
LENGTH_MAX = 120  # no locale writes a longer date and time
YEARS = range(1970, 2200)
_PARTS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A printed time: the text of its date ("" when it has none), time of day, minutes east of UTC if said."""

    day: str
    clock: time
    twelve_hour: bool = False
    zone: timezone | None = None


def parse_stamp(text: str) -> Stamp | None:
    """The parts of a printed time, or None when it is none.

    >>> parse_stamp("11/20/2026 10:57:04 PM").clock
    datetime.time(22, 57, 4)
    >>> parse_stamp("2026-11-20T22:57:04+0100").zone.utcoffset(None).total_seconds()
    3600.0
    """
    match = _STAMP.match(text.strip()) if len(text) <= LENGTH_MAX else None
    if match is None:
        return None
    hour, half = int(match["h"]), (match["before"] or match["after"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half.startswith(_AFTERNOON) else 0)
    micro = int((match["fraction"] or "0").ljust(6, "0")[:6])
    try:
        clock = time(hour, int(match["m"]), int(match["s"]), micro)
    except ValueError:
        return None
    return Stamp(match["day"], clock, bool(half), _zone(match["zone"]))


def _zone(text: str | None) -> timezone | None:
    if not text:
        return None
    if text[0] not in "+-":
        return timezone.utc
    shift = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    if shift >= timedelta(hours=24):
        return None
    return timezone(shift if text[0] == "+" else -shift)


@dataclass(frozen=True, slots=True)
class DayOrder:
    """How to read dates between slashes: month first or day first, and whether that is certain."""

    month_first: bool
    certain: bool

    def day(self, text: str) -> date | None:
        """The day a date means; None when it is none, or of a year in which nothing was recorded."""
        readings = dates(text)
        if not readings:
            return None
        day = readings[0] if self.month_first else readings[-1]
        return day if day.year in YEARS else None


def day_order(texts: Sequence[str], *, twelve_hour: bool | None, asked: date | None) -> DayOrder:
    """The order of day and month in the dates of one recording.

    Args:
        texts: distinct dates in the order they were printed.
        twelve_hour: whether its times have AM and PM; None when it has no times.
        asked: the date the user names, which decides between two readings.

    A number above 12 decides, then the reading that goes forward in fewer days, then what is usual: the United States
    write the month first and a 12-hour clock, the C locale the month first and a year of two digits, others the day.

    >>> day_order(["03/31/26", "04/01/26"], twelve_hour=False, asked=None)
    DayOrder(month_first=True, certain=True)
    """
    pairs = [(_PARTS.findall(text), dates(text)) for text in texts if "/" in text]
    numbers = [[int(part) for part in parts] for parts, readings in pairs if readings and len(parts[0]) < 4]
    if any(second > 12 for _, second, _ in numbers):
        return DayOrder(month_first=True, certain=True)
    days = [readings for _, readings in pairs if readings]
    open_days = [readings for readings in days if len(readings) == 2]
    if any(first > 12 for first, _, _ in numbers) or not open_days:
        return DayOrder(month_first=False, certain=True)
    spans = [_span([readings[i] for readings in days]) for i in (0, -1)]
    if spans[0] != spans[1]:
        return DayOrder(month_first=spans[0] < spans[1], certain=True)
    if asked is not None and asked in open_days[0]:
        return DayOrder(month_first=asked == open_days[0][0], certain=True)
    four_digits = any(len(parts[-1]) == 4 for parts, _ in pairs)
    return DayOrder(month_first=not (four_digits and twelve_hour is False), certain=bool(twelve_hour))


def _span(days: Sequence[date]) -> float:
    """Days from first to last; infinite when they do not go forward."""
    steps = [(later - earlier).days for earlier, later in pairwise(days)]
    return float("inf") if any(step < 0 for step in steps) else float(sum(steps))


@dataclass(slots=True)
class StampReader:
    """Turns the stamps of one recording into times, with warnings about what had to be assumed."""

    source: Source
    request: Request
    builder: CaptureBuilder
    order: DayOrder
    known: bool = True

    @classmethod
    def of(
        cls, stamps: Sequence[str], day_texts: Sequence[str], source: Source, request: Request, builder: CaptureBuilder
    ) -> StampReader:
        """The reader for a recording with these stamps, and these dates elsewhere (in its banners)."""
        parsed = [stamp for stamp in (parse_stamp(text) for text in stamps) if stamp is not None]
        texts = list(dict.fromkeys([*(stamp.day for stamp in parsed), *day_texts]))
        halves = any(stamp.twelve_hour for stamp in parsed) if parsed else None
        asked = assumed_date(source, request) if request.date is not None else None
        return cls(source, request, builder, day_order(texts, twelve_hour=halves, asked=asked))

    def times_ns(self, stamps: Sequence[str], day_text: str | None) -> NDArray[np.int64]:
        """UTC nanoseconds int64 [n] of stamps in the order they were printed; ``day_text`` dates those without a date.

        Raises:
            InputError: a stamp is no time.
            UsageError: the request names a date or time zone that does not exist.
        """
        parsed: list[Stamp] = []
        for text in stamps:
            stamp = parse_stamp(text)
            if stamp is None:
                raise InputError(
                    self.source.name,
                    found=f"the time {text[:40]!r}",
                    expected="a date and a time, or a time",
                    advice="Record with S_TIME_FORMAT=ISO in the environment.",
                )
            parsed.append(stamp)
        return self._resolved(parsed, day_text)

    def _resolved(self, stamps: list[Stamp], day_text: str | None) -> NDArray[np.int64]:
        cache: dict[str, date | None] = {}
        fallback: date | None = None
        days: list[date] = []
        for stamp in stamps:
            day = cache[stamp.day] if stamp.day in cache else cache.setdefault(stamp.day, self.order.day(stamp.day))
            if day is None:
                fallback = fallback or self._without_date(day_text)
                day = fallback
            days.append(day)
        self._say(stamps, cache)
        moments = [
            to_ns(datetime.combine(day, stamp.clock, stamp.zone), self.request)
            for day, stamp in zip(days, stamps, strict=True)
        ]
        return np.array(moments, dtype=np.int64) if fallback is None else rolled_over(moments)

    def _without_date(self, day_text: str | None) -> date:
        day = None if day_text is None else self.order.day(day_text)
        if day is None:
            day = assumed_date(self.source, self.request)
            self.known = False
            self.builder.warn("no-date", f"times have no date; {day} was assumed; --date sets it")
        return day

    def _say(self, stamps: list[Stamp], days: dict[str, date | None]) -> None:
        if not self.order.certain and any(len(dates(text)) > 1 for text in days):
            order = "month, day, year" if self.order.month_first else "day, month, year"
            self.known = False
            self.builder.warn("date-order", f"dates were read as {order}; --date with the first day decides")
        if self.request.timezone is None and any(stamp.zone is None for stamp in stamps):
            self.known = False
            self.builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
