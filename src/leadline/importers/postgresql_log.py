r"""What a PostgreSQL server wrote to its log: errors, full disks, checkpoints, lock waits, durations, changed settings.

Reads:
    The server's log in all its forms: text (``log_destination = stderr``) with any ``log_line_prefix`` that has a time
    (``%m``, ``%t`` or ``%n``), csvlog, jsonlog and syslog (RFC 3164, RFC 5424, journalctl), with names of months in
    most languages of Europe, and what Docker, Kubernetes, Heroku and the clouds make of the text: a time before each
    line, or JSON with the line as "message", "textPayload" or "log". Which form it is shows in its lines. Messages are
    read in English, German, French and Spanish (``lc_messages``).

Sample:
    .. code-block:: text

        2026-11-23 23:11:18.810 UTC [10139] ERROR:  could not extend file "base/16384/18899": No space left on device
        2026-11-23 23:11:18.810 UTC [10139] HINT:  Check free disk space.
        2026-11-23 23:11:54.590 UTC [4500] LOG:  checkpoint starting: wal
        2026-11-23 23:12:11.224 UTC [4500] LOG:  temporary file: path "base/pgsql_tmp/pgsql_tmp4492.0", size 7176192

Lost:
    Lines before the first time, and what a line says beside these events. Messages in further languages: their levels
    are not known, and a log without a known level is refused. Lines without a time, where nothing put one before them,
    are left out; a log that has no other is refused. Lock waits of a log that goes backwards, as the clouds' queries
    print it, have no end. Where a web page printed one blank for two, entries are known by the words they begin with.

    What the server was not told to log is not measured: checkpoints (``log_checkpoints``), temporary files
    (``log_temp_files``), lock waits (``log_lock_waits``), durations of statements (``log_min_duration_statement``),
    autovacuum (``log_autovacuum_min_duration``) and log-ons (``log_connections``) are there from the first line of
    their kind. Of a statement only the verb and the first table are kept. Settings that were changed are told with
    their values where these are numbers, switches or words of a fixed list; of others only the name is kept.

Units:
    Events per second and bytes per second, counted in whole seconds from the first line to the last; in longer steps
    where the log covers more than a day. A lock wait is told in milliseconds, the mean of those that a line names.
    Sessions that wait for a lock are counted from the wait's begin to its end, where both are logged: those that wait
    longer than ``deadlock_timeout``, so that there are at least as many. The times of a checkpoint's sync are told in
    each second that it took, those of its writes in the second in which it ended. A duration is told in milliseconds,
    the mean of the statements that ended. Sessions at work are counted from each one's begin to its end; there are at
    least as many. Syslog has no year: the last is taken in which no line is later than the file, or that of --date.

Sources:
    PostgreSQL 12 to 18 documentation, chapter "Error Reporting and Logging"; the server's message texts in
    ``src/backend`` (``xlog.c``, ``fd.c``, ``proc.c``, ``postinit.c``, ``md.c``, ``guc-file.l`` and ``guc.c``;
    ``elog.c``, ``csvlog.c`` and ``jsonlog.c`` for the forms; ``po`` for the languages). Heroku Dev Center, "Heroku
    Postgres logs". glibc's locales for the names of months.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from leadline._core import CoreError, PostgresqlLog
from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import where
from leadline.formats.logged_lock_waits import LoggedWait, blocked_counts, by_holder, queue_counts
from leadline.formats.logged_settings import LoggedSetting, changes_of, setting_facts
from leadline.formats.logged_statements import LoggedWork, at_work
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
        "checkpoints are occurring too frequently": Field("db_checkpoint_apart_ms", "s"),
        "temporary file": Field("db_temp_bytes_per_s", "bytes_per_s"),
        "connection received": Field("db_logons_per_s", "per_s"),
        "waiting|acquired ... after": Field("db_lock_wait_ms", "ms"),
        "still waiting ... acquired": Field("db_logged_lock_waits_count", "count"),
        "Process holding the lock": Field("db_logged_sessions_behind_count", "count"),
        "Wait queue": Field("db_logged_lock_queue_count_max", "count"),
        "duration": Field("db_logged_statement_ms", "ms"),
        "duration, lines": Field("db_logged_statements_per_s", "per_s"),
        "duration ... COMMIT": Field("db_logged_commit_ms", "ms"),
        "duration, statement": Field("db_logged_statement_sessions_count", "count"),
        "automatic vacuum": Field("db_autovacuums_per_s", "per_s"),
        "automatic vacuum, elapsed": Field("db_worker_sessions_count", "count"),
        "parameter ... changed to": Field("db_setting_changes_per_s", "per_s"),
    },
    record="grep -h . /var/log/postgresql/postgresql-*.log > postgresql.log",
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
    "checkpoint-too-soon": "db_checkpoint_apart_ms",
}
_WORK_COUNTS = ("db_logged_statement_sessions_count", "db_worker_sessions_count")
_LOCK_COUNTS = ("db_logged_lock_waits_count", "db_logged_sessions_behind_count")
_LOCK_QUEUE = "db_logged_lock_queue_count_max"
_SNIFFED_LINES = 60
_TIMELESS = re.compile(
    rb"^(?:\S.{0,100})?\bLOG: {1,2}(?:checkpoint |database |duration: |connection |process \d|starting |statement: )",
    re.M,
)
_YEARS = (YEARS[0], YEARS[-1])
_LAST_DAY = (YEARS[-1], 12, 31)
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
    """Sure by the first lines that carry a level with two spaces after its colon, or are records of the server."""
    head = source.head_uncut.encode() if source.head.startswith(_WIDE) else source.head
    log = PostgresqlLog.from_bytes(b"\n".join(head.split(b"\n")[:_SNIFFED_LINES]), source.name, _YEARS, _LAST_DAY)
    if log.sure_count and log.entry_count * 4 >= log.entry_count + log.other_count:
        return 90
    return 90 if log.timeless_count > log.other_count and _TIMELESS.search(head) else 0


def read(source: Source, request: Request) -> Capture:
    """The database's series, a value for each second from the first line to the last.

    Raises:
        InputError: no line is one of the server's.
    """
    builder = CaptureBuilder(source.name, "postgresql-log", META.tool)
    log = _opened(source, request)
    clocks = [_Clock(zone, request) for zone, _, _ in log.zones]
    ends = [clock.utc_s(np.array([first, last])) for clock, (_, first, last) in zip(clocks, log.zones, strict=True)]
    spans = [span for span in ends if span is not None]
    if not spans:
        raise InputError(
            source.name,
            found="no line with a time and a level, such as 'LOG:  '"
            if not log.timeless_count
            else f"no line with a time, and {log.timeless_count} with a level",
            expected="a PostgreSQL log in English, German, French or Spanish with the time in its lines",
            advice="Set log_line_prefix = '%m [%p] ' and lc_messages = 'C', or give the log of another time.",
        )
    _warn(log, builder)
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
    if "db_lock_wait_ms" in events:
        _add_lock_waits(builder, request, _lock_waits(log, clocks), times, step_s)
    _add_settings(builder, request, _settings(log, clocks), times, step_s)
    works = _works(log, clocks)
    if works:
        _add_work(builder, request, works, first, step_s, int(times[-1]) // _NS_PER_S)
    clock_known = not (unknown or log.is_yearless) or request.timezone is not None
    return builder.build(clock_known=clock_known)


def _warn(log: PostgresqlLog, builder: CaptureBuilder) -> None:
    """Name what was left out, and what was taken for granted."""
    if log.is_yearless:
        builder.warn("no-year", "times have no year; the last was taken that fits the file's change; --date sets it")
    for code, count, kind in (
        ("no-time", log.timeless_count, "with a level and no time that can be read"),
        ("other-lines", log.other_count, "that are not the server's"),
        ("damaged-lines", log.damaged_count, "of damaged JSON"),
    ):
        if count:
            builder.warn(code, f"{count} lines {kind} were left out")


def _lock_waits(log: PostgresqlLog, clocks: list[_Clock]) -> list[LoggedWait]:
    starts = _moments([(wait[0], wait[1]) for wait in log.lock_waits], clocks)
    ends = _moments([(wait[2], wait[3]) for wait in log.lock_waits], clocks)
    return [
        LoggedWait(start, max(start, end), target, str(holder) if holder else "", count, start + queued_s - start_s)
        for start, end, (_, start_s, _, _, target, holder, queued_s, count) in zip(
            starts.tolist(), ends.tolist(), log.lock_waits, strict=True
        )
        if not np.isnan(start + end)
    ]


def _settings(log: PostgresqlLog, clocks: list[_Clock]) -> list[LoggedSetting]:
    moments = _moments([(zone, second) for zone, second, _, _, _ in log.settings], clocks).tolist()
    return [
        LoggedSetting(moment, name, setting, is_reset)
        for moment, (_, _, name, setting, is_reset) in zip(moments, log.settings, strict=True)
        if not np.isnan(moment)
    ]


def _moments(moments: list[tuple[int, float]], clocks: list[_Clock]) -> NDArray[np.float64]:
    """UTC seconds [k] of (zone index, seconds on its clock); NaN where there is no such zone."""
    zone_index = np.array([zone for zone, _ in moments], dtype=np.int64)
    seconds = np.array([second for _, second in moments], dtype=np.float64)
    moved = np.full(len(moments), np.nan)
    for index in np.unique(zone_index):
        chosen = zone_index == index
        whole = np.floor(seconds[chosen])
        utc_s = clocks[index].utc_s(whole.astype(np.int64))
        if utc_s is not None:
            moved[chosen] = utc_s + (seconds[chosen] - whole)
    return moved


def _works(log: PostgresqlLog, clocks: list[_Clock]) -> list[LoggedWork]:
    works = []
    for name, is_worker, zone_index, total_s, begin, seconds, whole, part in log.works:
        utc_s = clocks[zone_index].utc_s(seconds)
        begin_s = clocks[zone_index].utc_s(np.array([begin], dtype=np.int64))
        if utc_s is not None and begin_s is not None:
            works.append(LoggedWork(name, is_worker, total_s, int(begin_s[0]), utc_s, whole, part))
    return works


def _add_lock_waits(
    builder: CaptureBuilder, request: Request, waits: list[LoggedWait], times: NDArray[np.int64], step_s: int
) -> None:
    """Add the sessions that waited for locks, in all and behind each holder; ``times`` [n] end the steps.

    A wait that is logged when it ends may have begun before the first line.
    """
    first, last = int(times[0]) // _NS_PER_S - step_s, int(times[-1]) // _NS_PER_S
    begin = min([first, *(math.floor(wait.start_s) for wait in waits)])
    count = min(-(-(last - begin) // step_s), max(_STEPS_MAX, len(times)))
    times = (last - step_s * np.arange(count, dtype=np.int64)[::-1]) * _NS_PER_S
    first = last - count * step_s
    series = [(_LOCK_COUNTS[0], _CLUSTER, waits)]
    for name, behind in by_holder(waits).items():
        series.append((_LOCK_COUNTS[1], Entity(EntityKind.SESSION, name, _CLUSTER), behind))
    for metric, entity, some in series:
        if request.wants(metric):
            counts = blocked_counts(some, first, step_s, len(times))
            builder.add_series(metric, entity, times, counts, interval_s=step_s)
    queues = queue_counts(waits, first, step_s, len(times))
    if request.wants(_LOCK_QUEUE) and np.isfinite(queues).any():
        builder.add_series(_LOCK_QUEUE, _CLUSTER, times, queues, interval_s=step_s)


def _add_settings(
    builder: CaptureBuilder,
    request: Request,
    settings: list[LoggedSetting],
    times: NDArray[np.int64],
    step_s: int,
) -> None:
    """Add the settings that were changed, each value of each a series; ``times`` [n] end the steps."""
    if not request.wants("db_setting_changes_per_s"):
        return
    first = int(times[0]) // _NS_PER_S - step_s
    for name, changes in changes_of(settings).items():
        counts = np.bincount([int(one.at_s - first) // step_s for one in changes], minlength=len(times))
        entity = Entity(EntityKind.SETTING, name, _CLUSTER)
        builder.inventory.add(entity, builder.info.name, **setting_facts(changes[0]))
        builder.add_series("db_setting_changes_per_s", entity, times, counts / step_s, interval_s=step_s)


def _add_work(
    builder: CaptureBuilder, request: Request, works: list[LoggedWork], first: int, step_s: int, last: int
) -> None:
    """Add the statements and vacuums that were at work, from the begin of the first of them."""
    begin = min(first, max(min(work.begin_s for work in works), last - _STEPS_MAX * step_s))
    count = -(-(last - begin) // step_s)
    times = (last - step_s * np.arange(count, dtype=np.int64)[::-1]) * _NS_PER_S
    for (name, is_worker), values in at_work(works, last - count * step_s, step_s, count).items():
        metric = _WORK_COUNTS[is_worker]
        if request.wants(metric):
            kind = EntityKind.SESSION if is_worker else EntityKind.STATEMENT
            builder.add_series(metric, Entity(kind, name, _CLUSTER), times, values, interval_s=step_s)


def _opened(source: Source, request: Request) -> PostgresqlLog:
    day = assumed_date(source, request)
    is_given = request.date is not None
    day = day.replace(month=12, day=31) if is_given else day + timedelta(days=1)  # a day, as clocks of zones differ
    last_day = (day.year, day.month, day.day)
    try:
        if source.head.startswith(_WIDE):
            return PostgresqlLog.from_bytes(source.text().encode(), source.name, _YEARS, last_day)
        return PostgresqlLog.open(source.path, source.name, _YEARS, last_day)
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
    if "db_logged_statement_ms" in events:
        seconds, counts, _ = events["db_logged_statement_ms"]
        events["db_logged_statements_per_s"] = (seconds, counts, counts)
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
