"""Lines of the logs that ESXi writes: their times, in the forms of all versions and of syslog servers.

A line begins with ``2026-11-24T09:00:11.403Z`` (ESXi 5 and later, also behind what a syslog server puts before it) or,
where a syslog server wrote the time or ESX 4 did, with ``Nov 24 09:00:11``: then the year is assumed. People indent and
quote them. ESX 3 and 4 print the time since boot before a line, ``0:02:09:02.494``, which may be all that is left.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from leadline.core.io.clock import assumed_date, to_ns
from leadline.formats.stamps import YEARS

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request
    from leadline.core.io.source import Source
    from leadline.core.model.capture import CaptureBuilder

STAMP_CHARACTERS = 160  # a line's time is within these
_ISO = re.compile(
    r"(?<![\d-])((?:19|20)\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)
_BSD = re.compile(
    r"[\s>\"'|*-]{0,12}(?:<\d{1,3}>)?"
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?"
)
_UPTIME = re.compile(r"(?<![\w:.])(\d{1,5}):([0-2]\d):([0-5]\d):([0-5]\d)\.(\d{3}) (?=cpu\d)")


def since_boot(line: str) -> tuple[int, str] | None:
    """Nanoseconds since boot of a line of ESX 3 or 4, and what follows; None where it has none.

    >>> since_boot("0:02:09:02.494 cpu3:1043)FS3: 4831: Reclaimed")
    (7742494000000, ' cpu3:1043)FS3: 4831: Reclaimed')
    """
    match = _UPTIME.search(line[:STAMP_CHARACTERS])
    if match is None:
        return None
    days, hours, minutes, seconds, millis = map(int, match.groups())
    whole_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return (whole_s * 1000 + millis) * 1_000_000, line[match.end() - 1 :]


@dataclass(slots=True)
class EsxiClock:
    """Turns the times of a log's lines into UTC, and keeps what had to be assumed.

    Attributes:
        is_known: no year and no zone had to be assumed so far.
    """

    source: Source
    request: Request
    builder: CaptureBuilder
    is_known: bool = True
    _year: int = field(default=0)

    def parse(self, line: str) -> tuple[int, str] | None:
        """UTC nanoseconds of a line and what follows its time; None where it begins with no time."""
        head = line[:STAMP_CHARACTERS]
        match = _ISO.search(head)
        try:
            if match is not None:
                return self._iso(match), line[match.end() :]
            match = _BSD.match(head)
            return None if match is None else (self._bsd(match), line[match.end() :])
        except ValueError:
            return None

    def _iso(self, match: re.Match[str]) -> int:
        clock, fraction, zone = match.groups()
        micro = (fraction or "0").ljust(6, "0")[:6]
        moment = datetime.fromisoformat(f"{clock}.{micro}{(zone or '').replace('Z', '+00:00')}")
        if moment.year not in YEARS:
            raise ValueError(clock)
        if zone is None:
            self._assume_zone()
        return to_ns(moment, self.request)

    def _bsd(self, match: re.Match[str]) -> int:
        month, day, clock, fraction = match.groups()
        last = assumed_date(self.source, self.request)
        micro = (fraction or "0").ljust(6, "0")[:6]
        moment = datetime.strptime(f"{last.year} {month} {day} {clock}.{micro}", "%Y %b %d %H:%M:%S.%f")  # noqa: DTZ007
        if moment.date() > last + timedelta(days=1):
            moment = moment.replace(year=last.year - 1)
        self._assume_zone()
        if self._year != moment.year:
            self.builder.warn("no-year", f"times have no year; {moment.year} was assumed; --date sets it")
            self._year = moment.year
        self.is_known = False
        return to_ns(moment, self.request)

    def _assume_zone(self) -> None:
        if self.request.timezone is None and self.is_known:
            self.builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
            self.is_known = False
