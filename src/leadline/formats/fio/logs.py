"""The files behind fio's ``write_bw_log``, ``write_lat_log``, ``write_iops_log`` and ``write_hist_log``.

They are rows of numbers without a header. What the numbers are is told by the file's name; in which unit latencies
are, only by the version of fio that wrote them, which the file does not hold. `latency_unit` infers it.

Source: fio, HOWTO, "Log File Formats".
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from leadline.core.io.source import Source

CHUNK_BYTES = 16 << 20  # of text held at a time; a log of any length is read in this much memory and its columns
VALUE_COLUMN_COUNT = 5  # time, value, maximum or direction, direction or size, size or priority; the rest is not used
EPOCH_MS_MIN = 10**11  # a time above is since 1970 (log_unix_epoch), below since the job's start: 1973 or three years
ELAPSED_SLACK_MS = 1000  # Judgement: rows are stamped with the window's end, completions may come a little later
WANDER_MS = 10.0  # Judgement: above this, the times of windowed rows move because completions are rare, not by jitter
_NAME = re.compile(
    r"(?:^|[/\\!])(?P<job>[^/\\!]*?)_?(?P<kind>clat_hist|bw|iops|slat|clat|lat)(?:\.(?P<number>\d+))?\.log$"
)
_ROW = re.compile(rb"\s*\d+\s*(?:,\s*(?:0x[0-9a-fA-F]+|\d+)\s*)+,?\s*")


@dataclass(frozen=True, slots=True)
class LogName:
    """What a log's name says: the job (with its number where it has one) and the kind of the values."""

    job: str
    kind: str


def log_name(name: str) -> LogName | None:
    """The parts of ``JOB_bw.1.log``, or None for another file.

    >>> log_name("dir/wal_clat.2.log")
    LogName(job='wal.2', kind='clat')
    """
    match = _NAME.search(name)
    if match is None:
        return None
    job = match["job"] or "fio"
    return LogName(job if match["number"] is None else f"{job}.{match['number']}", match["kind"])


def looks_like_rows(head: bytes) -> bool:
    """Whether the first line is comma-separated whole numbers, at least four of them."""
    line = head.split(b"\n", 1)[0]
    return line.count(b",") >= 3 and _ROW.fullmatch(line) is not None


@dataclass(frozen=True, slots=True)
class Rows:
    """A log as columns.

    Attributes:
        times_ms: int64 [n], since the job's start or 1970.
        columns: int64 [n] each, the columns after the time as printed; hexadecimal priorities become 0.
        column_count: how many columns the file has, the time included.
        has_priority: one of them is the priority, which only fio 3 writes.
        cut: the last line was not whole and is left out.
    """

    times_ms: NDArray[np.int64]
    columns: list[NDArray[np.int64]]
    column_count: int
    has_priority: bool
    cut: bool


def read_rows(source: Source, column_count_max: int | None = VALUE_COLUMN_COUNT) -> Rows:
    """Every row of a log, with its first ``column_count_max`` columns (None: all).

    Raises:
        InputError: a line is no row of whole numbers, or has other columns than the first.
    """
    pieces: list[list[NDArray[np.int64]]] = []  # per column, its pieces
    line = 0
    cut = hexadecimal = False
    width = 0
    for block, ended in _blocks(source.path):
        text = block
        if not ended:
            text, cut = block[: block.rfind(b"\n") + 1], True
        if not text.strip():
            continue
        width = width or text.lstrip().split(b"\n", 1)[0].rstrip(b" \t\r,").count(b",") + 1
        hexadecimal = hexadecimal or b"x" in text
        columns = _parse(text, width, column_count_max or width)
        if columns is None:
            raise _bad_row(source.name, line, text, width)
        pieces = pieces or [[] for _ in columns]
        for column_pieces, column in zip(pieces, columns, strict=True):
            column_pieces.append(column)
        line += text.count(b"\n")
    if not pieces:
        return Rows(np.zeros(0, np.int64), [], 0, has_priority=False, cut=cut)
    whole: list[NDArray[np.int64]] = []
    while pieces:  # column by column, so that only one is there twice
        whole.append(np.concatenate(pieces.pop(0)))
    flagged = width >= 6 or (width == 5 and (hexadecimal or int(whole[-1].max()) <= 1))
    return Rows(whole[0], whole[1:], width, has_priority=flagged, cut=cut)


