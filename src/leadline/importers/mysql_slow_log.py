r"""Statements that MySQL or MariaDB wrote to the slow query log: which was at work, for how long.

Reads:
    The log as a file, of MySQL 5.0 to 9, MariaDB and Percona Server, with the fields of ``log_slow_extra``,
    ``log_slow_verbosity`` and Percona's. Its lines are read one after the other; logs may be large.

Sample:
    .. code-block:: text

        # Time: 2026-11-25T11:18:52.456789Z
        # User@Host: app[app] @ web01 [10.0.0.5]  Id:    40
        # Query_time: 1.200244  Lock_time: 0.000102 Rows_sent: 1  Rows_examined: 100000
        SET timestamp=1795605531;
        select count(*) from orders where state = 1;

Lost:
    Statements faster than ``long_query_time``, so that there are at least as many at work. Texts: of a statement only
    the verb and the first table are kept. Users and hosts. Administrator commands, as a standby's ``Binlog Dump``.
    Statements that end without their duration. Entries of MySQL 5.0 that have no time of their own end with the
    entry before them.

Units:
    A duration is the mean of those that ended in the step, commits apart. Steps are whole seconds, longer ones where
    the log covers more than three hours. MySQL's ``# Time`` with a zone is when a statement ended. ``SET timestamp`` is
    its end in MySQL up to 8.0.13 and its begin in MariaDB: of the two the one is taken by which the entries are in the
    order of their ends, as they were written; where both are, the begin in a log with MariaDB's fields. The time of a
    page's read is told by Percona (``InnoDB_IO_r_wait``, seconds) and MariaDB (``Pages_read_time``, milliseconds).

Sources:
    MySQL 8.4 reference manual, "The Slow Query Log"; MySQL worklog 12393; Percona Server documentation, "Slow query
    log"; MariaDB documentation, log_slow_verbosity; a log of MariaDB 10.11.19 recorded with known statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import EPOCH_S_MAX, EPOCH_S_MIN, add_columns, where
from leadline.formats.logged_statements import KEPT_MAX, LoggedWork, at_work, works_of
from leadline.formats.stamps import YEARS
from leadline.formats.statements import shown_name, statement_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="MySQL slow query log",
    layers=(Layer.DATABASE,),
    fields={
        "Query_time": Field("db_logged_statement_ms", "s"),
        "Query_time, COMMIT": Field("db_logged_commit_ms", "s"),
        "Query_time, statement": Field("db_logged_statement_sessions_count", "count"),
        "Query_time, all": Field("db_logged_time_s", "s"),
        "Lock_time": Field("db_logged_lock_time_s", "s"),
        "entries": Field("db_logged_calls_count", "count"),
        "Rows_examined": Field("db_logged_rows_examined_count", "count"),
        "Rows_sent, Rows_affected": Field("db_logged_rows_returned_count", "count"),
        "InnoDB_IO_r_wait, Pages_read_time": Field("db_data_read_latency_ms", "ms"),
        "InnoDB_rec_lock_wait": Field("db_lock_wait_ms", "s"),
    },
    record="cp /var/log/mysql/mysql-slow.log mysql-slow.log (SET GLOBAL slow_query_log = 1, long_query_time = 0.1)",
    marks=("# query_time:",),
)

_USER = re.compile(r"# User@Host: [^\[\n]{0,120}\[[^\]\n]{0,120}\] @ ")
_ISO = re.compile(r"# Time: (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d))")
_SHORT = re.compile(r"# Time: (\d\d)(\d\d)(\d\d) +(\d{1,2}):(\d\d):(\d\d)")
_NUMBER = re.compile(r"\b(\w{4,40}): (\d{1,19}(?:\.\d{1,9})?)(?=\s|$)")
_STAMP = re.compile(r"SET (?:\w{1,20}=\d{1,20},){0,4}timestamp=(\d{9,11})(?:\.\d{1,6})?;")
_USE = re.compile(r"use [^;\n]{1,200};\s*")
_BANNER = re.compile(r".{0,300}, Version: .{0,300}started with:|Tcp port: |Time\s+Id\s+Command\s+Argument")
_ADMIN = "# administrator command:"
_COMMENT = re.compile(r"\s*(?:/\*.*?\*/|(?:--\s|#)[^\n]*\n)\s*", re.DOTALL)
_QUOTED = re.compile(r"`(\w{1,64})`")
_MODIFIER = re.compile(
    r"\b(insert|update|delete|replace)(?:\s+(?:low_priority|delayed|high_priority|quick|ignore))+\b", re.IGNORECASE
)
_TEXT_MAX = 1024  # characters of a statement; the table is named near its beginning
_DURATION_S_MAX = 1e8  # three years: what is longer is an overflow of the server's clock
_STEPS_MAX = 10_800  # Judgement: three hours of seconds; a day in steps of 8 s, for up to 21 statements
_SERVER = Entity(EntityKind.DATABASE, "mysql", UNNAMED_GUEST)


def sniff(source: Source) -> int:
    """Sure by an entry's user and its duration."""
    lines = source.head_text.splitlines()
    has_duration = any(line.startswith("# Query_time: ") for line in lines)
    return 95 if has_duration and any(_USER.match(line) for line in lines) else 0


