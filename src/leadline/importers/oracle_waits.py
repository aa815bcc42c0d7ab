r"""What an Oracle database waits for, as selected from its views in SQL*Plus, SQLcl or SQL Developer and pasted.

Reads:
    ``v$system_event``, ``v$session_event``, ``v$event_histogram``, ``v$filestat`` and ``v$iostat_file`` (also ``gv$``
    and ``dba_hist``), whole or some columns, at one moment or at several: below headings that are underlined, in pages,
    with rows over several lines, with prompts and statements around them, or with separators between the columns.
    Means and sums that were rounded and renamed, where the name says the unit (``avg_wait_ms``).

Sample:
    .. code-block:: text

        SQL> select event, total_waits, time_waited, average_wait from v$system_event;

        EVENT                                    TOTAL_WAITS TIME_WAITED AVERAGE_WAIT
        ---------------------------------------- ----------- ----------- ------------
        db file sequential read                      1530705     2907998         1.90
        log file sync                                  42804       68290         1.60

Lost:
    Waits of idle sessions, all but the longest twenty others. Rows that do not fit their heading, and rows whose mean
    is not their sum by their count (a unit that was changed without the name). Columns whose unit is not known.

Units:
    The views count since the instance was started (``v$session_event``: since each session logged on). One sample
    becomes facts: means since then. Between two samples of an event, the difference makes a mean, and with their times
    (a column or a line of SYSDATE) the number of sessions that waited. TIME_WAITED and AVERAGE_WAIT are hundredths of a
    second. Of a histogram each wait counts as the least its bucket holds, so its means are too low. Where no wait event
    tells, single-block reads are those of ``v$filestat`` (SINGLEBLKRDTIM, else READTIM) or ``v$iostat_file``.

Sources:
    Oracle Database Reference: V$SYSTEM_EVENT, V$SESSION_EVENT, V$EVENT_HISTOGRAM, V$FILESTAT, V$IOSTAT_FILE. SQL*Plus
    User's Guide and Reference. Real outputs that were looked at: notes and scripts in public repositories that print
    v$system_event with tabs, with rows cut by the page, with averages alone and with TIME_WAITED_SECONDS.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times, to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.oracle.reports import is_idle_event
from leadline.formats.oracle.shell_tables import ShellTable, has_decimal_comma, shell_moment, shell_tables
from leadline.formats.oracle.wait_columns import (
    FILES,
    HISTOGRAM,
    NOW,
    WAITS,
    WaitRow,
    file_rows,
    histogram_row,
    table_kind,
    time_cell,
    wait_row,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="Oracle wait events",
    layers=(Layer.DATABASE,),
    fields={
        "db file sequential read": Field("db_data_read_latency_ms", "ms"),
        "log file parallel write": Field("db_log_write_latency_ms", "ms"),
        "log file sync": Field("db_commit_wait_ms", "ms"),
        "TIME_WAITED": Field("db_wait_event_sessions_count", "count"),
        "enq: TX - row lock contention": Field("db_blocked_sessions_count", "count"),
    },
    record="select systimestamp now, event, total_waits, time_waited_micro, wait_class from v$system_event; twice",
    marks=(
        "total_waits", "time_waited", "average_wait", "wait_time_mi", "total waits", "phyrds", "singleblkrds",
        "small_read_reqs", "small_sync_read_reqs", "small_write_reqs",
    ),
)  # fmt: skip

_SERVER = Entity(EntityKind.DATABASE, "oracle", UNNAMED_GUEST)
_SINGLE_BLOCK_READS = ("db file sequential read", "cell single block physical")
_LOG_WRITE, _COMMIT = ("log file parallel write",), ("log file sync",)
_ROW_LOCKS = ("enq: TX - row lock cont", "enq: TM - contention", "enq: UL - contention")
_NO_WAITS = ("DB CPU", "background cpu time", "CPU")
_BACKGROUND = (
    "log file parallel", "log file seq", "log file single", "db file parallel write", "db file async", "control file",
    "LGWR", "Log archive", "RMAN", "ARCH", "ASM", "recovery", "target log write",
)  # fmt: skip
_ON_DISK = ("db file ", "direct path ", "cell ", "read by other session", "log file sync")
_KEPT_MAX = 20
_WAITS_MIN = 100  # Judgement: a mean of fewer waits since the start is an accident
_EVENTS_MIN = 5  # Judgement: of fewer events that were selected nothing tells a share
_MINUTE_S = 60.0


@dataclass(slots=True)
class _Counted:
    """Waits for one event at one moment, of all sessions and instances; ``mean_ms`` where only that is printed."""

    count: float = 0.0
    total_ms: float = 0.0
    mean_ms: float = math.nan
    wait_class: str = ""

    def add(self, row: WaitRow) -> None:
        if math.isfinite(row.total_ms):
            self.count += row.count if math.isfinite(row.count) else math.nan
            self.total_ms += row.total_ms
        else:
            self.mean_ms = row.mean_ms
        self.wait_class = row.wait_class


_Events = dict[str, _Counted]


@dataclass(slots=True)
class _Moment:
    """What was counted at one moment: by event, and by event of histograms, and by kind of access to files."""

    kinds: dict[str, _Events] = field(default_factory=lambda: defaultdict(dict))

    def events(self) -> _Events:
        """Waits by event; of histograms only the events that are nowhere else."""
        return {**self.kinds.get(HISTOGRAM, {}), **self.kinds.get(WAITS, {})}


def sniff(source: Source) -> int:
    """Sure by the columns of the views."""
    tables, _ = shell_tables(source.head_uncut.splitlines()[:2000], lambda columns: table_kind(columns) is not None)
    return 92 if any(table_kind(table.columns) != NOW for table in tables) else 0


def read(source: Source, request: Request) -> Capture:
    """The views as series between samples, or as facts of one.

    Raises:
        InputError: there is no row of numbers below the heading of a view.
    """
    builder = CaptureBuilder(source.name, "oracle-waits", META.tool)
    tables, left_out = shell_tables(source.lines(), lambda columns: table_kind(columns) is not None)
    reader = _Reader(request, has_decimal_comma(tables), left_out)
    for table in tables:
        reader.take(table)
    if reader.left_out:
        builder.warn("damaged-rows", "rows that do not fit their heading were left out", reader.left_out)
    if reader.refused:
        builder.warn("units", "rows were left out whose numbers do not fit the units of their names", reader.refused)
    moments = reader.moments
    if not moments:
        raise InputError(
            source.name,
            found="no row of numbers below the heading of a view of waits",
            expected="EVENT, TOTAL_WAITS, TIME_WAITED or AVERAGE_WAIT of v$system_event, with their rows",
            advice=f"Select them again: {META.record}",
        )
    if any(HISTOGRAM in moment.kinds for moment in moments.values()):
        builder.warn("histogram", "each wait of a histogram counts as the least its bucket holds: means are too low")
    builder.inventory.add(_SERVER, source.name, engine="oracle")
    zoned = reader.is_zoned or request.timezone is not None
    has_times = all(key > 10**6 for key in moments)
    samples = [moments[key] for key in sorted(moments)]
    is_measured = False
    if len(samples) > 1:
        if has_times:
            times = np.array(sorted(moments), dtype=np.int64)
            if not zoned:
                builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
        else:
            builder.warn("no-times", "samples have no times (select SYSTIMESTAMP); they were taken as a minute apart")
            times = synthetic_times(len(samples), _MINUTE_S, source.mtime_ns)
        is_measured = _add_series(samples, times, builder, request, has_times=has_times)
    if not is_measured:
        builder.warn("one-sample", "means since the start of the instance; select twice to see the time between")
        _add_facts(samples[-1], builder)
    return builder.build(clock_known=has_times and zoned and len(samples) > 1)


@dataclass(slots=True)
class _Reader:
    """Sorts rows of tables by the moment they were selected: UTC nanoseconds, or a number where there are no times."""

    request: Request
    decimal_comma: bool
    left_out: int
    refused: int = 0
    is_zoned: bool = True
    moments: dict[int, _Moment] = field(default_factory=lambda: defaultdict(_Moment))
    now: int | None = None
    numbers: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seen: dict[str, set[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(set))

    def take(self, table: ShellTable) -> None:
        """Keep the rows of a table."""
        kind = table_kind(table.columns) or NOW
        for cells in table.rows:
            row = dict(zip(table.columns, cells, strict=True))
            if kind == NOW:
                self.now = self._time(cells[0])
                self.seen.clear()
                continue
            printed = time_cell(row)
            key = self._time(printed) if printed is not None else self.now
            if printed is not None and key is None:
                self.left_out += 1
                continue
            rows = self._rows(kind, row)
            if not rows:
                self.refused += self._has_numbers(row)
                self.left_out += not self._has_numbers(row)
            for one in rows:
                self._keep(kind, one, key, is_own=printed is not None)

    def _rows(self, kind: str, row: dict[str, str]) -> list[WaitRow]:
        if kind == FILES:
            return file_rows(row, decimal_comma=self.decimal_comma)
        one = (wait_row if kind == WAITS else histogram_row)(row, decimal_comma=self.decimal_comma)
        return [] if one is None else [one]

    def _has_numbers(self, row: dict[str, str]) -> bool:
        return sum(cell[-1:].isdigit() for cell in row.values()) > 2

    def _keep(self, kind: str, row: WaitRow, key: int | None, *, is_own: bool) -> None:
        if not is_own:
            if row.key in self.seen[kind]:  # selected once more, without a time between
                self.seen[kind].clear()
                self.numbers[kind] += 1
                key = self.now = None
            self.seen[kind].add(row.key)
        moment = self.moments[self.numbers[kind] if key is None else key]
        moment.kinds[kind].setdefault(row.event, _Counted()).add(row)

    def _time(self, text: str) -> int | None:
        moment = shell_moment(text)
        if moment is None:
            return None
        self.is_zoned &= moment.tzinfo is not None
        return to_ns(moment, self.request)


def _mean_ms(events: _Events, names: tuple[str, ...], least: float = 0.0) -> float:
    """The mean of waits whose names begin so; NaN where there are none, or fewer than the least number."""
    chosen = [one for name, one in events.items() if name.startswith(names)]
    count = sum(one.count for one in chosen)
    if count > 0:
        return sum(one.total_ms for one in chosen) / count if count >= least else math.nan
    return next((one.mean_ms for one in chosen if math.isfinite(one.mean_ms)), math.nan)


def _read_and_write_ms(moment: _Moment, least: float = 0.0) -> tuple[float, float]:
    """Means of single-block reads and of writes of the log; of files where no event tells."""
    files = moment.kinds.get(FILES, {})
    reads = (
        _mean_ms(moment.events(), _SINGLE_BLOCK_READS, least),
        *(_mean_ms(files, (n,), least) for n in ("single", "read")),
    )
    writes = (_mean_ms(moment.events(), _LOG_WRITE, least), _mean_ms(files, ("write",), least))
    first = [next((value for value in values if math.isfinite(value)), math.nan) for values in (reads, writes)]
    return first[0], first[1]


def _is_idle(name: str, one: _Counted) -> bool:
    return one.wait_class == "idle" or is_idle_event(name) or name in _NO_WAITS


def _add_facts(moment: _Moment, builder: CaptureBuilder) -> None:
    """Add means since the start of the instance."""
    events = moment.events()
    read_ms, write_ms = _read_and_write_ms(moment, _WAITS_MIN)
    waits = {
        name: one.total_ms
        for name, one in events.items()
        if not _is_idle(name, one) and not name.startswith(_BACKGROUND) and one.wait_class != "system i/o"
    }
    disk = sum(total for name, total in waits.items() if name.startswith(_ON_DISK))
    whole = sum(waits.values()) if len(waits) >= _EVENTS_MIN else 0.0
    facts = {
        "read_ms_since_start": read_ms,
        "log_write_ms_since_start": write_ms,
        "commit_wait_ms_since_start": _mean_ms(events, _COMMIT, _WAITS_MIN),
        "disk_wait_share_since_start": disk / whole if whole > 0 else math.nan,
    }
    known: dict[str, Any] = {name: round(value, 3) for name, value in facts.items() if math.isfinite(value)}
    builder.inventory.add(_SERVER, builder.info.name, **known)


def _add_series(
    samples: list[_Moment], times: NDArray[np.int64], builder: CaptureBuilder, request: Request, *, has_times: bool
) -> bool:
    """Add what was counted between samples; whether there is any such."""
    seconds = np.diff(times) / 1e9
    series: dict[tuple[str, Entity], list[float]] = defaultdict(lambda: [math.nan] * len(times))
    spent: dict[str, list[float]] = defaultdict(lambda: [math.nan] * len(times))
    steps = [_risen(before, after) for before, after in pairwise(samples)]
    fallen = sum(step is None for step in steps)
    is_interval = fallen > 1 and 3 * fallen >= len(steps)  # a query that computed the differences
    for place, step in enumerate(steps, 1):
        moment = samples[place] if is_interval else step
        if moment is None:
            builder.warn("reset", "counts fell: the instance was started again, that interval is not measured")
            continue
        events = moment.events()
        means = (*_read_and_write_ms(moment), _mean_ms(events, _COMMIT))
        for name, value in zip(
            ("db_data_read_latency_ms", "db_log_write_latency_ms", "db_commit_wait_ms"), means, strict=True
        ):
            series[name, _SERVER][place] = value
        working = {name: one for name, one in moment.kinds.get(WAITS, {}).items() if not _is_idle(name, one)}
        if has_times and working and seconds[place - 1] > 0:
            per_second = 1000.0 * seconds[place - 1]
            blocked = sum(one.total_ms for name, one in working.items() if name.startswith(_ROW_LOCKS))
            series["db_blocked_sessions_count", _SERVER][place] = blocked / per_second
            for name, one in working.items():
                spent[name][place] = one.total_ms / per_second
    for name in sorted(spent, key=lambda name: -np.nansum(spent[name]))[:_KEPT_MAX]:
        if np.nansum(spent[name]) > 0:
            series["db_wait_event_sessions_count", Entity(EntityKind.DATABASE, name, _SERVER)] = spent[name]
    for (metric, entity), values in series.items():
        if request.wants(metric) and np.isfinite(values).any():
            builder.add_series(metric, entity, times, np.array(values))
    return any(np.isfinite(values).any() for values in series.values())


def _risen(before: _Moment, after: _Moment) -> _Moment | None:
    """By how much the counts of events rose that are in both samples; None where one fell."""
    risen = _Moment()
    for kind, events in after.kinds.items():
        for name, now in events.items():
            was = before.kinds[kind].get(name) if kind in before.kinds else None
            if was is None or not (math.isfinite(now.total_ms) and now.total_ms + was.total_ms > 0):
                continue
            count, total_ms = now.count - was.count, now.total_ms - was.total_ms
            if count < 0 or total_ms < 0:
                return None
            risen.kinds[kind][name] = _Counted(count, total_ms, math.nan, now.wait_class)
    return risen