def _blocks(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Pieces of the file, to the size it has now, that end with a line; the last may not (then False)."""
    with path.open("rb") as stream:
        rest, left = b"", os.fstat(stream.fileno()).st_size
        while piece := stream.read(min(CHUNK_BYTES, left)):
            left -= len(piece)
            rest += piece
            end = rest.rfind(b"\n") + 1
            if end:
                yield rest[:end], True
                rest = rest[end:]
        if rest.strip():
            yield rest, False


def _parse(text: bytes, width: int, wanted: int) -> list[NDArray[np.int64]] | None:
    """The first columns of lines of ``width`` numbers, int64 [n] each; None when a line is not such a row."""
    if b"x" in text:
        text = re.sub(rb"0x[0-9a-fA-F]+", b"0", text)
    lean = text.translate(None, b" \t\r")
    if lean.startswith(b"\n") or b"\n\n" in lean:
        lean = re.sub(rb"\n+", b"\n", lean).lstrip(b"\n")
    if b",\n" in lean:
        lean = lean.replace(b",\n", b"\n")
    if lean.count(b",") != (width - 1) * lean.count(b"\n") or lean.translate(None, b"0123456789,\n"):
        return None
    columns = range(min(width, wanted))
    try:
        rows = np.loadtxt(io.BytesIO(lean), np.int64, comments=None, delimiter=",", usecols=columns, ndmin=2)
    except ValueError:
        return None
    return [np.ascontiguousarray(rows[:, column]) for column in columns]


def _bad_row(name: str, line: int, text: bytes, width: int) -> InputError:
    """The error for the first line that is not a row; ``line`` lines lie before the text."""
    lines = text.split(b"\n")
    at = next((i for i, row in enumerate(lines) if row.strip() and not _is_row(row, width)), 0)
    return InputError(
        f"{name}:{line + at + 1}",
        found=f"{lines[at][:60].decode('utf-8', errors='replace')!r}",
        expected=f"{width} whole numbers separated by commas, as in the first row",
        advice="Copy the log again, or cut it before this line.",
    )


def _is_row(row: bytes, width: int) -> bool:
    if _ROW.fullmatch(row) is None:
        return False
    fields = row.strip().rstrip(b",").split(b",")
    return len(fields) == width and all(len(field.strip()) <= 18 for field in fields)


def job_starts(times_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the jobs of a merged log (``per_job_logs=0``) begin: rows whose time falls back by half or more.

    fio appends the log of one job to that of the other; a small step back is only disorder between directions.

    >>> job_starts(np.array([500, 1000, 999, 1500, 500, 1000])).tolist()
    [0, 4]
    """
    falls = np.flatnonzero(times_ms[1:] < times_ms[:-1])
    starts, peak = [0], 0
    for at, before, after in zip(falls.tolist(), times_ms[falls].tolist(), times_ms[falls + 1].tolist(), strict=True):
        peak = max(peak, before)  # times rise from one fall to the next, so the highest is right before a fall
        if after * 2 <= peak:
            starts.append(at + 1)
            peak = 0
    return np.array(starts, dtype=np.int64)


def latency_unit(kind: str, rows: Rows, values: NDArray[np.int64], *, windowed: bool) -> tuple[str, str]:
    """The unit of a latency log, ``us`` (fio 2) or ``ns`` (fio 3), and why it is taken to be that.

    The rules, in this order: (1) the priority column is written since fio 3.17 only; (2) a latency that in
    microseconds is longer than the job had run is nanoseconds; (3) where the times of windowed rows wander by at
    least 10 ms and by over ten times the latency in nanoseconds, completions are too rare for so short a latency:
    microseconds; (4) by size: medians from 5000 (submission: 500) up are nanoseconds, since 5 us is a fast device
    and 5 ms a slow one.

    Args:
        kind: slat, clat or lat.
        rows: the log.
        values: int64 [n], its latencies as printed.
        windowed: each row is a mean over a window (``log_avg_msec``), not one I/O.
    """
    if rows.has_priority:
        return "ns", "the priority column is written by fio 3 only"
    relative = len(values) > 0 and int(rows.times_ms.max()) < EPOCH_MS_MIN
    if relative and np.any(values > (rows.times_ms + ELAPSED_SLACK_MS) * 1000):
        return "ns", "in microseconds some would be longer than the job had run"
    middle = float(np.median(values)) if len(values) else 0.0
    if windowed and kind != "slat":
        wander_ms = _wander_ms(rows.times_ms)
        if wander_ms >= WANDER_MS and wander_ms * 1e6 > 10 * middle:
            return "us", "rows come too irregularly for latencies that short in nanoseconds"
    limit = 500 if kind == "slat" else 5000
    if middle >= limit:
        return "ns", f"the median is {middle:g}, in microseconds a very slow device"
    return "us", f"the median is {middle:g}, in nanoseconds faster than any device"


def _wander_ms(times_ms: NDArray[np.int64]) -> float:
    """How far the distance of rows typically is from the usual one; the steps from job to job are left out."""
    steps = np.diff(times_ms)
    steps = steps[steps > 0]
    return float(np.median(np.abs(steps - np.median(steps)))) if len(steps) > 2 else 0.0


def runs_of(ordered: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]]:
    """The distinct values of an ascending int64 [n], where each begins, and how often it is there.

    >>> [part.tolist() for part in runs_of(np.array([3, 3, 7]))]
    [[3, 7], [0, 2], [2, 1]]
    """
    first = np.concatenate(([0], np.flatnonzero(np.diff(ordered)) + 1))
    return ordered[first], first, np.diff(np.append(first, len(ordered)))
