"""What fio's JSON, text and log files share: its latency buckets, its way to write dates, its directions.

fio counts latencies in buckets that are exact up to 127 and then 64 to each doubling, so a bucket is at most 1/64 of
its value wide. Before fio 3 the numbers are microseconds (1216 buckets), since then nanoseconds (1856 buckets).

Source: fio, ``stat.h`` (the comment above ``FIO_IO_U_PLAT_BITS``) and ``stat.c`` (``plat_val_to_idx``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from leadline.core.model.histogram import Histogram
from leadline.core.model.units import factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Report = TypeVar("_Report", bound=Mapping[str, Any])

DIRECTIONS = ("read", "write", "trim")  # also their numbers in the logs: 0, 1, 2
BUCKET_COUNT_US = 1216  # FIO_IO_U_PLAT_NR of fio 2
BUCKET_COUNT_NS = 1856  # of fio 3
_BITS = 6  # FIO_IO_U_PLAT_BITS
_PER_GROUP = 1 << _BITS
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CTIME = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\b")


@dataclass(frozen=True, slots=True)
class Statistics:
    """The spread of one kind of latency (slat, clat or lat) of one direction, in milliseconds.

    ``values`` holds ``mean``, ``min``, ``max``, ``stddev`` and percentiles as ``p50``, ``p99.9``.
    """

    values: dict[str, float]
    histogram: Histogram | None = None

    @property
    def has_percentiles(self) -> bool:
        """Whether a percentile is among the values."""
        return any(_is_percentile(key) for key in self.values)


def moment_ms(report: Mapping[str, Any], first: Mapping[str, Any]) -> int:
    """When the last request a report counts ended, ms since 1970; ``first`` is the first report of the same fio.

    A report at the end is dated when it is written, which on a busy machine is some tenths of a second after the jobs
    ended: what came out since the report before would be divided by too long a time. How long the jobs ran says better.
    """
    dated, ran = (int(report["timestamp_ms"]), _ran_ms(report) - _ran_ms(first))
    return min(dated, int(first["timestamp_ms"]) + ran) if ran > 0 else dated


def is_after_ramp(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether fio began to count anew between two reports, because its ramp time was over."""
    options = {**after.get("global options", {}), **before.get("global options", {})}
    has_ramp = "ramp_time" in options or any("ramp_time" in job.get("job options", {}) for job in after["jobs"])
    return has_ramp and _job_ms(after) < _job_ms(before)


def after_ramp(reports: Sequence[_Report]) -> Sequence[_Report]:
    """The reports of one fio since it began to count for the last time."""
    starts = [n for n, (before, after) in enumerate(pairwise(reports), 1) if is_after_ramp(before, after)]
    return reports[starts[-1] :] if starts else reports


def _job_ms(report: Mapping[str, Any]) -> float:
    return min((float(job.get("job_runtime", 0)) for job in report["jobs"]), default=0.0)


def _ran_ms(report: Mapping[str, Any]) -> int:
    return max((int(job.get(way, {}).get("runtime", 0)) for job in report["jobs"] for way in DIRECTIONS), default=0)


def latency_of(parts: Mapping[str, Statistics]) -> tuple[dict[str, float], Histogram | None, str | None]:
    """One operation's latencies from its slat, clat and lat.

    Plain keys are of the whole request (lat) with one exception: fio prints percentiles of the completion latency
    unless asked otherwise, so where lat has none the plain percentiles are those of clat. Every part is also kept
    under its own name (``clat_mean``, ``slat_max``).

    Returns:
        The statistics in ms, the histogram in ms if there is one, and which part the plain percentiles are of.
    """
    values: dict[str, float] = {}
    for name, part in parts.items():
        if name != "lat":
            values.update({f"{name}_{key}": value for key, value in part.values.items()})
    whole = parts.get("lat") or parts.get("clat")
    if whole is None:
        return values, None, None
    values.update({key: value for key, value in whole.values.items()})
    detailed = next((n for n in ("lat", "clat") if n in parts and parts[n].has_percentiles), None)
    if detailed is not None:
        values.update({key: value for key, value in parts[detailed].values.items() if _is_percentile(key)})
    counted = next((n for n in ("lat", "clat") if n in parts and parts[n].histogram is not None), None)
    return values, parts[counted].histogram if counted else None, detailed or counted


