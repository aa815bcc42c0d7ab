r"""Rates and waits of MySQL or MariaDB from its status variables, taken again and again.

Reads:
    A table with a column of times and the variables of ``SHOW GLOBAL STATUS`` as the other columns, a row for each
    sample, separated by tabs or commas. Columns that are no numbers are left out.

    The tables of ``mysqladmin extended-status -i1 -c30`` (``-mysqladmin`` of pt-stalk), also with ``-r``, and those of
    ``SHOW GLOBAL STATUS`` in a loop, one below the other, with or without a line of time before each. Without such
    lines the distance of two tables is that of their ``Uptime``, and the first is at the time in the name that pt-stalk
    gives its files, or the last at the file's last change.

Sample:
    .. code-block:: text

        time	Com_commit	Com_rollback	Innodb_buffer_pool_reads	Innodb_row_lock_waits	Questions
        2026-11-24 01:28:30.227+00:00	3582	0	96560	20	77868
        2026-11-24 01:28:31.227+00:00	3582	0	96801	20	78127

Lost:
    The interval over a restart (``Uptime`` falls) or a FLUSH STATUS: counters that fall are not measured there. How
    long the server waited for one read or one write: its status counts them and does not time them. Transactions:
    ``Com_commit`` does not count those of one statement (autocommit), so statements are what is told.

Units:
    Counters become differences per second, levels stay. A lock wait is the mean of those that ended in the interval
    (``Innodb_row_lock_time / Innodb_row_lock_waits``, milliseconds).

Sources:
    MySQL 8.4 reference manual, "Server Status Variables"; MariaDB documentation, "InnoDB Status Variables".
"""

from __future__ import annotations

import csv
import re
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.linux.sample_stamps import stamp_of
from leadline.formats.stamps import YEARS

META = ImporterMeta(
    tool="MySQL status",
    layers=(Layer.DATABASE,),
    fields={
        "Questions": Field("db_qps", "per_s"),
        "Innodb_buffer_pool_reads": Field("db_page_reads_per_s", "per_s"),
        "Innodb_pages_written": Field("db_page_writes_per_s", "per_s"),
        "Innodb_buffer_pool_read_requests": Field("db_logical_reads_per_s", "per_s"),
        "Handler_read_rnd_next": Field("db_rows_scanned_per_s", "per_s"),
        "Handler_read_key": Field("db_rows_fetched_per_s", "per_s"),
        "Innodb_rows_inserted": Field("db_rows_inserted_per_s", "per_s"),
        "Innodb_rows_inserted + Innodb_rows_updated + Innodb_rows_deleted": Field("db_rows_changed_per_s", "per_s"),
        "Innodb_os_log_written": Field("db_log_bytes_per_s", "bytes_per_s"),
        "Connections": Field("db_logons_per_s", "per_s"),
        "Threads_connected": Field("db_sessions_count", "count"),
        "Innodb_row_lock_current_waits": Field("db_blocked_sessions_count", "count"),
        "Innodb_row_lock_time / Innodb_row_lock_waits": Field("db_lock_wait_ms", "ms"),
    },
    record=(
        "mysqladmin extended-status -i1 -c300 > mysqladmin.txt, or a table with a row for each sample: the time, then "
        "every variable of SHOW GLOBAL STATUS as a column"
    ),
    marks=("innodb_buffer_pool_reads",),
)

_NEEDED = frozenset({"questions", "innodb_buffer_pool_reads"})
_TABLE_HEAD = re.compile(r"\|? ?Variable_name(?: {1,80}\|\s|\t)Value(?: {1,2000}\|)?", re.IGNORECASE)
_TABLE_ROW = re.compile(r"(?:\| )?(\w{1,80})(?: {1,80}\| |\t)([^\t]{0,4000}?)(?: {1,4000}\|)?")
_TABLE_BORDER = re.compile(r"\+-[+-]{1,6000}\+")
_STALK_NAME = re.compile(r"(20\d\d_[01]\d_[0-3]\d_[0-2]\d_[0-5]\d_[0-5]\d)-")
_STEP_MAX_S = 86_400.0
_TIME = re.compile(r"now.*|ts|at|time.*|clock.*|date.*|sampled.*|collected.*")
_SERVER = Entity(EntityKind.DATABASE, "mysql", UNNAMED_GUEST)


def sniff(source: Source) -> int:
    """Sure by the names of status variables beside a column of times."""
    lines = source.head_uncut.splitlines()
    if any(_TABLE_HEAD.fullmatch(line.strip()) for line in lines[:4]):
        return 95 if META.marks[0] in source.head_uncut.lower() else 0
    return 95 if lines and _header(lines[0]) is not None else 0


