"""Lines of ``date`` between what a command prints: ISO 8601, ``+%s``, or as the C locale writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from leadline.core.io.clock import to_ns
from leadline.formats.loadtool import zone_named
from leadline.formats.stamps import YEARS

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request
    from leadline.core.model.capture import CaptureBuilder

LENGTH_MAX = 80
_DATE = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d{1,2}:\d\d:\d\d)(?: ([AP]M))?(?: ([A-Z]{1,5}|[+-]\d\d))? (\d{4})"
)
_EPOCH = re.compile(r"\d{9,10}(?:\.\d{1,9})?")


@dataclass(slots=True)
class DateLines:
    """Turns lines of ``date`` into times; ``is_zoned`` is false once one had no zone and none was asked for."""

    request: Request
    builder: CaptureBuilder
    is_zoned: bool = True

    def time_ns(self, line: str) -> int | None:
        """UTC nanoseconds of a line that is a time; None for every other line."""
        text = line.strip()
        if not text or len(text) > LENGTH_MAX:
            return None
        if _EPOCH.fullmatch(text):
            return round(float(text) * 1e3) * 1_000_000
        try:
            moment = _dated(text)
        except ValueError:
            return None
        if moment.year not in YEARS:
            return None
        if moment.tzinfo is None and self.request.timezone is None:
            self.is_zoned = False
            self.builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
        return to_ns(moment, self.request)


def _dated(text: str) -> datetime:
    match = _DATE.fullmatch(text)
    if match is None:
        return datetime.fromisoformat(text)
    month, day, clock, half, zone, year = match.groups()
    form = "%Y %b %d %I:%M:%S %p" if half else "%Y %b %d %H:%M:%S"
    moment = datetime.strptime(f"{year} {month} {day} {clock} {half or ''}".strip(), form)  # noqa: DTZ007
    if zone and zone[0] in "+-":
        return datetime.fromisoformat(f"{moment.isoformat()}{zone}:00")
    return moment.replace(tzinfo=zone_named(zone) if zone else None)
