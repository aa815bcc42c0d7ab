"""Times as tools print them, turned into UTC nanoseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from leadline.core.model.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from leadline.core.contracts.importer import Request
    from leadline.core.io.source import Source

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NS_PER_US = 1000

_FIRST_YEAR, _LAST_YEAR = 1678, 2261


def to_ns(moment: datetime, request: Request) -> int:
    """UTC nanoseconds of a moment; one without a zone is taken in ``request.timezone``, else as UTC.

    Raises:
        UsageError: the request names a time zone that does not exist.
        InputError: the moment is not within the years 1678 to 2261, which are all that 64 bits of nanoseconds hold.
    """
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=_zone(request))
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise InputError(
            f"the time {moment.isoformat()}",
            found=f"the year {moment.year}",
            expected=f"a year from {_FIRST_YEAR} to {_LAST_YEAR}",
            advice="Correct the time in the recording, or record it again with the clock set.",
        )
    return ((moment - EPOCH) // timedelta(microseconds=1)) * NS_PER_US


def assumed_date(source: Source, request: Request) -> date:
    """The date to give to times without one: as requested, else the day the file was last written.

    Raises:
        UsageError: the requested date is not an ISO date.
    """
    if request.date is None:
        return datetime.fromtimestamp(source.mtime_ns / 1e9, tz=_zone(request)).date()
    try:
        return date.fromisoformat(request.date)
    except ValueError as error:
        raise UsageError(
            "--date", found=request.date, expected="an ISO date", advice="Write it as 2026-11-20."
        ) from error


def synthetic_times(count: int, interval_s: float, end_ns: int) -> NDArray[np.int64]:
    """Times for a recording that prints none: ``count`` samples ``interval_s`` apart, the last at ``end_ns``."""
    step = round(interval_s * 1e9)
    return np.arange(count - 1, -1, -1, dtype=np.int64) * -step + end_ns


def rolled_over(times_ns: Iterable[int]) -> NDArray[np.int64]:
    """Times of day on one date put right where they pass midnight: a step back of over 12 h is a new day."""
    times = np.fromiter(times_ns, dtype=np.int64)
    if len(times) < 2:
        return times
    day = 86_400 * 1_000_000_000
    days = np.concatenate(([0], np.cumsum(np.diff(times) < -day // 2)))
    shifted: NDArray[np.int64] = times + days * day
    return shifted


def _zone(request: Request) -> ZoneInfo:
    name = request.timezone or "UTC"
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(
            "--timezone", found=name, expected="an IANA time zone", advice="For example Europe/Berlin."
        ) from error
