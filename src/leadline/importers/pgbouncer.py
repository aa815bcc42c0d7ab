r"""Connection pools of PgBouncer: who waits for a connection, from its log and its console.

Reads:
    The log of PgBouncer 1.3 to 1.25 with its lines of ``stats`` (``log_stats = 1``), in a file or from syslog and the
    journal; and what psql prints of ``SHOW POOLS`` and ``SHOW STATS``, in any of its shapes.

Sample:
    .. code-block:: text

        2026-11-25 10:00:00.123 UTC [812] LOG stats: 250 xacts/s, 500 queries/s, ... xact 9000 us, wait 3500000 us

Lost:
    Users, addresses and messages of the log. Averages of ``SHOW STATS`` since the last period of a console without a
    time. Totals since PgBouncer started. The pool of the console itself.

Units:
    ``wait`` is microseconds that clients waited in each second, so a million is one client that waits all the time;
    divided by the transactions it is the wait of one. Before version 1.8 it is not printed. ``maxwait`` is seconds.

Sources:
    PgBouncer documentation, usage: SHOW POOLS and SHOW STATS; ``src/stats.c``, calc_average and refresh_stats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.printed import moment_printed, number_of, printed_ns
from leadline.formats.printed_tables import PrintedTable, TableError, printed_tables, table_columns

if TYPE_CHECKING:
    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="PgBouncer",
    layers=(Layer.DATABASE,),
    fields={
        "xacts/s": Field("db_tps", "per_s"),
        "queries/s": Field("db_qps", "per_s"),
        "xact us": Field("db_latency_ms", "us"),
        "wait us, cl_waiting": Field("db_pool_waiting_count", "count"),
        "wait us, xacts/s": Field("db_pool_wait_ms", "us"),
        "xact us, query us": Field("db_pool_idle_in_transaction_pct", "pct"),
        "maxwait": Field("db_pool_wait_age_s_max", "s"),
        "sv_active": Field("db_pool_busy_count", "count"),
        "sv_idle, sv_used": Field("db_pool_free_count", "count"),
    },
    record="cp /var/log/postgresql/pgbouncer.log pgbouncer.log (log_stats = 1)",
    marks=("xacts/s", "req/s", "cl_waiting", "avg_wait_time"),
)

_POOLS = frozenset(
    "cl_active cl_waiting sv_active sv_idle sv_used sv_tested sv_login maxwait maxwait_us pool_mode "
    "cl_waiting_cancel_req cl_active_cancel_req sv_active_cancel sv_being_canceled".split()
)
_STATS = frozenset(
    "total_xact_count total_query_count total_wait_time avg_xact_count avg_query_count avg_xact_time avg_query_time "
    "avg_wait_time avg_recv avg_sent avg_req avg_query".split()
)
_LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"
    r"(?P<zone>Z|[+-]\d\d:?\d\d| UTC| GMT| [A-Z]{3,5})?[ \[](?P<rest>.*)"
)
_VALUE = re.compile(r"(?P<before>[a-z]{2,6} )?(?P<number>\d{1,18})(?P<unit> xacts/s| queries/s| req/s| us)")
_SERVER = Entity(EntityKind.DATABASE, "pgbouncer", UNNAMED_GUEST)
_HEAD_LINES = 400
_PERIOD_S = 60.0  # stats_period as it is set by default
NAN = float("nan")
Values = dict[str, float]


def sniff(source: Source) -> int:
    """Sure by a line of statistics or by the columns of the console."""
    head = source.head_text
    if re.search(r"\b[Ss]tats: \d{1,18} (?:xacts|req)/s, ", head):
        return 95
    lines = source.head_uncut.splitlines()[:_HEAD_LINES]
    return 95 if any(map(_kind, table_columns(lines, _POOLS | _STATS))) else 0


def _kind(columns: frozenset[str]) -> str:
    if {"database", "cl_active", "cl_waiting"} <= columns:
        return "pools"
    return "stats" if {"database", "avg_query_time"} <= columns or {"database", "avg_wait_time"} <= columns else ""


@dataclass(slots=True)
class _Samples:
    """Values by entity and time."""

    rows: dict[Entity, dict[int, Values]] = field(default_factory=dict)

    def add(self, entity: Entity, time_ns: int, values: Values) -> None:
        """Take in values of a moment; pools of several users are one."""
        known = self.rows.setdefault(entity, {}).setdefault(time_ns, {})
        for metric, value in values.items():
            if value >= 0:
                before = known.get(metric)
                is_sum = metric.endswith("_count")
                known[metric] = value if before is None else before + value if is_sum else max(before, value)


def read(source: Source, request: Request) -> Capture:
    """A sample for each line of statistics, or for the tables of the console.

    Raises:
        InputError: a line is none of PgBouncer's, or there are no statistics.
    """
    builder = CaptureBuilder(source.name, "pgbouncer", META.tool)
    samples = _Samples()
    lines = source.lines()
    is_log = any(re.search(r"\b[Ss]tats: \d", line) for line in lines[:100_000])
    if is_log:
        is_known = _read_log(source, lines, samples, (builder, request))
    else:
        is_known = False
        _read_tables(source, lines, samples)
        builder.warn("no-times", "the console prints no time: the time of the file was taken")
    if not samples.rows:
        raise _refused(source.name, "no line of statistics and no table of the console")
    for entity, moments in samples.rows.items():
        builder.inventory.add(entity, source.name, engine="pgbouncer")
        times = np.array(sorted(moments), dtype=np.int64)
        for metric in dict.fromkeys(name for values in moments.values() for name in values):
            column = np.array([moments[time_ns].get(metric, NAN) for time_ns in times.tolist()])
            if request.wants(metric):
                alone_s = _PERIOD_S if is_log and len(times) == 1 else None
                builder.add_series(metric, entity, times, column, interval_s=alone_s)
    return builder.build(clock_known=is_known)


def _read_log(source: Source, lines: list[str], samples: _Samples, into: tuple[CaptureBuilder, Request]) -> bool:
    """Add what the lines of statistics say; whether their times have a zone.

    Raises:
        InputError: a line has no time.
    """
    builder, request = into
    is_zoned = True
    for number, line in enumerate(lines, 1):
        match = _LINE.match(line)
        if match is None:
            if line.strip():
                raise _refused(f"{source.name}:{number}", f"{line.strip()[:60]!r} has no time")
            continue
        before, mark, text = match["rest"].partition("tats: ")
        values = _values_of(text) if mark and before[-1:] in "sS" else {}
        if not values:
            continue
        zone = (match["zone"] or "").strip().replace("UTC", "+00:00").replace("GMT", "+00:00").replace("Z", "+00:00")
        is_offset = zone[:1] in {"+", "-"}
        moment = moment_printed(match["time"].replace(",", ".") + (zone if is_offset else ""))
        if moment is None:
            raise _refused(f"{source.name}:{number}", f"the time {match['time']!r}")
        is_zoned &= is_offset
        samples.add(_SERVER, printed_ns(moment, source, request), values)
    if not is_zoned and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    return is_zoned or request.timezone is not None


def _values_of(text: str) -> Values:
    """The metrics of a line of statistics; empty for another line."""
    printed: Values = {}
    for match in _VALUE.finditer(text):
        printed[(match["before"] or match["unit"]).strip()] = number_of(match["number"])
    transactions, queries = printed.get("xacts/s", NAN), printed.get("queries/s", printed.get("req/s", NAN))
    times_us = (printed.get("xact", NAN), printed.get("query", NAN), printed.get("wait", NAN))
    return _metrics(transactions, queries, times_us)


def _metrics(transactions: float, queries: float, us: tuple[float, float, float]) -> Values:
    """Canonical metrics of rates and of microseconds of a transaction, of a query, and waited each second."""
    transaction_us, query_us, wait_us = us
    busy_us, whole_us = query_us * queries, transaction_us * transactions
    values = {
        "db_tps": transactions,
        "db_qps": queries,
        "db_latency_ms": transaction_us / 1000.0 if transactions > 0 else NAN,
        "db_pool_waiting_count": wait_us / 1e6,
        "db_pool_wait_ms": wait_us / transactions / 1000.0 if transactions > 0 else NAN,
        "db_pool_idle_in_transaction_pct": max(100.0 * (1.0 - busy_us / whole_us), 0.0) if whole_us > 0 else NAN,
    }
    return {metric: value for metric, value in values.items() if value >= 0}


def _read_tables(source: Source, lines: list[str], samples: _Samples) -> None:
    """Add what the tables of the console say.

    Raises:
        InputError: a line is no row of a table, or a cell is no number.
    """
    try:
        tables = printed_tables(lines, _POOLS | _STATS)
    except TableError as error:
        raise _refused(f"{source.name}:{error.line}", str(error)) from None
    time_ns = source.mtime_ns
    for table in tables:
        kind = _kind(frozenset(table.columns))
        for line, cells in table.records() if kind else ():
            if cells["database"] == "pgbouncer":
                continue
            values = _of_pool(cells) if kind == "pools" else _of_stats(cells)
            if not values:
                raise _refused(f"{source.name}:{line}", f"no number in the row of {cells['database'][:40]!r}")
            entity = Entity(EntityKind.DATABASE, f"pool {cells['database']}", _SERVER)
            samples.add(entity, time_ns + _place(tables, table), values)


def _place(tables: list[PrintedTable], table: PrintedTable) -> int:
    """Nanoseconds that keep tables of one kind apart: they were taken one after another, a second each."""
    same = [one for one in tables if one.columns == table.columns]
    return (next(n for n, one in enumerate(same) if one is table) - len(same) + 1) * 1_000_000_000


def _cell(cells: dict[str, str], name: str) -> float:
    return number_of(cells[name]) if cells.get(name) else NAN


def _of_pool(cells: dict[str, str]) -> Values:
    waited = _cell(cells, "maxwait")
    part = _cell(cells, "maxwait_us")
    free = [value for name in ("sv_idle", "sv_used") if (value := _cell(cells, name)) >= 0]
    values = {
        "db_pool_waiting_count": _cell(cells, "cl_waiting"),
        "db_pool_busy_count": _cell(cells, "sv_active"),
        "db_pool_free_count": sum(free) if free else NAN,
        "db_pool_wait_age_s_max": waited + (part / 1e6 if part >= 0 else 0.0),
    }
    return {metric: value for metric, value in values.items() if value >= 0}


def _of_stats(cells: dict[str, str]) -> Values:
    transactions = _cell(cells, "avg_xact_count")
    queries = _cell(cells, "avg_query_count" if "avg_query_count" in cells else "avg_req")
    query_us = _cell(cells, "avg_query_time" if "avg_query_time" in cells else "avg_query")
    return _metrics(transactions, queries, (_cell(cells, "avg_xact_time"), query_us, _cell(cells, "avg_wait_time")))


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="the log of PgBouncer with its lines of statistics, or SHOW POOLS and SHOW STATS as psql prints them",
        advice=f"Record {META.record}.",
    )
