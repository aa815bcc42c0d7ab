r"""Active sessions of PostgreSQL or MySQL over time, by what they wait for, from samples of pg_stat_activity.

Reads:
    ``pg_active_sessions.csv`` of ``leadline collect postgresql``, and CSV of all columns of ``pg_stat_activity``
    (13 to 17) with a time column, appended again and again. A header once, or before every sample. ``blocked_by`` lists
    every blocker, or the first ones and how many more there are (``640 641 642 +76``). An empty statement is that of
    the same pid in the sample before. ``mysql_active_sessions.csv`` of the collector mysql has the same columns and
    ``mysql_state``.

Sample:
    .. code-block:: text

        now,pid,datname,backend_type,state,wait_event_type,wait_event,query_id,xact_age_s,query_age_s,blocked_by,query
        2026-11-21 00:55:56.442699+00,812,shop,client backend,active,Lock,transactionid,,0.412,0.411,640,UPDATE stock
        2026-11-21 00:55:56.442699+00,640,shop,client backend,idle in transaction,,,,9.310,8.120,,UPDATE stock

Lost:
    What happened between two samples. Literals of statements, all but the 50 most sampled
    statements and blockers, users and addresses of sessions that block nobody. Which session blocks another where
    the column ``blocked_by`` is missing, as in ``pg_stat_activity`` itself. A last row without an end is left out.
    A recorder that
    was killed loses its last second.

Units:
    Means of the number of sessions over the samples of one second, or per sample where these are further apart than
    half a second. A session that is active without a wait event counts as CPU. Ages are seconds.

Sources:
    PostgreSQL 13 to 17 documentation, "pg_stat_activity", "Wait Event Types" and "pg_blocking_pids". MySQL reference
    manual, "Performance Schema Instrument Naming Conventions": the class ``wait/lock``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.importers._pg_active_sessions.columns import csv_columns, numbers, whole_numbers
from leadline.importers._pg_active_sessions.damage import damaged_line, moment_of
from leadline.importers._pg_active_sessions.work import (
    SessionColumns,
    blocker_work,
    by_leader,
    statement_work,
    statements,
    worker_work,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.importers._pg_active_sessions.columns import Column

META = ImporterMeta(
    tool="pg_stat_activity",
    layers=(Layer.DATABASE,),
    fields={
        "state = active": Field("db_active_sessions_count", "count"),
        "wait_event": Field("db_wait_event_sessions_count", "count"),
        "backend_type": Field("db_background_sessions_count", "count"),
        "backend_type, wait_event": Field("db_background_wait_event_sessions_count", "count"),
        "state = idle in transaction": Field("db_idle_in_transaction_sessions_count", "count"),
        "wait_event_type = Lock": Field("db_blocked_sessions_count", "count"),
        "blocked_by": Field("db_sessions_behind_blocker_count", "count"),
        "query": Field("db_statement_sessions_count", "count"),
        "backend_type, query": Field("db_worker_sessions_count", "count"),
        "xact_age_s": Field("db_transaction_age_s_max", "s"),
    },
    record="leadline collect postgresql DSN -o FOLDER --active-sessions-every 100",
    marks=("wait_event_type",),
    counts=frozenset(
        {
            *("db_wait_event_sessions_count", "db_background_wait_event_sessions_count", "db_blocked_sessions_count"),
            *("db_sessions_behind_blocker_count", "db_statement_sessions_count", "db_worker_sessions_count"),
        }
    ),
)

_NEEDED = frozenset({"pid", "backend_type", "state", "wait_event_type", "wait_event"})
_LOCKS = ("Lock", "lock")  # PostgreSQL's wait event type; the class of MySQL's wait/lock/...
_TIMES = ("now", "clock_timestamp", "ts", "time", "sampled_at", "statement_timestamp")
_TEXTS = ("backend_type", "state", "wait_event_type", "wait_event", "blocked_by", "xact_start", "query")
_MORE = (
    *("query_id", "usename", "application_name", "application", "client_addr"),
    *("leader_pid", "relation", "statement_text"),
)
_AGES = ("xact_age_s", "query_age_s", "state_age_s")
_SERVERS = {name: Entity(EntityKind.DATABASE, name, UNNAMED_GUEST) for name in ("postgresql", "mysql")}
_MYSQL_MARK = "mysql_state"  # a column of our recordings of MySQL alone
_SECOND_NS = 1_000_000_000
_SLOW_NS = _SECOND_NS // 2  # Judgement: a second must hold two samples for a mean
_PID_DIGITS_MAX = 12


def sniff(source: Source) -> int:
    """Sure by the columns of pg_stat_activity beside a column of times."""
    lines = source.head_uncut.splitlines()
    return 95 if lines and _header(lines[0]) is not None else 0


def _header(line: str) -> tuple[str, ...] | None:
    names = tuple(cell.strip().strip('"').casefold() for cell in line.split(","))
    timed = names[0] in _TIMES
    return names if timed and set(names) >= _NEEDED and len(set(names)) == len(names) else None


def read(source: Source, request: Request) -> Capture:
    """The capture of the samples.

    Raises:
        InputError: a row is damaged, or there is no sample.
    """
    builder = CaptureBuilder(source.name, "pg-active-sessions", META.tool)
    data = source.text().replace("\r\n", "\n")
    names = _header(data.split("\n", 1)[0])
    if names is None:
        raise _refused(source, "no header of pg_stat_activity with a column of times first")
    if not data.endswith("\n"):
        builder.warn("cut", "the last row has no end and was left out")
        data = data[: data.rfind("\n") + 1]
    if "blocked_by" in names:
        data = _mended(data, builder)
    rows = _rows(source, data, names, request)
    if not rows.zoned and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    builder.inventory.add(rows.server, source.name, engine=rows.server.name)
    _emit(rows, builder, request)
    return builder.build(clock_known=rows.zoned or request.timezone is not None)


def _mended(data: str, builder: CaptureBuilder) -> str:
    """A recording of Leadline without rows that were cut when it was killed and then recorded again into the file."""
    header = "\n" + data.split("\n", 1)[0]
    pieces = data.split(header)
    for index, piece in enumerate(pieces[:-1]):
        rest, _, last = piece.rpartition("\n")
        if last and last.count(",") < header.count(","):
            builder.warn("cut", "a row before a header has no end and was left out")
            pieces[index] = rest
    return header.join(pieces)


@dataclass(slots=True)
class _Rows:
    """Rows of sessions as columns [n]; ``times_ns`` [m] are the moments of samples, ``sample`` indexes them."""

    times_ns: NDArray[np.int64]
    sample: NDArray[np.int64]
    pid: NDArray[np.int64]  # -1 where nobody was active
    client: NDArray[np.bool_]
    state: NDArray[np.object_]
    event: Column
    age_s: NDArray[np.float64]
    columns: SessionColumns
    server: Entity
    is_ours: bool
    zoned: bool


def _rows(source: Source, data: str, names: tuple[str, ...], request: Request) -> _Rows:
    """The rows of a file.

    Raises:
        InputError: one is damaged.
    """
    try:
        texts = _columns(data, names)
        pid = whole_numbers(texts["pid"], empty=-1)
        if "query" in names and "blocked_by" not in names:  # the home-made loop samples itself
            asks = [*("pg_stat_activity" in text for text in texts["query"][1]), False]
            pid = np.where(np.array(asks)[texts["query"][0]], -1, pid)
        codes, moments = texts[names[0]]
        stamps = [moment_of(text) for text in moments]
        times_ns = np.array([to_ns(stamp, request) for stamp in stamps], dtype=np.int64)
        ages = _ages(texts, times_ns[codes], request)
        _check_pids(texts.get("blocked_by", (None, []))[1])
        every_age = {"xact_age_s": ages} | {n: numbers(texts[n]) for n in _AGES[1:] if n in texts}
    except (ValueError, OverflowError) as error:
        problem = str(error).splitlines()[0][:120] if str(error) else "a damaged row"
        raise _refused(source, problem, damaged_line(data, names)) from None
    unique, place = np.unique(times_ns, return_inverse=True)
    state = _texts(texts["state"])
    return _Rows(
        unique,
        place[codes],
        pid,
        _texts(texts["backend_type"]) == "client backend",
        state,
        _events(texts),
        ages,
        SessionColumns(place[codes], pid, state, every_age, texts),
        _SERVERS["mysql" if _MYSQL_MARK in names else "postgresql"],
        "blocked_by" in names,
        all(stamp.tzinfo is not None for stamp in stamps),
    )


def _columns(data: str, names: tuple[str, ...]) -> dict[str, Column]:
    """The columns that are needed, without repeated headers; raises ValueError for damage."""
    wanted = [n for n in (names[0], "pid", *_AGES, *_TEXTS, *_MORE) if n in names]
    header = "\n" + data.split("\n", 1)[0]
    body = f"\n{data}".replace(header, "").lstrip("\n")
    if not body:
        message = "no sample"
        raise ValueError(message)
    columns = csv_columns(body, names, wanted)
    if (columns[names[0]][0] < 0).any():
        message = "a row without a time"
        raise ValueError(message)
    return columns


def _check_pids(lists: list[str]) -> None:
    """Raise ValueError for a list of blockers that is not made of numbers; the last may count the others."""
    for text in lists:
        first, *others = text.split() or ["0"]
        others[-1:] = [word.removeprefix("+") for word in others[-1:]]
        if not all(word.isascii() and word.isdigit() and len(word) < _PID_DIGITS_MAX for word in (first, *others)):
            raise ValueError(text)


def _texts(codes: Column) -> NDArray[np.object_]:
    return np.array([*codes[1], ""], dtype=object)[codes[0]]


def _events(texts: dict[str, Column]) -> Column:
    """Indices [n] into a list of wait events, written class:event; CPU where there is none."""
    (classes, class_names), (events, event_names) = texts["wait_event_type"], texts["wait_event"]
    pairs, codes = np.unique((classes.astype(np.int64) + 1) * (len(event_names) + 1) + events + 1, return_inverse=True)
    names = []
    for pair in pairs.tolist():
        kind, event = divmod(pair, len(event_names) + 1)
        names.append(f"{class_names[kind - 1]}:{event_names[event - 1] if event else ''}" if kind else "CPU")
    return codes.astype(np.int64), names


def _ages(
    texts: dict[str, Column],
    times_ns: NDArray[np.int64],
    request: Request,
) -> NDArray[np.float64]:
    """Age of each session's transaction in seconds [n]; NaN where it has none."""
    if "xact_age_s" in texts:
        ages = numbers(texts["xact_age_s"])
        if np.isinf(ages).any() or (ages < 0).any():
            message = "an impossible age of a transaction"
            raise ValueError(message)
        return ages
    if "xact_start" not in texts:
        return np.full(len(times_ns), np.nan)
    codes, moments = texts["xact_start"]
    starts = np.array([*(to_ns(moment_of(text), request) for text in moments), 0], dtype=np.int64)
    return np.where(codes >= 0, np.maximum((times_ns - starts[codes]) / 1e9, 0.0), np.nan)


