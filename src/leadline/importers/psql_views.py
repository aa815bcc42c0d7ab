r"""Views of PostgreSQL's activity and statistics as psql printed them, once or again with ``\watch``.

Reads:
    ``pg_stat_activity`` of PostgreSQL 8.4 to 18 with any of its columns and ages beside them, ``pg_locks``, lists of
    blocked and blocking processes, ``pg_stat_database``, ``pg_stat_bgwriter``, ``pg_stat_checkpointer``,
    ``pg_stat_wal`` and ``pg_stat_io``: aligned, wrapped, expanded (``\x``), without borders, or as CSV, with or without
    the prompt and the statement above it.

Sample:
    .. code-block:: text

          pid  |        state        | wait_event_type |  wait_event   |          xact_start           |   query
        -------+---------------------+-----------------+---------------+-------------------------------+-----------
          1312 | idle in transaction | Client          | ClientRead    | 2026-11-25 15:08:12.859269+00 | update t set
          1319 | active              | Lock            | transactionid | 2026-11-25 15:08:13.869226+00 | update t set
        (2 rows)

Lost:
    What happened before and after. Literals of statements, users and addresses. Counters of a single snapshot are facts
    and means since the last reset, never rates. How many sessions are in a state that no row shows: a filter of the
    query may have left them out. The session that asks.

Units:
    Ages are seconds until the snapshot. A snapshot without a time was taken at its latest moment or later, so ages are
    at least what is read.

Sources:
    PostgreSQL 8.4 to 18 documentation, "The Cumulative Statistics System" and "pg_locks"; psql reference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.printed_tables import PrintedTable, TableError, printed_tables, table_columns
from leadline.importers._psql_views.counters import COUNTERS, add_counters, view_of
from leadline.importers._psql_views.sessions import ACTIVITY, PrintedSession, latest_of, session_of, utc

if TYPE_CHECKING:
    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="psql",
    layers=(Layer.DATABASE,),
    fields={
        "state = active": Field("db_active_sessions_count", "count"),
        "state = idle in transaction": Field("db_idle_in_transaction_sessions_count", "count"),
        "wait_event_type = Lock": Field("db_blocked_sessions_count", "count"),
        "wait_event": Field("db_wait_event_sessions_count", "count"),
        "query": Field("db_statement_sessions_count", "count"),
        "xact_start": Field("db_transaction_age_s_max", "s"),
        "xact_start, state = idle in transaction": Field("db_idle_transaction_age_s", "s"),
        "state_change, wait_event_type = Lock": Field("db_lock_wait_age_s_max", "s"),
        "blocking_pid": Field("db_sessions_behind_blocker_count", "count"),
        "blk_read_time / blks_read": Field("db_data_read_latency_ms", "ms"),
        "blks_hit": Field("db_buffer_hit_pct", "pct"),
    },
    record=r"psql -c '\x' -c 'SELECT now(), * FROM pg_stat_activity' > pg_stat_activity.txt",
    marks=("pid", "blks_read", "buffers_clean", "num_timed", "wal_records", "backend_type"),
)

_LOCKS = frozenset("locktype relation transactionid mode granted fastpath waitstart virtualtransaction".split())
_BLOCKED = frozenset("blocked_pid blocking_pid blocked_user blocking_user blocked_statement".split())
_KNOWN = ACTIVITY | COUNTERS | _LOCKS | _BLOCKED
_TIMES = frozenset({"now", "clock_timestamp", "ts", "time", "sampled_at", "statement_timestamp"})
_STATES = frozenset({"state", "current_query", "wait_event", "wait_event_type", "xact_start", "query_start", "waiting"})
_SERVER = Entity(EntityKind.DATABASE, "postgresql", UNNAMED_GUEST)
_KEPT_MAX = 50
_ALONE_S = 1.0
_HEAD_LINES = 400


class _Add(Protocol):
    """Adds a series of a metric where it is asked for and something was measured."""

    def __call__(self, metric: str, entity: Entity, values: Iterable[float], *, is_age: bool = False) -> None: ...


def sniff(source: Source) -> int:
    """Sure by the columns of a view in a table of psql; CSV with a column of times is another importer's."""
    lines = source.head_uncut.splitlines()[:_HEAD_LINES]
    if lines and "|" not in lines[0] and not _TIMES.isdisjoint(_ends(lines[0])):
        return 0
    return 90 if any(map(_kind, table_columns(lines, _KNOWN))) else 0


def _ends(line: str) -> set[str]:
    for separator in ",;\t":
        if separator in line:
            names = [name.strip().strip('"').casefold() for name in line.split(separator)]
            return {names[0], names[-1]}
    return set()


