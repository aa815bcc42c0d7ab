"""What the columns of Oracle's views of waits and of files mean, as people select, round and rename them.

``v$system_event``, ``v$session_event`` and ``v$event_histogram`` count waits; ``v$filestat`` and ``v$iostat_file``
count reads and writes of files. A column whose name says no unit and that the view does not have is not used.

Source: Oracle Database Reference, V$SYSTEM_EVENT (TIME_WAITED and AVERAGE_WAIT in hundredths of a second),
V$EVENT_HISTOGRAM, V$EVENT_HISTOGRAM_MICRO, V$FILESTAT (READTIM, SINGLEBLKRDTIM in hundredths of a second) and
V$IOSTAT_FILE (SMALL_READ_SERVICETIME, SMALL_SYNC_READ_LATENCY, SMALL_WRITE_SERVICETIME in milliseconds).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from leadline.formats.oracle.shell_tables import shell_number

WAITS, HISTOGRAM, FILES, NOW = "waits", "histogram", "files", "now"

_UNITS = {
    "micro": 1e-3, "us": 1e-3, "microseconds": 1e-3, "usec": 1e-3,
    "ms": 1.0, "milli": 1.0, "msec": 1.0, "milliseconds": 1.0, "millis": 1.0,
    "cs": 10.0, "centi": 10.0, "csec": 10.0, "centisecs": 10.0, "centiseconds": 10.0,
    "s": 1e3, "sec": 1e3, "secs": 1e3, "seconds": 1e3, "in_seconds": 1e3, "in_sec": 1e3,
    "min": 6e4, "mins": 6e4, "minutes": 6e4, "hrs": 3.6e6, "hours": 3.6e6,
}  # fmt: skip
_VIEW_UNIT_MS = 10.0  # of time_waited and average_wait, hundredths of a second
_MARK = re.compile(r"total_waits|time_waited.*|average_wait.*")
_EVENTS = frozenset({"event", "event_name", "wait_event"})
_COUNTS = frozenset({"total_waits", "waits", "num_waits", "nb_waits", "wait_count"})
_TIME = re.compile(
    r"(?P<view>time_waited)|(?:total_|sum_)?(?:time_waited|time_wait|wait_time|waited|time)_(?P<unit>\w+)"
)
_MEAN = re.compile(
    r"(?P<view>average_wait)|(?:average|avg|mean)_(?:(?:time_waited|wait_time|waited|wait|time|latency)_)?(?P<unit>\w+)"
    r"|(?P<before>ms|us)_per_wait"
)
_WHEN = re.compile(r"(?:sample|snap|collection|begin_interval|end_interval|capture|current)_?(?:time|date)|now|ts|tm")
_NOW = re.compile(
    r"sysdate|systimestamp|now|current_?(?:date|time(?:stamp)?)|(?:sample|snap|collection)_?time|to_char_sys.*"
)
_SESSIONS = frozenset({"sid", "session_id"})
_INSTANCES = frozenset({"inst_id", "inst", "instance_number", "con_id"})
# Counts and sums of times of files: kind of access, count, sum, milliseconds in a unit of the sum.
_FILE_PAIRS = (
    ("single", "singleblkrds", "singleblkrdtim", 10.0),
    ("single", "small_sync_read_reqs", "small_sync_read_latency", 1.0),
    ("read", "phyrds", "readtim", 10.0),
    ("read", "small_read_reqs", "small_read_servicetime", 1.0),
    ("write", "small_write_reqs", "small_write_servicetime", 1.0),
    ("write", "large_write_reqs", "large_write_servicetime", 1.0),
)
_LOG_FILES = "log file"
_CONTRADICTION = 1.5  # Judgement: rounding never makes a mean differ by half; a unit that was renamed does by ten
_ROUNDING_MS = 10.0
_NAME_MAX = 64  # Source: V$SYSTEM_EVENT, EVENT VARCHAR2(64)
# Names that columns are too narrow for; one is completed where it begins only one of them.
_NAMES = (
    "db file sequential read", "db file scattered read", "db file parallel read", "db file parallel write",
    "db file single write", "db file async I/O submit", "log file sync", "log file parallel write",
    "log file sequential read", "log file single write", "log file switch completion", "log file switch (checkpoint",
    "direct path read", "direct path read temp", "direct path write", "direct path write temp",
    "cell single block physical read", "cell multiblock physical read", "read by other session", "log buffer space",
)  # fmt: skip
_NAME_MIN = 9
_NOT_PRINTED = re.compile(r"#*|\(?null\)?", re.IGNORECASE)  # nothing, or a number too wide for its column


@dataclass(frozen=True, slots=True)
class WaitRow:
    """One event: how often it was waited for, how long in sum, and the printed mean; NaN: not printed."""

    event: str
    key: tuple[str, ...]
    count: float
    total_ms: float
    mean_ms: float
    wait_class: str = ""


def table_kind(columns: tuple[str, ...]) -> str | None:
    """Which view a table is of, by the names of its columns; None for another."""
    names = set(columns)
    if len(columns) == 1 and _NOW.fullmatch(columns[0]):
        return NOW
    if names & _EVENTS:
        if names & {"wait_time_milli", "wait_time_micro"} and "wait_count" in names:
            return HISTOGRAM
        has_time = any(_in_ms_by_name(_TIME, name) or _in_ms_by_name(_MEAN, name) for name in columns)
        return WAITS if has_time and any(_MARK.fullmatch(name) for name in columns) else None
    return FILES if any({count, total} <= names for _, count, total, _ in _FILE_PAIRS) else None


def wait_row(cells: dict[str, str], *, decimal_comma: bool) -> WaitRow | None:
    """A row of counts of waits; None where it holds no time or where its numbers contradict each other."""
    event = _event_of(cells)
    count = next((_number(cells[name], decimal_comma) for name in cells if name in _COUNTS), math.nan)
    total_ms, mean_ms = math.nan, math.nan
    is_rough = True
    for name, cell in cells.items():
        is_number = name in _COUNTS or _in_ms_by_name(_TIME, name) or _in_ms_by_name(_MEAN, name)
        if is_number and math.isnan(_number(cell, decimal_comma)) and not _NOT_PRINTED.fullmatch(cell.strip()):
            return None
        scale = _in_ms_by_name(_TIME, name)
        if scale and (math.isnan(total_ms) or scale < 1.0):  # microseconds before hundredths
            total_ms, is_rough = _number(cell, decimal_comma) * scale, scale > 1.0
        scale = _in_ms_by_name(_MEAN, name)
        if scale and (math.isnan(mean_ms) or scale < 1.0):
            mean_ms = _number(cell, decimal_comma) * scale
    if not event or (math.isnan(total_ms) and math.isnan(mean_ms)) or total_ms < 0 or mean_ms < 0 or count < 0:
        return None
    if count > 0 and math.isfinite(total_ms) and math.isfinite(mean_ms):
        computed = total_ms / count
        apart = abs(computed - mean_ms) - _ROUNDING_MS * (1.0 / count if is_rough else 0.0) - 0.1
        if apart > 0 and not 1.0 / _CONTRADICTION < (computed + 1e-9) / (mean_ms + 1e-9) < _CONTRADICTION:
            return None
    if count > 0 and math.isnan(total_ms):
        total_ms = mean_ms * count
    wait_class = cells.get("wait_class", "").strip().casefold()
    return WaitRow(event, (event, *_whose(cells)), count, total_ms, mean_ms, wait_class)


def histogram_row(cells: dict[str, str], *, decimal_comma: bool) -> WaitRow | None:
    """A row of a histogram of waits: each counted as the least its bucket holds, half of the next power of two."""
    is_micro = "wait_time_micro" in cells
    upper = _number(cells["wait_time_micro" if is_micro else "wait_time_milli"], decimal_comma)
    count = _number(cells["wait_count"], decimal_comma)
    event = _event_of(cells)
    if not event or not upper > 0 or not count >= 0:
        return None
    least_ms = (upper / 2 if upper > 1 else 0.0) * (1e-3 if is_micro else 1.0)
    key = (event, str(upper), *_whose(cells))
    return WaitRow(event, key, count, least_ms * count, math.nan, cells.get("wait_class", "").strip().casefold())


def file_rows(cells: dict[str, str], *, decimal_comma: bool) -> list[WaitRow]:
    """Reads and writes of a row of counts of files, named by the kind of access; of logs only the writes."""
    kind = cells.get("filetype_name", "").strip().casefold()
    name = next(
        (cells[key] for key in ("name", "file_name", "file_no", "file", "file#", "tablespace_name") if key in cells), ""
    )
    rows = []
    for access, count_name, total_name, scale in _FILE_PAIRS:
        if not {count_name, total_name} <= cells.keys() or (access == "write") != kind.startswith(_LOG_FILES):
            continue
        count = _number(cells[count_name], decimal_comma)
        total_ms = _number(cells[total_name], decimal_comma) * scale
        if count >= 0 and total_ms >= 0:
            rows.append(WaitRow(access, (access, count_name, kind, name, *_whose(cells)), count, total_ms, math.nan))
    return rows


def time_cell(cells: dict[str, str]) -> str | None:
    """What a row prints as its time; None where it has no such column."""
    return next((cell for name, cell in cells.items() if _WHEN.fullmatch(name)), None)


def _event_of(cells: dict[str, str]) -> str:
    """The name of the event of a row, completed where its column was too narrow."""
    name = next((cell for key, cell in cells.items() if key in _EVENTS), "").strip()[:_NAME_MAX]
    fitting = [known for known in _NAMES if known.startswith(name)]
    return fitting[0] if len(name) >= _NAME_MIN and name not in _NAMES and len(fitting) == 1 else name


def _whose(cells: dict[str, str]) -> tuple[str, ...]:
    """The session and the instance that a row is of."""
    return tuple(cell for name, cell in cells.items() if name in _SESSIONS or name in _INSTANCES)


def _in_ms_by_name(pattern: re.Pattern[str], name: str) -> float:
    """Milliseconds in a unit of the column with a name; 0 where it is none, or has no unit that is known."""
    match = pattern.fullmatch(name)
    if match is None:
        return 0.0
    if match["view"]:
        return _VIEW_UNIT_MS
    return _UNITS.get(match["unit"] or match.groupdict().get("before") or "", 0.0)


def _number(text: str, decimal_comma: bool) -> float:
    return shell_number(text, decimal_comma=decimal_comma)
