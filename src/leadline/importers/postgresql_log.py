r"""What a PostgreSQL server wrote to its log: errors, a full disk, checkpoints, temporary files, lock waits, durations.

Reads:
    The server's log in its text form (``log_destination = stderr``), with any ``log_line_prefix`` that begins with a
    time (``%m`` or ``%t``), as the default and pgBadger's do.

Sample:
    .. code-block:: text

        2026-11-23 23:11:18.810 UTC [10139] ERROR:  could not extend file "base/16384/18899": No space left on device
        2026-11-23 23:11:18.810 UTC [10139] HINT:  Check free disk space.
        2026-11-23 23:11:54.590 UTC [4500] LOG:  checkpoint starting: wal
        2026-11-23 23:12:11.224 UTC [4500] LOG:  temporary file: path "base/pgsql_tmp/pgsql_tmp4492.0", size 7176192

Lost:
    Lines before the first time, and what a line says beside these events. Messages in other languages than English
    (``lc_messages``): their levels are not known, and a log without a known level is refused. The forms csvlog and
    jsonlog. What the server was not told to log is not measured: checkpoints (``log_checkpoints``), temporary files
    (``log_temp_files``), lock waits (``log_lock_waits``), durations of statements (``log_min_duration_statement``),
    autovacuum (``log_autovacuum_min_duration``) and log-ons (``log_connections``) are there from the first line of
    their kind. Of a statement only the verb and the first table are kept.

Units:
    Events per second and bytes per second, counted in whole seconds from the first line to the last; in longer
    steps where the log covers more than a day. A lock wait is told in milliseconds, the mean of those that a line
    names. Sessions that wait for a lock are counted from the wait's begin to its end, where both are logged: those
    that wait longer than ``deadlock_timeout``, so that there are at least as many. The times of a checkpoint's sync
    are told in each second that it took, those of its writes in the second in which it ended. A duration is told in
    milliseconds, the mean of the statements that ended. Sessions at work are counted from each one's begin to its
    end; there are at least as many.

Sources:
    PostgreSQL 12 to 18 documentation, chapter "Error Reporting and Logging"; the server's message texts in
    ``src/backend`` (``xlog.c``, ``fd.c``, ``proc.c``, ``postinit.c``, ``md.c``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from leadline._core import CoreError, PostgresqlLog
from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import where
from leadline.formats.logged_lock_waits import blocked_counts, by_holder, line_time, logged_waits
from leadline.formats.logged_statements import LoggedSpan, at_work, logged_spans, longest
from leadline.formats.stamps import YEARS

META = ImporterMeta(
    tool="PostgreSQL log",
    layers=(Layer.DATABASE,),
    fields={
        "ERROR|FATAL|PANIC": Field("db_errors_per_s", "per_s"),
        "No space left on device": Field("db_out_of_space_errors_per_s", "per_s"),
        "checkpoint starting: time": Field("db_checkpoints_timed_per_s", "per_s"),
        "checkpoint starting": Field("db_checkpoints_requested_per_s", "per_s"),
        "checkpoint complete: write": Field("db_checkpoint_write_ms", "s"),
        "checkpoint complete: sync": Field("db_checkpoint_sync_ms", "s"),
        "checkpoint complete: longest": Field("db_checkpoint_sync_longest_ms", "s"),
        "temporary file": Field("db_temp_bytes_per_s", "bytes_per_s"),
        "connection received": Field("db_logons_per_s", "per_s"),
        "waiting|acquired ... after": Field("db_lock_wait_ms", "ms"),
        "still waiting ... acquired": Field("db_logged_lock_waits_count", "count"),
        "Process holding the lock": Field("db_logged_sessions_behind_count", "count"),
        "duration": Field("db_logged_statement_ms", "ms"),
        "duration ... COMMIT": Field("db_logged_commit_ms", "ms"),
        "duration, statement": Field("db_logged_statement_sessions_count", "count"),
        "automatic vacuum": Field("db_autovacuums_per_s", "per_s"),
        "automatic vacuum, elapsed": Field("db_worker_sessions_count", "count"),
    },
    record="grep -h . /var/log/postgresql/postgresql-*.log > postgresql.log",
)

_LEVELS = "DEBUG[1-5]?|INFO|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC|STATEMENT|DETAIL|HINT|CONTEXT|QUERY|LOCATION"
_LINE = re.compile(
    r"(?:19|20)\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? (?:[A-Z]{1,5}|[+-]\d\d(?::?\d\d)?)\b"
    rf".{{0,300}}?(?<![A-Za-z])(?:{_LEVELS}):  "
)
_ZONE_OFFSET = {"UTC": "+00:00", "GMT": "+00:00", "Z": "+00:00"}
_SYNC = "db_checkpoint_sync_ms"
_ALWAYS_LOGGED = ("db_errors_per_s", "db_out_of_space_errors_per_s")
_METRICS = {
    "error": "db_errors_per_s",
    "out-of-space": "db_out_of_space_errors_per_s",
    "timed-checkpoint": "db_checkpoints_timed_per_s",
    "requested-checkpoint": "db_checkpoints_requested_per_s",
    "connection": "db_logons_per_s",
    "temporary-file": "db_temp_bytes_per_s",
    "lock-wait": "db_lock_wait_ms",
    "statement": "db_logged_statement_ms",
    "commit": "db_logged_commit_ms",
    "autovacuum": "db_autovacuums_per_s",
    "checkpoint-write": "db_checkpoint_write_ms",
    "checkpoint-sync": _SYNC,
    "checkpoint-longest": "db_checkpoint_sync_longest_ms",
}
_LOGGED_AT_END = frozenset({"db_logged_statement_ms", "db_logged_commit_ms", "db_autovacuums_per_s"})
_WORK_COUNTS = ("db_logged_statement_sessions_count", "db_worker_sessions_count")
_LOCK_COUNTS = ("db_logged_lock_waits_count", "db_logged_sessions_behind_count")
_CLOCK_CHANGE_S = 900  # the clocks of all zones change at a quarter of an hour
_STEPS_MAX = 86_400
_NS_PER_S = 1_000_000_000
_MS_PER_S = 1000.0
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # UTF-16
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - on a clock whose zone is not known
_Events = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
_NO_EVENT: _Events = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
_CLUSTER = Entity(EntityKind.DATABASE, "postgresql", UNNAMED_GUEST)


def sniff(source: Source) -> int:
    """Sure by the first lines that carry a time and a level with two spaces after its colon."""
    lines = [line for line in source.head_text.splitlines()[:60] if line.strip()]
    matches = sum(1 for line in lines if _LINE.match(line))
    return 90 if matches and matches * 4 >= len(lines) else 0


def read(source: Source, request: Request) -> Capture:
    """The database's series, a value for each second from the first line to the last.

    Raises:
        InputError: no line is one of the server's.
    """
    builder = CaptureBuilder(source.name, "postgresql-log", META.tool)
    log = _opened(source)
    clocks = [_Clock(zone, request) for zone, _, _ in log.zones]
    ends = [clock.utc_s(np.array([first, last])) for clock, (_, first, last) in zip(clocks, log.zones, strict=True)]
    spans = [span for span in ends if span is not None]
    if not spans:
        raise InputError(
            source.name,
            found="no line with a time and a level, such as 'LOG:  '",
            expected="a PostgreSQL log in English, its lines beginning with the time",
            advice="Set log_line_prefix = '%m [%p] ' and lc_messages = 'C', or give the log of another time.",
        )
    unknown = sorted(clock.zone for clock in clocks if not clock.is_known)
    if unknown:
        zone = "UTC; --timezone sets it" if request.timezone is None else request.timezone
        builder.warn("no-zone", f"times are in {', '.join(unknown)}, which names no offset, and were taken as {zone}")
    builder.inventory.add(_CLUSTER, source.name, engine="postgresql")
    events = _events(log, clocks)
    _tell_while_it_syncs(events, min(int(span.min()) for span in spans))
    seconds = np.concatenate([*spans, *(second for second, _, _ in events.values())])
    first = int(seconds.min())
    step_s = -(-(int(seconds.max()) - first + 1) // _STEPS_MAX)
    step_count = (int(seconds.max()) - first) // step_s + 1
    times = (first + step_s * np.arange(1, step_count + 1, dtype=np.int64)) * _NS_PER_S
    for metric in dict.fromkeys((*_ALWAYS_LOGGED, *events)):
        if request.wants(metric):
            values = _by_step(metric, events.get(metric, _NO_EVENT), first, step_s, step_count)
            builder.add_series(metric, _CLUSTER, times, values, interval_s=step_s)
    walk = _Walk(source, request, builder)
    if "db_lock_wait_ms" in events:
        walk.add_lock_waits(first, step_s, times)
    if not _LOGGED_AT_END.isdisjoint(events):
        walk.add_work(first, step_s, int(times[-1]) // _NS_PER_S)
    return builder.build(clock_known=not unknown or request.timezone is not None)


def _lines(source: Source) -> Iterator[str]:
    """The lines of a log, one after the other: a busy server's log is larger than memory."""
    if source.head.startswith(_WIDE):
        yield from source.lines()
        return
    with source.path.open(encoding="utf-8", errors="replace") as stream:
        yield from stream


