"""When the rows of a run of dstat were written: day and month in the row, year and zone in its header."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.io.clock import assumed_date, to_ns
from leadline.formats.loadtool import EPOCH_S_MAX, EPOCH_S_MIN, zone_named
from leadline.formats.stamps import YEARS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from leadline.core.contracts.importer import Request
    from leadline.core.io.source import Source
    from leadline.core.model.capture import CaptureBuilder

_MONTHS = {name: number for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
# 03 Dec 2020 14:10:38 CST
_DATE = re.compile(r"(\d{1,2}) (\S{2,12}) (\d{4}) (\d\d):(\d\d):(\d\d)(?: (\S{1,8}))?")
# 03-12 14:10:39 of dstat, Dec-03 14:10:39 of dool, with milliseconds where --debug or a short interval asks for them
_TIME = re.compile(
    r"(?:(?P<year>\d{4})-(?P<m0>\d\d)-(?P<d0>\d\d)|(?P<d1>\d{1,2})[-/.](?P<m1>\d{1,2})\.?|(?P<name>[A-Za-z]{3})-(?P<d2>\d\d))"
    r"[ T](?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:\.(?P<f>\d{1,6}))?"
)
_HALF_YEAR = timedelta(days=183)
_TAKE_A_VALUE = frozenset("CDILMNSo")
_WITH_VALUE = ("--output", "--profile", "--display", "--debug")


class RunTimes:
    """Turns the times of runs into UTC nanoseconds, with warnings about what had to be assumed.

    Attributes:
        known: whether the file or the request gives date, year and zone of every time.
    """

    def __init__(self, source: Source, request: Request, builder: CaptureBuilder) -> None:
        self.known = True
        self._source, self._request, self._builder = source, request, builder

    def of(
        self, names: Sequence[str], rows: Sequence[Sequence[str]], date: str, command: str
    ) -> tuple[NDArray[np.int64], list[int]]:
        """Times int64 [n] of the rows that have one, and the places of these rows."""
        if "epoch" in names:
            at = names.index("epoch")
            seconds = [_seconds(row[at]) for row in rows]
            stamped = [(place, round(s * 1e6) * 1000) for place, s in enumerate(seconds) if s is not None]
        elif "time" in names:
            at = names.index("time")
            stamped = self._by_header([row[at] for row in rows], date)
        else:
            return self._counted(len(rows), date, command)
        if len(stamped) < len(rows):
            self._builder.warn("no-time", "rows without a readable time were left out", len(rows) - len(stamped))
        return np.array([moment for _, moment in stamped], dtype=np.int64), [place for place, _ in stamped]

    def _by_header(self, texts: list[str], date: str) -> list[tuple[int, int]]:
        """Times of rows that have no year: that of the header, and the next when the months begin anew."""
        begin, zone = self._begin(date)
        year, before = begin.year, begin
        stamped: list[tuple[int, int]] = []
        for place, text in enumerate(texts):
            moment = _moment(text, year)
            if moment is not None and moment < before - _HALF_YEAR:
                year += 1
                moment = _moment(text, year)
            if moment is None or moment.year not in YEARS:
                continue
            before = moment
            stamped.append((place, to_ns(moment.replace(tzinfo=zone), self._request)))
        return stamped

    def _begin(self, date: str) -> tuple[datetime, timezone | None]:
        """When the header says that the run began, on its clock, and the zone of that clock."""
        match = _DATE.search(date[:60])
        month = None if match is None else _MONTHS.get(match[2][:3].casefold())
        zone = None if match is None or match[7] is None else zone_named(match[7])
        if zone is None and self._request.timezone is None:
            self.known = False
            self._builder.warn("no-zone", "times have no zone that is known and were taken as UTC; --timezone sets it")
        if match is not None and int(match[3]) in YEARS:
            try:
                clock = (int(match[4]), int(match[5]), int(match[6]))
                return datetime(int(match[3]), month or 1, int(match[1]) if month else 1, *clock), zone  # noqa: DTZ001
            except ValueError:
                pass
        day = assumed_date(self._source, self._request)
        self.known = False
        self._builder.warn("no-date", f"the header has no date; the year {day.year} was assumed; --date sets it")
        return datetime(day.year, 1, 1), zone  # noqa: DTZ001 - on a clock whose zone is not known

    def _counted(self, count: int, date: str, command: str) -> tuple[NDArray[np.int64], list[int]]:
        """Times of rows without any: from the begin of the run on, at the interval of the command line."""
        begin, zone = self._begin(date)
        interval_s = interval_of(command)
        self.known = False
        self._builder.warn(
            "no-times",
            f"rows have no time (record with --time): taken as {interval_s} s apart from the header's date on",
        )
        first = to_ns(begin.replace(tzinfo=zone), self._request)
        return first + np.arange(count, dtype=np.int64) * interval_s * 1_000_000_000, list(range(count))


def interval_of(command: str) -> int:
    """The seconds between two rows that a command line asks for.

    >>> interval_of("dstat -cdn -C 0 --output a.csv 5 100"), interval_of("dool --more 10"), interval_of("dstat -D sda")
    (5, 10, 1)
    """
    words = command.split()[1:]
    plain = []
    for before, word in zip(["", *words], words, strict=False):
        is_value = before in _WITH_VALUE or (
            before.startswith("-") and not before.startswith("--") and before[-1:] in _TAKE_A_VALUE
        )
        if not word.startswith("-") and not is_value:
            plain.append(word)
    if plain and re.fullmatch(r"\d{1,5}", plain[0]) and int(plain[0]):
        return int(plain[0])
    return 1


def _seconds(text: str) -> float | None:
    try:
        value = float(text[:30])
    except ValueError:
        return None
    return value if EPOCH_S_MIN <= value < EPOCH_S_MAX else None


def _moment(text: str, year: int) -> datetime | None:
    match = _TIME.fullmatch(text.strip()[:40])
    if match is None:
        return None
    month = _MONTHS.get((match["name"] or "").casefold()) or int(match["m0"] or match["m1"] or 0)
    day = int(match["d0"] or match["d1"] or match["d2"])
    clock = (int(match["h"]), int(match["m"]), int(match["s"]), int((match["f"] or "").ljust(6, "0")))
    try:
        return datetime(int(match["year"] or year), month, day, *clock, tzinfo=UTC).replace(tzinfo=None)
    except ValueError:
        return None