def read(source: Source, request: Request) -> Capture:
    """The server's series, a value for each second from the first statement's begin to the last one's end.

    Raises:
        InputError: no entry has a time and a duration.
    """
    builder = CaptureBuilder(source.name, "mysql-slow-log", META.tool)
    entries = _Entries(request, builder)
    entries.read(_lines(source))
    if not entries.ends_s:
        raise InputError(
            source.name,
            found="no entry with a time and a duration",
            expected="a slow query log: # User@Host, # Query_time, SET timestamp, the statement",
            advice="Set slow_query_log_file, and give the file as it is, not a digest of it.",
        )
    builder.inventory.add(_SERVER, source.name, engine="mysql")
    _emit(entries, builder, request)
    return builder.build(clock_known=entries.is_clock_known or request.timezone is not None)


def _lines(source: Source) -> Iterator[str]:
    if source.head.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield from source.lines()
        return
    with source.path.open(encoding="utf-8", errors="replace") as stream:
        yield from stream


@dataclass(slots=True)
class _Entry:
    """One entry while its lines are read; times are UTC seconds."""

    time_s: float | None = None
    is_exact: bool = False
    stamp_s: float | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    text: str = ""
    is_admin: bool = False

    def take(self, line: str) -> None:
        """Take in a line behind the user's."""
        if not self.text and line.startswith(_ADMIN):
            self.is_admin = True
        elif not self.text and line.startswith("#") and not self.stamp_s:
            if not line.startswith("# explain:"):
                self.numbers.update((name, float(number)) for name, number in _NUMBER.findall(line[:4096]))
        elif self.stamp_s is None and not self.text and (stamp := _STAMP.match(line)) is not None:
            self.stamp_s = float(stamp[1])
        elif len(self.text) < _TEXT_MAX and (self.text or not _USE.fullmatch(line)):
            self.text += line[:_TEXT_MAX]

    @property
    def name(self) -> str:
        """The verb and the first table; ``?`` where the beginning is no known verb."""
        text = self.text
        while (comment := _COMMENT.match(text)) is not None:
            text = text[comment.end() :]
        return shown_name(statement_name(_MODIFIER.sub(r"\1", _QUOTED.sub(r"\1", text))))