def _kind(columns: frozenset[str]) -> str:
    """What a table with these columns is; empty for none of ours."""
    if {"blocked_pid", "blocking_pid"} <= columns:
        return "blocked"
    if {"mode", "granted"} <= columns:
        return "locks"
    if not {"pid", "procpid"}.isdisjoint(columns) and not _STATES.isdisjoint(columns):
        return "activity"
    return view_of(columns)


@dataclass(slots=True)
class _Moment:
    """What is known of one moment."""

    sessions: dict[str, PrintedSession] = field(default_factory=dict)
    blocked: int = 0
    heads: Counter[str] = field(default_factory=Counter)


def read(source: Source, request: Request) -> Capture:
    """A sample for each snapshot of sessions, facts and means since the last reset of counters.

    Raises:
        InputError: a line is no row of a table, or there is no table of a known view.
    """
    builder = CaptureBuilder(source.name, "psql-views", META.tool)
    try:
        tables = printed_tables(source.lines(), _KNOWN)
    except TableError as error:
        raise _refused(f"{source.name}:{error.line}", str(error)) from None
    builder.inventory.add(_SERVER, source.name, engine="postgresql")
    clock = _Clock(source, request, builder)
    moments: dict[int, _Moment] = {}
    unknown = is_known = 0
    for table in tables:
        kind = _kind(frozenset(table.columns))
        is_known |= bool(kind)
        unknown += not kind
        if kind == "activity":
            _add_activity(table, clock, moments)
        elif kind in {"locks", "blocked"}:
            _add_locks(table, clock, moments)
        elif kind:
            try:
                add_counters(kind, table, (builder, request, clock.of(table, None)))
            except TableError as error:
                raise _refused(f"{source.name}:{error.line}", str(error)) from None
    if not is_known:
        raise _refused(source.name, "no table of a view of activity or statistics")
    if unknown:
        builder.warn("other-tables", "tables of other views were left out", unknown)
    _emit(moments, builder, request)
    return builder.build(clock_known=clock.is_known)


def _titled(title: str) -> datetime | None:
    """The time that psql printed above a table, in the C locale or the English one."""
    plain = re.sub(r" [A-Z]{3,5}$", "", " ".join(title.split()))  # the name of a zone says no offset
    for shape in ("%a %b %d %H:%M:%S %Y", "%a %d %b %Y %I:%M:%S %p", "%a %d %b %Y %H:%M:%S", "%Y-%m-%d %H:%M:%S"):
        try:
            return datetime.strptime(plain, shape)  # noqa: DTZ007 - local, as printed
        except ValueError:
            continue
    return None


@dataclass(slots=True)
class _Clock:
    """Places the tables of a file in time."""

    source: Source
    request: Request
    builder: CaptureBuilder
    is_known: bool = True

    def of(self, table: PrintedTable, moment: datetime | None, *, is_now: bool = False) -> int:
        """UTC nanoseconds of a table, by its title, its moment or the file."""
        titled = _titled(table.title)
        if titled is not None:
            moment, is_now = titled, True
        if moment is not None:
            if not is_now:
                self.builder.warn("no-time", "a snapshot without its time: ages are at least what is told")
            if moment.tzinfo is None and self.request.timezone is None:
                self.is_known = False
                self.builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
            return to_ns(moment, self.request)
        self.is_known = False
        self.builder.warn("no-times", "the tables have no time: the time of the file was taken")
        return self.source.mtime_ns

    def refused(self, line: int, problem: str) -> InputError:
        """The error of a row."""
        return _refused(f"{self.source.name}:{line}", problem)


def _add_activity(table: PrintedTable, clock: _Clock, moments: dict[int, _Moment]) -> None:
    """Add the sessions of a table.

    Raises:
        InputError: a cell is not what its column holds.
    """
    rows = list(table.records())
    latest: datetime | None = None
    is_now = False
    for line, cells in rows:
        try:
            moment, is_exact = latest_of(cells)
        except ValueError as error:
            raise clock.refused(line, str(error)[:80]) from None
        is_now |= is_exact
        if moment is not None and (latest is None or utc(moment) > utc(latest)):
            latest = moment
    time_ns = clock.of(table, latest, is_now=is_now)
    known = moments.setdefault(time_ns, _Moment()).sessions
    for line, cells in rows:
        try:
            session = session_of(cells, latest)
        except ValueError as error:
            raise clock.refused(line, str(error)[:80]) from None
        if not session.is_asking:
            known[session.pid or f"line {line}"] = session