def _emit(rows: _Rows, builder: CaptureBuilder, request: Request) -> None:
    """Add every series that is asked for."""
    step = float(np.median(np.diff(rows.times_ns))) if len(rows.times_ns) > 1 else float("nan")
    if step <= _SLOW_NS:
        ends, bins = np.unique(rows.times_ns // _SECOND_NS, return_inverse=True)
        ends = (ends + 1) * _SECOND_NS
    else:
        ends, bins = rows.times_ns, np.arange(len(rows.times_ns))
    samples = np.bincount(bins, minlength=len(ends))
    at = bins[rows.sample]

    def mean(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.bincount(at[chosen], minlength=len(ends)) / samples

    there = rows.pid >= 0
    active = np.isin(rows.state, ("active", "fastpath function call"))
    client = there & rows.client & active
    background = there & ~rows.client & (rows.state != "idle")
    classes = np.array([name.split(":")[0] for name in rows.event[1]] or [""])
    if len(rows.event[1]):
        background &= classes[rows.event[0]] != "Activity"
    idle = there & rows.client & np.isin(rows.state, ("idle in transaction", "idle in transaction (aborted)"))
    waits_for_lock = np.isin(classes[rows.event[0]], _LOCKS) if len(rows.event[1]) else np.zeros_like(client)
    locked = client & waits_for_lock
    totals = {
        "db_active_sessions_count": client,
        "db_background_sessions_count": background,
        "db_idle_in_transaction_sessions_count": idle,
        "db_blocked_sessions_count": locked,
    }
    for metric, chosen in totals.items():
        if request.wants(metric):
            builder.add_series(metric, rows.server, ends, mean(chosen))
    for prefix, chosen in (("db_", client), ("db_background_", background)):
        if request.wants(f"{prefix}wait_event_sessions_count"):
            for code in np.unique(rows.event[0][chosen]).tolist():
                entity = Entity(EntityKind.DATABASE, rows.event[1][code], rows.server)
                values = mean(chosen & (rows.event[0] == code))
                builder.add_series(f"{prefix}wait_event_sessions_count", entity, ends, values)
    aged = (client | idle) & ~np.isnan(rows.age_s)
    if request.wants("db_transaction_age_s_max") and aged.any():
        oldest = np.zeros(len(ends))
        np.maximum.at(oldest, at[aged], rows.age_s[aged])
        builder.add_series("db_transaction_age_s_max", rows.server, ends, oldest)
    _emit_work(rows, builder, request, (ends, at, samples), (active, background))


def _emit_work(
    rows: _Rows,
    builder: CaptureBuilder,
    request: Request,
    grid: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    masks: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> None:
    """Add the statements, background workers and blockers; the grid is ends [m], place [n] and samples [m]."""
    (ends, at, samples), (active, background) = grid, masks
    columns = rows.columns
    parallel = _texts(columns.texts["backend_type"]) == "parallel worker"
    at_work = (rows.pid >= 0) & active & (rows.client | parallel)
    codes, keys = statements(columns, is_ours=rows.is_ours)
    names = [keys[code][0] for code in codes.tolist()]
    shared = by_leader(columns, codes, parallel)
    series = (
        ("db_statement_sessions_count", EntityKind.STATEMENT, statement_work(shared, keys, at_work, at)),
        ("db_worker_sessions_count", EntityKind.SESSION, worker_work(columns, background & ~parallel, at, names)),
        ("db_sessions_behind_blocker_count", EntityKind.SESSION, blocker_work(columns, names, at, len(ends))),
    )
    for metric, kind, works in series:
        for work in works if request.wants(metric) else ():
            entity = builder.inventory.add(Entity(kind, work.name, rows.server), builder.info.name, **work.facts)
            builder.add_series(metric, entity, ends, work.counts / samples)


def _refused(source: Source, problem: str, line: int | None = None) -> InputError:
    return InputError(
        source.name if line is None else f"{source.name}:{line}",
        found=problem,
        expected="CSV samples of pg_stat_activity, with a column of times first",
        advice=f"Record again: {META.record}",
    )