class _Entries:
    """The entries of a log as columns.

    Attributes:
        ends_s: UTC seconds at which each statement ended.
        is_clock_known: whether each time has a zone or counts from 1970.
    """

    def __init__(self, request: Request, builder: CaptureBuilder) -> None:
        self.is_clock_known = True
        self.ends_s: list[float] = []
        self.durations_s: list[float] = []
        self.names: list[str] = []
        self.rows_examined: list[float] = []
        self.rows_sent: list[float] = []
        self.all_locks_s: list[float] = []
        self.read_ms: list[float] = []
        self.reads: list[float] = []
        self.lock_s: list[float] = []
        self._is_exact: list[bool] = []
        self._is_mariadb = False
        self._request, self._builder = request, builder

    def read(self, lines: Iterator[str]) -> None:
        """Take in all lines."""
        entry: _Entry | None = None
        time_s: float | None = None
        is_exact = False
        for line in lines:
            self._is_mariadb = self._is_mariadb or (line.startswith("# Thread_id: ") and "QC_hit: " in line)
            if line.startswith("# Time: ") and (moment := self._moment(line)) is not None:
                self._add(entry)
                entry, (time_s, is_exact) = None, moment
            elif line.startswith("# User@Host: ") and _USER.match(line) is not None:
                self._add(entry)
                entry = _Entry(time_s, is_exact)
                entry.take(line)
                is_exact = False  # it is the time of one entry only
            elif entry is not None and not (_BANNER.match(line) and entry.numbers):
                entry.take(line)
            elif entry is not None:
                self._add(entry)
                entry = None
        self._add(entry)
        self._choose_ends()

    def _moment(self, line: str) -> tuple[float, bool] | None:
        """UTC seconds of a line of time, and whether it is the end of the one entry that follows."""
        exact, short = _ISO.match(line), _SHORT.match(line)
        try:
            if exact is not None:
                moment = datetime.fromisoformat(exact[1])
            elif short is not None:
                year, *others = (int(part) for part in short.groups())
                moment = datetime(2000 + year, *others)  # type: ignore[arg-type]  # noqa: DTZ001 - the zone is not told
            else:
                return None
        except ValueError:
            return None
        return (to_ns(moment, self._request) / 1e9, exact is not None) if moment.year in YEARS else None

    def _add(self, entry: _Entry | None) -> None:
        if entry is None or not entry.numbers:
            return
        if entry.is_admin:
            self._builder.warn("commands", "administrator commands are no statements and were left out")
            return
        duration_s = entry.numbers.get("Query_time")
        has_stamp = entry.stamp_s is not None and EPOCH_S_MIN <= entry.stamp_s < EPOCH_S_MAX
        time_s = entry.time_s if entry.is_exact or not has_stamp else entry.stamp_s
        if duration_s is None or duration_s > _DURATION_S_MAX or time_s is None:
            self._builder.warn("damaged", "entries without a time or a duration were left out")
            return
        if not has_stamp and not entry.is_exact:
            self.is_clock_known = False
            if self._request.timezone is None:
                self._builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
        numbers = entry.numbers
        self.ends_s.append(time_s)
        self._is_exact.append(entry.is_exact)
        self.durations_s.append(duration_s)
        self.names.append(entry.name)
        self.rows_examined.append(numbers.get("Rows_examined", float("nan")))
        self.rows_sent.append(max(numbers.get("Rows_sent", 0.0), numbers.get("Rows_affected", 0.0)))
        self.all_locks_s.append(min(numbers.get("Lock_time", float("nan")), duration_s))
        self.lock_s.append(numbers.get("InnoDB_rec_lock_wait", 0.0))
        self.reads.append(numbers.get("InnoDB_IO_r_ops", numbers.get("Pages_read", 0.0)))
        self.read_ms.append(
            1000.0 * numbers["InnoDB_IO_r_wait"]
            if "InnoDB_IO_r_wait" in numbers
            else numbers.get("Pages_read_time", float("nan"))
        )

    def _choose_ends(self) -> None:
        """Where times may be begins, take those ends by which the entries are in the order they were written in."""
        exact = np.array(self._is_exact, dtype=bool)
        if exact.all():
            return
        ends = np.array(self.ends_s)
        later = ends + np.where(exact, 0.0, np.array(self.durations_s))
        behind, behind_later = _steps_back(ends), _steps_back(later)
        if behind_later < behind or (self._is_mariadb and behind_later == behind):
            self.ends_s = later.tolist()

    def works(self) -> list[LoggedWork]:
        """The statements by name, those that took most time first."""
        ends_s = np.array(self.ends_s)
        works = works_of(self.names, ends_s - np.array(self.durations_s), ends_s)
        return sorted(works, key=lambda work: -work.total_s)


def _steps_back(ends_s: NDArray[np.float64]) -> float:
    """Seconds by which entries end before one that was written before them, beyond the second that times are cut to."""
    behind = np.maximum.accumulate(ends_s) - ends_s
    return float(np.sum(behind[behind >= 1.0]))