def read(source: Source, request: Request) -> Capture:
    """The server's series, a value for each interval between two rows.

    Raises:
        InputError: a row is damaged, or there are not two rows.
    """
    builder = CaptureBuilder(source.name, "mysql-status", META.tool)
    lines = source.lines()
    if any(_TABLE_HEAD.fullmatch(line.strip()) for line in lines[:4]):
        return _read_tables(source, request, builder)
    header = _header(lines[0]) if lines else None
    if header is None:
        raise _refused(source, 1, "no header of status variables with a column of times")
    body = lines[1:]
    if body and not source.text().endswith(("\n", "\r")):
        builder.warn("cut", "the last row has no end and was left out")
        body.pop()
    separator, columns, place = header
    rows: dict[int, list[float]] = {}
    zoned = True
    for number, line in enumerate(body, 2):
        if not line.strip() or line == lines[0]:
            continue
        try:
            cells = next(csv.reader([line], delimiter=separator, strict=True))
            if len(cells) != len(columns):
                raise ValueError(f"{len(cells)} cells, {len(columns)} columns")  # noqa: TRY301 - told with its line
            moment = datetime.fromisoformat(cells[place].strip())
            if moment.year not in YEARS:
                raise ValueError(cells[place])  # noqa: TRY301
            rows[to_ns(moment, request)] = [_number(cell) for cell in cells]
        except (ValueError, csv.Error) as error:
            raise _refused(source, number, f"{str(error)[:40]!r} in {line[:60]!r}") from None
        zoned = zoned and moment.tzinfo is not None
    if len(rows) < 2:
        raise _refused(source, len(lines), "one row: counters make rates only between two")
    if not zoned and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    builder.inventory.add(_SERVER, source.name, engine="mysql")
    _emit(np.array(list(rows), dtype=np.int64), (columns, np.array(list(rows.values()))), builder, request)
    return builder.build(clock_known=zoned or request.timezone is not None)


def _read_tables(source: Source, request: Request, builder: CaptureBuilder) -> Capture:
    """The capture of tables of variables and values, one below the other."""
    tables, stamps = _tables(source, request, builder)
    names = tuple(tables[0])
    values = np.array([[table.get(name, float("nan")) for name in names] for table in tables])
    uptime = next((i for i, name in enumerate(names) if name.casefold() == "uptime"), None)
    if uptime is not None and _are_differences(values[:, uptime]):
        values = np.cumsum(values, axis=0)
        builder.warn("relative", "tables after the first are differences (mysqladmin -r)")
    zoned = request.timezone is not None
    if all(stamp is not None for stamp in stamps):
        known = [stamp for stamp in stamps if stamp is not None]
        times = np.array([moment for moment, _ in known], dtype=np.int64)
        zoned = zoned or all(is_zoned for _, is_zoned in known)
    elif uptime is None:
        raise _refused(source, 1, "tables without a time and without Uptime")
    else:
        times, zoned = _times_by_uptime(values[:, uptime], source, request, builder), False
    builder.inventory.add(_SERVER, source.name, engine="mysql")
    _emit(times, (names, values), builder, request)
    return builder.build(clock_known=zoned)


def _tables(
    source: Source, request: Request, builder: CaptureBuilder
) -> tuple[list[dict[str, float]], list[tuple[int, bool] | None]]:
    """Each table's variables, and the time before it where a line tells it.

    Raises:
        InputError: a line is no row of such a table, or there are not two.
    """
    tables: list[dict[str, float]] = []
    stamps: list[tuple[int, bool] | None] = []
    waiting: tuple[int, bool] | None = None
    lines = source.lines()
    for number, line in enumerate(lines, 1):
        text = line.strip(" \r")  # a variable without a value ends in a tab
        row = _TABLE_ROW.fullmatch(text)
        if _TABLE_HEAD.fullmatch(text):
            tables.append({})
            stamps.append(waiting)
            waiting = None
        elif row is not None and tables:
            tables[-1][row[1]] = _number(row[2])
        elif text and not _TABLE_BORDER.fullmatch(text):
            waiting = stamp_of(text, request)
            if waiting is None and not (number == len(lines) and len(tables) > 2):
                raise _refused(source, number, f"{text[:60]!r}")
    is_torn = not source.text().endswith(("\n", "\r")) or (bool(tables) and len(tables[-1]) < len(tables[0]))
    if len(tables) > 2 and is_torn:
        builder.warn("cut", "the last table is cut and was left out")
        tables.pop()
        stamps.pop()
    if len(tables) < 2 or not all(_NEEDED <= {name.casefold() for name in table} for table in tables):
        raise _refused(source, len(lines), "not two whole tables: counters make rates only between two")
    return tables, stamps


def _are_differences(uptimes: NDArray[np.float64]) -> bool:
    """Whether all tables but the first hold what a variable grew by: the server never got older."""
    later = uptimes[1:]
    return len(later) > 1 and bool(np.all(later < uptimes[0])) and float(np.ptp(later)) <= 1


