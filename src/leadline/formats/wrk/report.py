"""The document that wrk writes with our script: every latency it recorded, what failed, what was received.

wrk changes its histogram before a script sees it. For each latency that is longer than two mean intervals of a
connection it adds the latencies of requests that it did not send meanwhile. These requests did not happen, so they are
taken out again: the sum is exact, because wrk adds them from the shortest latency to the longest.

Source: wrk 4.1.0, ``wrk.c`` (main: interval), ``stats.c`` (stats_correct, stats_record), SCRIPTING.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram
from leadline.core.model.numbers import NUMBER_MAX
from leadline.core.model.units import factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARK = "leadline_wrk"  # the key of the document, and the version of it
ERRORS = ("connect", "read", "write", "status", "timeout")
WORK_MAX = 200_000_000  # Judgement: additions to take out, a second of work; wrk's own 2 s at most need a tenth
LATENCY_US_MAX = 64_000_000  # Judgement: a table of microseconds up to this takes half a gigabyte
_NUMBERS = ("connections", "threads", "requests", "bytes", "duration_us", *(f"errors.{name}" for name in ERRORS))


@dataclass(frozen=True, slots=True, eq=False)
class WrkReport:
    """What one run of wrk counted.

    Attributes:
        asked: URL, connections and threads.
        duration_us: from the start to the last response.
        received_bytes: of all responses with their headers.
        errors: how many, by `ERRORS`; ``status`` counts responses of 400 and above, which are requests, too.
        latencies_us: int64 [k], whole microseconds, ascending.
        counts: int64 [k], requests that took as long.
        is_as_recorded: the requests that wrk added are taken out; False: they could not be told from the others.
    """

    asked: dict[str, Any]
    requests: float
    received_bytes: float
    duration_us: float
    errors: dict[str, float]
    latencies_us: NDArray[np.int64]
    counts: NDArray[np.int64]
    is_as_recorded: bool

    @property
    def duration_s(self) -> float:
        """From the start to the last response."""
        return self.duration_us * factor("us", "s")

    @property
    def busy_s(self) -> float:
        """The latencies of all requests added up; NaN where they are not as recorded."""
        if not self.is_as_recorded:
            return math.nan
        return float((self.latencies_us * self.counts).sum()) * factor("us", "s")

    def histogram(self) -> Histogram:
        """Return the latencies in milliseconds; wrk drops what is below a microsecond."""
        scale = factor("us", "ms")
        return Histogram.of(self.latencies_us * scale, (self.latencies_us + 1) * scale, self.counts, "ms")


def report_of(document: object, where: str) -> WrkReport:
    """Return the report that a JSON document holds.

    Raises:
        InputError: a number is missing, or is none that can be.
    """
    flat = _flat(document)
    numbers = [flat.get(name) for name in _NUMBERS]
    if not all(_is_count(number) for number in numbers) or not float(flat["connections"]) >= 1:
        names = ", ".join(name for name in _NUMBERS if not _is_count(flat.get(name)))
        raise _damaged(where, f"no count of {names or 'connections'}")
    known = {name: float(flat[name]) for name in _NUMBERS}
    table = _table(flat.get("latencies_us"), where)
    lost = known["errors.timeout"]
    latencies, counts, is_as_recorded = _as_recorded(table, known, known["requests"] - lost)
    return WrkReport(
        {"url": str(flat.get("url", "")), "connections": int(known["connections"]), "threads": int(known["threads"])},
        known["requests"],
        known["bytes"],
        known["duration_us"],
        {name: known[f"errors.{name}"] for name in ERRORS},
        latencies,
        counts,
        is_as_recorded,
    )


def _flat(document: object) -> dict[str, Any]:
    if not isinstance(document, dict):
        return {}
    errors = document.get("errors")
    pairs = errors.items() if isinstance(errors, dict) else ()
    return {**document, **{f"errors.{name}": number for name, number in pairs}}


def _is_count(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < NUMBER_MAX


def _table(rows: object, where: str) -> NDArray[np.int64]:
    """Return latencies and counts, [k, 2], ascending."""
    whole = isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == 2 and all(_is_count(number) for number in row) for row in rows
    )
    table = np.array(rows, dtype=np.float64).reshape(-1, 2).astype(np.int64) if whole else np.zeros((0, 2), np.int64)
    if not whole or bool(np.any(np.diff(table[:, 0]) <= 0)):
        raise _damaged(where, "latencies that are no ascending pairs of microseconds and counts")
    return table


def _as_recorded(
    table: NDArray[np.int64], known: dict[str, float], recorded: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
    """Return latencies and counts without what wrk added, and whether that could be told.

    From the longest latency down, each count is final when it is reached, as only longer ones add to it.
    """
    latencies, counts = table[:, 0], table[:, 1]
    each = int(known["requests"] // known["connections"])
    interval = int(known["duration_us"] // each) if each else 0
    if interval <= 0:
        return latencies, counts, float(counts.sum()) == recorded
    work = float((latencies // interval).sum())
    if not len(latencies) or latencies[-1] > LATENCY_US_MAX or work > WORK_MAX:
        return latencies, counts, float(counts.sum()) == recorded
    by_us = np.zeros(int(latencies[-1]) + 1, dtype=np.int64)
    by_us[latencies] = counts
    for latency in latencies[latencies >= 2 * interval][::-1].tolist():
        by_us[latency - interval : interval : -interval] -= by_us[latency]
    if int(by_us.min()) < 0 or float(by_us.sum()) != recorded:
        return latencies, counts, float(counts.sum()) == recorded
    kept = np.flatnonzero(by_us)
    return kept, by_us[kept], True


def _damaged(where: str, found_text: str) -> InputError:
    return InputError(
        where,
        found=found_text,
        expected="the document of wrk with Leadline's script, as it was written",
        advice="Record it again: leadline bench run web-pages --on TARGET.",
    )