class _Walk:
    """What needs the texts of lines, which are read one after the other."""

    def __init__(self, source: Source, request: Request, builder: CaptureBuilder) -> None:
        self._source, self._request, self._builder = source, request, builder
        self._clocks: dict[str, _Clock] = {}

    def _utc_s(self, stamp: str, zone: str) -> float | None:
        try:
            moment = datetime.fromisoformat(stamp)
        except ValueError:  # a damaged line
            return None
        local = np.array([(moment - _EPOCH).total_seconds()], dtype=np.int64)
        second = self._clocks.setdefault(zone, _Clock(zone, self._request)).utc_s(local)
        return None if second is None else float(second[0])

    def add_lock_waits(self, first: int, step_s: int, times: NDArray[np.int64]) -> None:
        """Add the sessions that waited for locks, in all and behind each holder; ``times`` [n] end the steps."""
        wanted = [metric for metric in _LOCK_COUNTS if self._request.wants(metric)]
        if not wanted:
            return
        waits = logged_waits(_lines(self._source), self._utc_s)
        series = [(_LOCK_COUNTS[0], _CLUSTER, waits)]
        for name, behind in by_holder(waits).items():
            series.append((_LOCK_COUNTS[1], Entity(EntityKind.SESSION, name, _CLUSTER), behind))
        for metric, entity, some in series:
            if metric in wanted:
                counts = blocked_counts(some, first, step_s, len(times))
                self._builder.add_series(metric, entity, times, counts, interval_s=step_s)

    def add_work(self, first: int, step_s: int, last: int) -> None:
        """Add the statements and vacuums that were at work, from the begin of the first of them."""
        wanted = [metric for metric in _WORK_COUNTS if self._request.wants(metric)]
        if not wanted:
            return
        names, begin_s = longest(self._spans())
        if not names:
            return
        begin = min(first, max(int(begin_s), last - _STEPS_MAX * step_s))
        count = -(-(last - begin) // step_s)
        times = (last - step_s * np.arange(count, dtype=np.int64)[::-1]) * _NS_PER_S
        counts = at_work(self._spans(), names, last - count * step_s, step_s, count)
        for (name, is_worker), values in counts.items():
            metric = _WORK_COUNTS[is_worker]
            if metric in wanted:
                kind = EntityKind.SESSION if is_worker else EntityKind.STATEMENT
                self._builder.add_series(metric, Entity(kind, name, _CLUSTER), times, values, interval_s=step_s)

    def _spans(self) -> Iterator[LoggedSpan]:
        return logged_spans(_lines(self._source), lambda line: line_time(line, self._utc_s))


def _opened(source: Source) -> PostgresqlLog:
    years = (YEARS[0], YEARS[-1])
    try:
        if source.head.startswith(_WIDE):
            return PostgresqlLog.from_bytes(source.text().encode(), source.name, years)
        return PostgresqlLog.open(source.path, source.name, years)
    except CoreError as error:
        raise InputError(error.where, found=error.found, expected=error.expected, advice=error.advice) from error


class _Clock:
    """The clock of a zone that a log prints.

    Attributes:
        zone: as printed.
        is_known: whether the zone names an offset.
    """

    def __init__(self, zone: str, request: Request) -> None:
        self.zone = zone
        self._offset = _ZONE_OFFSET.get(zone, zone)
        self._request = request
        self.is_known = self._offset[0] in "+-"

    def utc_s(self, seconds: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """UTC seconds [k] of seconds [k] of this clock; None when there is no such offset."""
        if self.is_known:
            try:
                offset = datetime.fromisoformat(f"2000-01-01 00:00:00{self._offset}").utcoffset()
            except ValueError:
                return None
            return seconds - round((offset or timedelta()).total_seconds())
        quarters, index = np.unique(seconds // _CLOCK_CHANGE_S, return_inverse=True)
        moments = [_EPOCH + timedelta(seconds=int(quarter) * _CLOCK_CHANGE_S) for quarter in quarters]
        starts = np.array([to_ns(moment, self._request) // _NS_PER_S for moment in moments], dtype=np.int64)
        utc: NDArray[np.int64] = starts[index] + seconds % _CLOCK_CHANGE_S
        return utc


def _events(log: PostgresqlLog, clocks: list[_Clock]) -> dict[str, _Events]:
    """Of each metric the UTC seconds int64 [k] with an event, how many each has, and the sums of their values."""
    events: dict[str, _Events] = {}
    for kind, zone_index, second, count, total in log.events:
        by_zone = []
        for index in np.unique(zone_index):
            chosen = zone_index == index
            utc_s = clocks[index].utc_s(second[chosen])
            if utc_s is not None:
                by_zone.append((utc_s, count[chosen].astype(np.float64), total[chosen]))
        if by_zone:
            seconds, counts, totals = (np.concatenate(columns) for columns in zip(*by_zone, strict=True))
            events[_METRICS[kind]] = (seconds, counts, totals)
    return events


def _tell_while_it_syncs(events: dict[str, _Events], first: int) -> None:
    """Tell the times of a checkpoint's sync, which ends when its line is written, in each second it took."""
    ends, counts, totals = events.get(_SYNC, _NO_EVENT)
    lengths = np.ceil(totals / counts / _MS_PER_S).astype(np.int64)
    length_at = dict(zip(ends.tolist(), np.clip(lengths, 1, _STEPS_MAX).tolist(), strict=True))
    for metric in (_SYNC, "db_checkpoint_sync_longest_ms"):
        if metric not in events:
            continue
        seconds, counts, totals = events[metric]
        repeats = np.array([length_at.get(second, 1) for second in seconds.tolist()], dtype=np.int64)
        back = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        in_sync = np.repeat(seconds, repeats) - back
        inside = in_sync >= first
        events[metric] = (in_sync[inside], np.repeat(counts, repeats)[inside], np.repeat(totals, repeats)[inside])


def _by_step(metric: str, events: _Events, first: int, step_s: int, step_count: int) -> NDArray[np.float64]:
    """Values [n] of a metric: the mean of what lines name, or what happened per second."""
    seconds, counts, totals = events
    places = (seconds - first) // step_s
    sums = np.bincount(places, weights=totals, minlength=step_count)
    if metric.endswith("_ms"):
        number = np.bincount(places, weights=counts, minlength=step_count)
        return where(number > 0, sums / np.maximum(number, 1.0))
    per_s: NDArray[np.float64] = sums / step_s
    return per_s