def _emit(entries: _Entries, builder: CaptureBuilder, request: Request) -> None:
    """Add the durations of what ended and the statements at work, in steps of whole seconds."""
    ends = np.floor(np.array(entries.ends_s)).astype(np.int64)
    durations_ms = 1000.0 * np.array(entries.durations_s)
    works = entries.works()
    begin_s = min(work.begin_s for work in works)
    first, last = int(ends.min()), int(ends.max()) + 1
    step_s = max(-(-(last - first) // _STEPS_MAX), 1)
    count = -(-(last - first) // step_s)
    steps = (ends - first) // step_s
    is_commit = np.array([name == "COMMIT" for name in entries.names])
    lock_ms = 1000.0 * np.array(entries.lock_s)
    reads = np.array(entries.reads)
    read_ms = np.nan_to_num(np.array(entries.read_ms)) * (reads > 0)
    examined = np.array(entries.rows_examined)

    def mean(amounts: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.bincount(steps, weights=weights, minlength=count)
        return where(total > 0, np.bincount(steps, weights=amounts, minlength=count) / np.maximum(total, 1e-9))

    columns = {
        "db_logged_statement_ms": mean(durations_ms * ~is_commit, (~is_commit).astype(np.float64)),
        "db_logged_commit_ms": mean(durations_ms * is_commit, is_commit.astype(np.float64)),
        "db_lock_wait_ms": mean(lock_ms, (lock_ms > 0).astype(np.float64)),
        "db_data_read_latency_ms": mean(read_ms, reads * (read_ms > 0)),
    }
    if request.metrics is None:
        rows = np.bincount(steps, weights=np.nan_to_num(examined), minlength=count) / step_s
        columns[f"{RAW_PREFIX}mysql.slow_log.rows_examined_per_s"] = rows
    times = (first + step_s * np.arange(1, count + 1, dtype=np.int64)) * 1_000_000_000
    add_columns(builder, request, _SERVER, times, columns, step_s)
    span = (times[-1:], max(float(last - begin_s), 1.0))
    _add_sums(entries, [work.name for work in works[:KEPT_MAX]], span, (builder, request))
    if request.wants("db_logged_statement_sessions_count"):
        begin = min(first, max(begin_s, last - _STEPS_MAX * step_s))
        count = -(-(last - begin) // step_s)
        times = (last - step_s * np.arange(count, dtype=np.int64)[::-1]) * 1_000_000_000
        for (name, _), values in at_work(works, last - count * step_s, step_s, count).items():
            entity = Entity(EntityKind.STATEMENT, name, _SERVER)
            builder.add_series("db_logged_statement_sessions_count", entity, times, values, interval_s=step_s)


def _add_sums(
    entries: _Entries,
    names: list[str],
    span: tuple[NDArray[np.int64], float],
    into: tuple[CaptureBuilder, Request],
) -> None:
    """Add of each statement how often it was logged, the time it took, also for locks, and the rows it examined.

    ``span`` is the end of the log [1], in nanoseconds, and its length in seconds.
    """
    (end, length_s), (builder, request) = span, into
    durations, examined = np.array(entries.durations_s), np.array(entries.rows_examined)
    sent, locks = np.array(entries.rows_sent), np.array(entries.all_locks_s)
    places: dict[str, list[int]] = {name: [] for name in names}
    for place, name in enumerate(entries.names):
        if name in places:
            places[name].append(place)
    for name, rows in places.items():
        known = examined[rows][np.isfinite(examined[rows])]
        facts: dict[str, Any] = {
            "statement": name,
            "calls": len(rows),
            "exec_s": round(float(durations[rows].sum()), 3),
            "rows_examined_mean": round(float(known.mean()), 1) if len(known) else None,
        }
        statement = builder.inventory.add(Entity(EntityKind.STATEMENT, name, _SERVER), builder.info.name, **facts)
        sums = {
            "db_logged_time_s": durations[rows].sum(),
            "db_logged_lock_time_s": np.nansum(locks[rows]) if np.isfinite(locks[rows]).any() else float("nan"),
            "db_logged_calls_count": len(rows),
            "db_logged_rows_examined_count": known.mean() if len(known) else float("nan"),
            "db_logged_rows_returned_count": sent[rows].mean(),
        }
        for metric, value in sums.items():
            if request.wants(metric) and np.isfinite(value):
                builder.add_series(metric, statement, end, np.array([value]), interval_s=length_s)