def _add_locks(table: PrintedTable, clock: _Clock, moments: dict[int, _Moment]) -> None:
    """Add who waits for a lock, and behind whom where the table says it."""
    moment = moments.setdefault(clock.of(table, None), _Moment())
    waiting: set[str] = set()
    for line, cells in table.records():
        if "blocking_pid" in cells:
            waiting.add(cells["blocked_pid"])
            moment.heads[cells["blocking_pid"]] += 1
        elif cells["granted"] in {"f", "false"}:
            waiting.add(cells.get("pid", f"line {line}"))
    moment.blocked = max(moment.blocked, len(waiting))
    for pid in waiting:  # who waits is no head of a queue
        moment.heads.pop(pid, None)


def _emit(moments: Mapping[int, _Moment], builder: CaptureBuilder, request: Request) -> None:
    """Add every series that is asked for."""
    times = np.array(sorted(moments), dtype=np.int64)
    ordered = [moments[time_ns] for time_ns in times.tolist()]
    clients = [[one for one in each.sessions.values() if one.is_client] for each in ordered]

    def add(metric: str, entity: Entity, values: Iterable[float], *, is_age: bool = False) -> None:
        column = np.array(list(values), dtype=np.float64)
        if request.wants(metric) and np.isfinite(column).any() and np.nanmax(column) > 0:
            step = _ALONE_S if is_age and len(times) == 1 else None
            builder.add_series(metric, entity, times, column, interval_s=step)

    add("db_active_sessions_count", _SERVER, (sum(s.state == "active" for s in one) for one in clients))
    add(
        "db_idle_in_transaction_sessions_count",
        _SERVER,
        (sum(s.is_idle_in_transaction for s in one) for one in clients),
    )
    blocked = [max(sum(s.waits_for_lock for s in one), at.blocked) for one, at in zip(clients, ordered, strict=True)]
    add("db_blocked_sessions_count", _SERVER, blocked)
    oldest = (np.nanmax([s.transaction_s for s in one if s.state != "idle"] + [-1.0]) for one in clients)
    add("db_transaction_age_s_max", _SERVER, (age if age >= 0 else np.nan for age in oldest), is_age=True)
    waits = (max((s.state_s for s in one if s.waits_for_lock and s.state_s >= 0), default=np.nan) for one in clients)
    add("db_lock_wait_age_s_max", _SERVER, waits, is_age=True)
    events = dict.fromkeys(
        s.event or "CPU" for one in clients for s in one if s.state == "active" and s.event is not None
    )
    for event in events:
        counts = [sum(s.state == "active" and (s.event or "CPU") == event for s in one) for one in clients]
        add("db_wait_event_sessions_count", Entity(EntityKind.DATABASE, event, _SERVER), counts)
    at_work = Counter(s.statement for one in clients for s in one if s.state == "active" and s.statement != "?")
    for name, _ in at_work.most_common(_KEPT_MAX):
        entity = builder.inventory.add(Entity(EntityKind.STATEMENT, name, _SERVER), builder.info.name, statement=name)
        counts = [sum(s.state == "active" and s.statement == name for s in one) for one in clients]
        add("db_statement_sessions_count", entity, counts)
    _emit_sessions(ordered, clients, builder, add)


def _emit_sessions(
    ordered: list[_Moment], clients: list[list[PrintedSession]], builder: CaptureBuilder, add: _Add
) -> None:
    """Add the transactions that run nothing, oldest first, and the heads of queues."""
    ages: dict[str, dict[int, PrintedSession]] = {}
    for place, sessions in enumerate(clients):
        for session in sessions:
            if session.is_idle_in_transaction and session.transaction_s >= 0:
                ages.setdefault(session.pid, {})[place] = session
    for pid in sorted(ages, key=lambda one: -max(s.transaction_s for s in ages[one].values()))[:_KEPT_MAX]:
        last = list(ages[pid].values())[-1]
        entity = Entity(EntityKind.SESSION, f"pid {pid} ({last.state})", _SERVER)
        statement = None if last.statement == "?" else last.statement
        facts: dict[str, Any] = {
            "pid": pid,
            "state": last.state,
            "statement": statement,
            "application": last.application or None,
        }
        builder.inventory.add(entity, builder.info.name, **facts)
        values = [ages[pid][n].transaction_s if n in ages[pid] else np.nan for n in range(len(clients))]
        add("db_idle_transaction_age_s", entity, values, is_age=True)
    for pid in dict.fromkeys(pid for one in ordered for pid in one.heads):
        known = next((one.sessions[pid].state for one in ordered if pid in one.sessions), "") or "not sampled"
        entity = Entity(EntityKind.SESSION, f"pid {pid} ({known})", _SERVER)
        add("db_sessions_behind_blocker_count", entity, [one.heads[pid] for one in ordered])


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="tables of pg_stat_activity, pg_locks or a view of statistics as psql prints them",
        advice=f"Copy the whole output of psql, or record it: {META.record}",
    )