def ceiling_ms(version: str | None) -> float:
    """The middle of the last bucket of fio's histogram: a percentile there is "at least".

    Source: fio's stat.c, plat_idx_to_val, with 29 groups of 64 buckets of nanoseconds, before fio 3 of 19 groups of
    microseconds.

    >>> ceiling_ms("fio-3.33"), ceiling_ms("fio-2.2.10")
    (17112.76032, 16711.68)
    """
    number = re.search(r"\d+", version or "")
    return 16711.68 if number and int(number[0]) < 3 else 17112.76032


def percentile_key(share_pct: float) -> str:
    """The key of a percentile.

    >>> percentile_key(99.900000), percentile_key(50.0)
    ('p99.9', 'p50')
    """
    return f"p{share_pct:g}"


def bucket_index(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of each latency: int64 [n], not negative, in fio's own unit -> int64 [n].

    >>> bucket_index(np.array([5, 127, 128, 129, 130, 256])).tolist()
    [5, 127, 128, 128, 129, 192]
    """
    highest_bit = np.frexp(values.astype(np.float64))[1] - 1  # frexp gives value = m * 2**e with 0.5 <= m < 1
    shift = np.maximum(highest_bit - _BITS, 0).astype(np.int64)
    rounded = ((shift + 1) << _BITS) + ((values >> shift) & (_PER_GROUP - 1))
    return np.asarray(np.where(shift == 0, values, rounded), dtype=np.int64)


def bucket_bounds(index: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower (inclusive) and upper (exclusive) bound of buckets, int64 [n] -> two float64 [n] in fio's own unit."""
    shift = np.maximum((index >> _BITS) - 1, 0)
    base = np.where(shift > 0, (index & (_PER_GROUP - 1)) + _PER_GROUP, index).astype(np.float64)
    width = np.exp2(shift.astype(np.float64))
    return base * width, (base + 1.0) * width


def bucket_histogram(index: NDArray[np.int64], counts: NDArray[np.int64], unit: str, width: int = 1) -> Histogram:
    """A histogram in ms from bucket numbers (the first of ``width`` joined ones), their counts and fio's unit."""
    lower = bucket_bounds(index)[0] * factor(unit, "ms")
    upper = bucket_bounds(index + (width - 1))[1] * factor(unit, "ms")
    return Histogram.of(lower, upper, counts, "ms")


def bins_histogram(bins: Mapping[str, Any], unit: str) -> Histogram | None:
    """The histogram of a json+ ``bins`` object, or None when it counts nothing.

    fio 3 names a bin by a value inside the bucket; fio 2 by the bucket's number, and says so by listing
    ``FIO_IO_U_PLAT_NR`` among the bins.

    Raises:
        ValueError: a key or a count is not a whole number.
    """
    numbers = {int(key): int(count) for key, count in bins.items() if not key.startswith("FIO_")}
    filled_bins = {key: count for key, count in numbers.items() if count > 0}
    if not filled_bins:
        return None
    if min(filled_bins) < 0 or max(filled_bins) >= 1 << 62 or max(filled_bins.values()) >= 1 << 62:
        message = f"bins between {min(filled_bins)} and {max(filled_bins)}"
        raise ValueError(message)
    keys = np.array(sorted(filled_bins), dtype=np.int64)
    counts = np.array([filled_bins[int(key)] for key in keys], dtype=np.int64)
    index = keys if any(key.startswith("FIO_") for key in bins) else bucket_index(keys)
    if int(index.max()) >= 1 << 12:
        message = f"bucket number {int(index.max())}"
        raise ValueError(message)
    return bucket_histogram(index, counts, unit)


def moment_of(text: str) -> datetime | None:
    """The date in a line of fio (``Fri Jun 19 01:10:01 2020``, local time of the machine), or None."""
    match = _CTIME.search(text)
    if match is None or match[1] not in _MONTHS:
        return None
    day, hour, minute, second, year = (int(match[i]) for i in range(2, 7))
    try:
        return datetime(year, _MONTHS.index(match[1]) + 1, day, hour, minute, second)  # noqa: DTZ001 - local, as printed
    except ValueError:
        return None


def _is_percentile(key: str) -> bool:
    return len(key) > 1 and key[0] == "p" and key[1].isdigit()