def _times_by_uptime(
    uptimes: NDArray[np.float64], source: Source, request: Request, builder: CaptureBuilder
) -> NDArray[np.int64]:
    """UTC nanoseconds of tables without a time: as far from each other as the server got older, in the mean.

    Raises:
        InputError: the server did not get older.
    """
    grown = np.diff(uptimes)
    step_s = float(np.mean(grown[grown >= 0])) if np.any(grown > 0) else 0.0
    if not 0 < step_s < _STEP_MAX_S:
        raise _refused(source, 1, "Uptime is the same in all tables, or no time")
    places = np.arange(len(uptimes)) * round(step_s * 1e9)
    start_ns = _start_by_name(source, request)
    if start_ns is not None:
        builder.warn("times-by-name", "tables have no time: the first was placed by the file's name, which has no zone")
        return np.asarray(start_ns + places, dtype=np.int64)
    builder.warn("no-times", "tables have no time: the last was placed at the file's last change")
    return np.asarray(source.mtime_ns - places[-1] + places, dtype=np.int64)


def _start_by_name(source: Source, request: Request) -> int | None:
    """UTC nanoseconds of the time in the name that pt-stalk gives its files; None where there is none."""
    named = _STALK_NAME.match(source.name.rpartition("!")[2].rpartition("/")[2])
    try:
        return None if named is None else to_ns(datetime.strptime(named[1], "%Y_%m_%d_%H_%M_%S"), request)  # noqa: DTZ007
    except ValueError:
        return None


def _header(line: str) -> tuple[str, tuple[str, ...], int] | None:
    """Separator, columns and the place of the times; None when it is no header of status variables."""
    for separator in "\t,;":
        columns = tuple(cell.strip().strip('"') for cell in line.split(separator))
        names = tuple(column.casefold() for column in columns)
        if set(names) >= _NEEDED and len(set(names)) == len(names):
            place = next((i for i in (0, len(names) - 1) if _TIME.fullmatch(names[i])), None)
            return None if place is None else (separator, columns, place)
    return None


def _number(text: str) -> float:
    """A variable's value; NaN for one that is no number, such as ON or a name."""
    try:
        return float(text) if re.fullmatch(r"-?\d{1,20}(?:\.\d{1,9})?", text.strip()) else float("nan")
    except ValueError:
        return float("nan")


def _emit(
    times: NDArray[np.int64],
    table: tuple[tuple[str, ...], NDArray[np.float64]],
    builder: CaptureBuilder,
    request: Request,
) -> None:
    """Add the series of every variable that is known, and with everything asked for each as it is."""
    order = np.argsort(times)
    columns, values = table
    times, values = times[order], values[order]
    seconds = np.diff(times) / 1e9
    place = {column.casefold(): i for i, column in enumerate(columns)}
    steps = np.diff(values, axis=0)
    of_uptime = place.get("uptime")
    again = np.zeros(len(seconds), dtype=bool)
    if of_uptime is not None:
        again |= steps[:, of_uptime] < 0
    if again.any():
        builder.warn("reset", "the server was started again: those intervals are not measured", int(again.sum()))
    with np.errstate(invalid="ignore"):
        is_level: NDArray[np.bool_] = np.any(
            steps[~again] < 0, axis=0
        )  # what falls while the server runs is no counter
        steps[again] = np.nan
        steps[steps < 0] = np.nan
    for formula, field in META.fields.items():
        names = [place.get(name.casefold()) for name in re.split(r" [+/] ", formula)]
        if None in names or not request.wants(field.metric):
            continue
        at = [name for name in names if name is not None]
        series = _series(formula, field, (steps[:, at], values[1:, at]), seconds)
        if np.isfinite(series).any():
            builder.add_series(field.metric, _SERVER, times[1:], series)
    if request.metrics is None:
        for i, column in enumerate(columns):
            raw = values[1:, i] if is_level[i] else steps[:, i] / seconds
            if np.isfinite(raw).any():
                suffix = "" if is_level[i] else "_per_s"
                builder.add_series(f"{RAW_PREFIX}mysql.{column}{suffix}", _SERVER, times[1:], raw)


def _series(
    formula: str, field: Field, values: tuple[NDArray[np.float64], NDArray[np.float64]], seconds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """One canonical metric [n] of what its variables grew by and of their levels, [n, variables] each."""
    steps, levels = values
    if field.unit == "count":
        level: NDArray[np.float64] = levels[:, 0]
        return level
    if "/" not in formula:
        total: NDArray[np.float64] = steps.sum(axis=1) / seconds
        return total
    spent, count = steps[:, 0], steps[:, 1]
    mean: NDArray[np.float64] = np.divide(spent, count, out=np.full(len(count), np.nan), where=count > 0)
    return mean


def _refused(source: Source, line: int, problem: str) -> InputError:
    return InputError(
        f"{source.name}:{line}",
        found=problem,
        expected="a row for each sample, with a time and the variables of SHOW GLOBAL STATUS",
        advice=f"Record {META.record}.",
    )
