"""What the importers of load generators share: times from elapsed seconds, columns to series, histograms of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from leadline.core.contracts.importer import Request
    from leadline.core.model.capture import CaptureBuilder
    from leadline.core.model.entities import Entity

NAN = float("nan")
EPOCH_S_MIN, EPOCH_S_MAX = 100_000_000.0, 10_000_000_000.0  # 1973 to 2286: outside, a number is not a time
ELAPSED_S_MAX = 1e9  # Judgement: no load test runs for thirty years
EXACT_BITS = 10  # buckets are exact up to 2 ** (EXACT_BITS + 1), then 2 ** -EXACT_BITS of their value wide

# Abbreviations that mean one offset only. CST, IST and BST are left out: each names several zones.
_ZONE_HOURS = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "CET": 1, "MET": 1, "CEST": 2, "MEST": 2, "EET": 2, "SAST": 2,
    "EEST": 3, "MSK": 3, "TRT": 3, "GST": 4, "SAMT": 4, "PKT": 5, "YEKT": 5, "OMST": 6, "ICT": 7, "WIB": 7, "KRAT": 7,
    "NOVT": 7, "HKT": 8, "SGT": 8, "AWST": 8, "IRKT": 8, "JST": 9, "KST": 9, "YAKT": 9, "AEST": 10, "VLAT": 10,
    "AEDT": 11, "NZST": 12, "NZDT": 13, "BRT": -3, "EDT": -4, "EST": -5, "CDT": -5, "MDT": -6, "MST": -7, "PDT": -7,
    "PST": -8, "AKDT": -8, "AKST": -9, "HST": -10,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The samples of one run whose tool prints seconds since its start.

    Attributes:
        seconds: float64 [n], ascending, since the run's start.
        length_s: how long the run was, at least the last sample.
    """

    seconds: NDArray[np.float64]
    length_s: float


def zone_named(abbreviation: str) -> timezone | None:
    """The fixed offset of a time zone's abbreviation, or None when it is unknown or means several zones.

    Source: IANA time zone database, abbreviations in use after 2000.

    >>> zone_named("ICT")
    datetime.timezone(datetime.timedelta(seconds=25200))
    >>> zone_named("CST") is None
    True
    """
    hours = _ZONE_HOURS.get(abbreviation.upper())
    return None if hours is None else timezone(timedelta(hours=hours))


def bad_line(name: str, line_index: int, text: str, expected: str) -> InputError:
    """The error for a damaged line; ``line_index`` counts from 0."""
    return InputError(
        f"{name}:{line_index + 1}",
        found=text.strip()[:80] or "an empty line",
        expected=expected,
        advice="Record or copy the file again, or cut it before this line.",
    )


def epoch_ns(seconds: float, name: str, line_index: int) -> int:
    """UTC nanoseconds of seconds since 1970.

    Raises:
        InputError: the number cannot be a time between 1973 and 2286.
    """
    if not EPOCH_S_MIN <= seconds < EPOCH_S_MAX:
        raise bad_line(name, line_index, f"a time of {seconds:g}", "seconds since 1970")
    return round(seconds * 1e6) * 1000


def placed(runs: Sequence[Elapsed], end_ns: int) -> list[NDArray[np.int64]]:
    """Times for runs one after the other, of which only the end of the last is known.

    Returns:
        Per run int64 [n], UTC nanoseconds; a run ends where the next begins, the last at ``end_ns``.
    """
    times: list[NDArray[np.int64]] = []
    for run in reversed(runs):
        times.append(end_ns + np.round((run.seconds - run.length_s) * 1e9).astype(np.int64))
        end_ns -= round(run.length_s * 1e9)
    return times[::-1]


def add_columns(
    builder: CaptureBuilder,
    request: Request,
    entity: Entity,
    times_ns: NDArray[np.int64],
    columns: Mapping[str, ArrayLike],
    interval_s: float | None = None,
) -> None:
    """Add the columns that are asked for and measured at all, as series of one entity.

    ``columns`` maps metric names to values [n] in the metric's unit; NaN is "not measured".
    """
    if not len(times_ns):
        return
    for metric, values in columns.items():
        column = np.asarray(values, dtype=np.float64)
        if request.wants(metric) and not np.isnan(column).all():
            builder.add_series(metric, entity, times_ns, column, interval_s=interval_s)


def where(condition: NDArray[np.bool_], values: NDArray[Any]) -> NDArray[np.float64]:
    """The values [n] where the condition [n] holds, NaN elsewhere."""
    return np.where(condition, values, NAN).astype(np.float64)


def sample_histogram(samples: NDArray[np.float64], unit: str) -> Histogram:
    """A histogram of whole, non-negative samples [n]: exact up to 2047, then buckets of 1/1024 of their value.

    Source: HdrHistogram's bucket layout with ten bits of precision.

    >>> h = sample_histogram(np.array([3.0, 3.0, 5001.0]), "us")
    >>> h.lower.tolist(), h.upper.tolist(), h.counts.tolist()
    ([3.0, 5000.0], [4.0, 5004.0], [2, 1])
    """
    whole = np.clip(samples, 0, 2.0**62).astype(np.int64)
    shift = np.maximum(np.frexp(whole.astype(np.float64))[1] - 1 - EXACT_BITS, 0).astype(np.int64)
    lower, counts = np.unique((whole >> shift) << shift, return_counts=True)
    return bucket_histogram(lower, counts, unit)


def bucket_histogram(lower: NDArray[np.int64], counts: Iterable[int], unit: str) -> Histogram:
    """The histogram of the same buckets, given the lowest value [k] of each, ascending, and its count [k]."""
    widths = np.maximum(np.frexp(lower.astype(np.float64))[1] - 1 - EXACT_BITS, 0).astype(np.int64)
    return Histogram.of(lower.astype(np.float64), (lower + (np.int64(1) << widths)).astype(np.float64), counts, unit)
