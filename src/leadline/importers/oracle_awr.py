"""What an Oracle database waited for between two snapshots: AWR and Statspack reports, as text or HTML.

Reads:
    Reports of one instance by ``awrrpt.sql``, ``awrrpti.sql`` (AWR 10g to 23ai, also of one pluggable database) and
    ``spreport.sql`` (Statspack 9i to 19c), whole or the first page. Several text reports in one file are samples.

Sample:
    .. code-block:: text

        WORKLOAD REPOSITORY report for
        Begin Snap:        37 12-Feb-26 12:16:04        40       1.5
          End Snap:        38 12-Feb-26 12:22:06        62       2.5
        Top 5 Timed Foreground Events
                                                                   Avg
                                                                  wait   % DB
        Event                                 Waits     Time(s)   (ms)   time Wait Class
        ------------------------------ ------------ ----------- ------ ------ ----------
        db file sequential read              35,732       6,575    184   77.5 User I/O

Lost:
    All but the longest twenty wait events and statements. Histograms, latches, segments, memory advice, parameters.
    Reports over several instances (awrgrpt.sql) and comparisons of two periods (awrddrpt.sql) are refused.

Units:
    A report is one sample: the mean of its interval. The mean of a wait is the total by the count where the printed
    mean is rounded more (11g prints whole milliseconds). Single-block reads are ``db file sequential read`` and, on
    Exadata, ``cell single block physical read``. A wait's total by the interval is the number of sessions that waited.
    Shares of the host's processors are means of the interval; AWR counts waits for I/O as idle, too.

Sources:
    Oracle Database Performance Tuning Guide, "Automatic Performance Statistics"; Oracle Database Reference, "Oracle
    Wait Events"; sprepins.sql of Oracle 9i to 11g (formats and units of the columns of Statspack).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.oracle.reports import REPORT, OracleReport, WaitEvent, is_html, parse_report, split_reports
from leadline.formats.statements import normalised, shown_name, statement_name

if TYPE_CHECKING:
    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="Oracle AWR",
    layers=(Layer.DATABASE, Layer.GUEST),
    fields={
        "db file sequential read": Field("db_data_read_latency_ms", "ms"),
        "log file parallel write": Field("db_log_write_latency_ms", "ms"),
        "log file sync": Field("db_commit_wait_ms", "ms"),
        "DB Time": Field("db_active_sessions_count", "count"),
        "Total Wait Time (s)": Field("db_wait_event_sessions_count", "count"),
        "enq: TX - row lock contention": Field("db_blocked_sessions_count", "count"),
        "Sessions": Field("db_sessions_count", "count"),
        "Transactions": Field("db_tps", "per_s"),
        "Redo size": Field("db_log_bytes_per_s", "bytes_per_s"),
        "Logical reads": Field("db_logical_reads_per_s", "per_s"),
        "Physical reads": Field("db_page_reads_per_s", "per_s"),
        "Physical writes": Field("db_page_writes_per_s", "per_s"),
        "Logons": Field("db_logons_per_s", "per_s"),
        "SQL ordered by Elapsed Time": Field("db_statement_sessions_count", "count"),
        "Executions": Field("db_statement_calls_per_s", "per_s"),
        "Elapsed per Exec": Field("db_statement_ms", "ms"),
        "%User": Field("guest_cpu_user_pct", "pct"),
        "%System": Field("guest_cpu_system_pct", "pct"),
        "%WIO": Field("guest_cpu_iowait_pct", "pct"),
        "%Idle": Field("guest_cpu_busy_pct", "pct"),
    },
    record="@?/rdbms/admin/awrrpt.sql in SQL*Plus (without the Diagnostics Pack: @?/rdbms/admin/spreport.sql)",
    marks=("workload repository", "statspack", "awr report for db", "foreground events", "timed events"),
)

_TITLE = re.compile(r"<title>\s*AWR Report for DB:|<h1[^>]*>\s*WORKLOAD REPOSITORY (?:PDB )?report", re.IGNORECASE)
_TOP = re.compile(r"^[^\S\n]*Top \d+ (?:Timed |Foreground |Timed Foreground )Events\b.*\n[^\S\n]*~~~", re.MULTILINE)
_OTHER_REPORT = re.compile(
    r"WORKLOAD REPOSITORY (?:COMPARE PERIOD|REPORT \(RAC\))|<title>\s*AWR (?:RAC|Compare|Diff)", re.IGNORECASE
)
_LOAD = (
    ("transactions", "db_tps"),
    ("redo size", "db_log_bytes_per_s"),
    ("logical read", "db_logical_reads_per_s"),
    ("physical read", "db_page_reads_per_s"),
    ("physical write", "db_page_writes_per_s"),
    ("logons", "db_logons_per_s"),
)
_WITH_SECRETS = re.compile(r"\bidentified\b|\bpassword\b|\bn?q'", re.IGNORECASE)
_SINGLE_BLOCK_READS = ("db file sequential read", "cell single block physical")
_ROW_LOCKS = ("enq: TX - row lock cont", "enq: TM - contention", "enq: UL - contention")
_CPU = "CPU"
_KEPT_MAX = 20
_INTERVAL_S_MAX = 366 * 86400.0  # Judgement: snapshots are kept for days or weeks; more is damage
_HOUR_S = 3600.0  # Source: the default of DBMS_WORKLOAD_REPOSITORY.MODIFY_SNAPSHOT_SETTINGS


def sniff(source: Source) -> int:
    """Sure by the heading of a report; by shape of the table of its longest waits alone."""
    text = source.head_uncut
    if _OTHER_REPORT.search(text) or (REPORT.search(text) and not is_html(text)) or _TITLE.search(text):
        return 95
    return 60 if _TOP.search(text) and "db file " in text else 0


def read(source: Source, request: Request) -> Capture:
    """The capture of the reports of a file.

    Raises:
        InputError: nothing in it was measured, or it is another report of Oracle's.
    """
    text = source.text()
    if _OTHER_REPORT.search(text[:65536]):
        raise _refused(source, "a report over several instances or two periods")
    builder = CaptureBuilder(source.name, "oracle-awr", META.tool)
    rows = _Rows(builder, request)
    is_timed = True
    for number, piece in enumerate(split_reports(text), 1):
        report = parse_report(piece)
        if report.is_empty:
            builder.warn("empty-report", "a report without waits and load was left out")
            continue
        if report.left_out:
            builder.warn("damaged-rows", "rows of wait events that could not be read were left out", report.left_out)
        is_timed &= _add_report(report, source, rows, number)
    if not rows.values:
        raise _refused(source, "no table of waits and no load profile")
    rows.emit()
    if is_timed and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    return builder.build(clock_known=is_timed and request.timezone is not None)


@dataclass(slots=True)
class _Rows:
    """Values of each series by the ends of their intervals."""

    builder: CaptureBuilder
    request: Request
    values: dict[tuple[str, Entity], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    intervals_s: list[float] = field(default_factory=list)

    def add(self, metric: str, entity: Entity, time_ns: int, value: float) -> None:
        """Keep a value that was measured and is asked for."""
        wanted = self.request.metrics is None if metric.startswith(RAW_PREFIX) else self.request.wants(metric)
        if wanted and math.isfinite(value):
            self.values[metric, entity][time_ns] = value

    def emit(self) -> None:
        """Add the series, all with the interval that most reports have."""
        interval_s = float(np.median(self.intervals_s))
        for (metric, entity), values in self.values.items():
            first_ns = min(values) - int(interval_s * 1e9)  # so that the recording begins where its first interval does
            times = np.array([first_ns, *sorted(values)], dtype=np.int64)
            row = np.array([values.get(moment, math.nan) for moment in times.tolist()])
            self.builder.add_series(metric, entity, times, row, interval_s=interval_s)


def _add_report(report: OracleReport, source: Source, rows: _Rows, number: int) -> bool:
    """Keep what a report says; whether its snapshots have times."""
    builder = rows.builder
    guest = Entity(EntityKind.GUEST, report.host) if report.host else UNNAMED_GUEST
    server = Entity(EntityKind.DATABASE, report.instance or "oracle", guest)
    builder.inventory.add(server, source.name, engine="oracle", version=report.release or None)
    elapsed_s = report.elapsed_s
    if not 0 < elapsed_s < _INTERVAL_S_MAX:
        builder.warn("no-interval", "a report does not say how long its interval is; it was taken as one hour")
        elapsed_s = _HOUR_S
    if report.end is None:
        builder.warn("no-times", "a report has no snapshot times; its interval ends at the file's last change")
        time_ns = source.mtime_ns + number
    else:
        time_ns = to_ns(report.end, rows.request)
    rows.intervals_s.append(elapsed_s)
    for metric, value in _levels(report, elapsed_s):
        rows.add(metric, server, time_ns, value)
    for event, sessions in _waiting(report, elapsed_s):
        rows.add("db_wait_event_sessions_count", Entity(EntityKind.DATABASE, event, server), time_ns, sessions)
    for metric, value in _machine(report):
        rows.add(metric, guest, time_ns, value)
    for name, read_ms in report.tablespaces.items():
        rows.add(f"{RAW_PREFIX}oracle.tablespace.{name}.read_ms", server, time_ns, read_ms)
    _add_statements(report, (server, time_ns, elapsed_s), source, rows)
    return report.end is not None


def _levels(report: OracleReport, elapsed_s: float) -> Iterator[tuple[str, float]]:
    """What is known of the database as a whole."""
    yield "db_data_read_latency_ms", _mean_of(report, _SINGLE_BLOCK_READS, report.foreground)
    yield "db_log_write_latency_ms", _mean_of(report, ("log file parallel write",), report.background)
    yield "db_commit_wait_ms", _mean_of(report, ("log file sync",), report.foreground)
    active = report.db_time_s / elapsed_s
    for name, value in report.load.items():
        active = value if math.isnan(active) and name.startswith("db time") else active
    yield "db_active_sessions_count", active
    yield "db_sessions_count", report.sessions
    waits = report.foreground or report.all_waits
    if waits:
        blocked = sum(event.total_s for event in waits if event.name.startswith(_ROW_LOCKS))
        yield "db_blocked_sessions_count", blocked / elapsed_s
    for beginning, metric in _LOAD:
        yield metric, next((v for name, v in report.load.items() if name.startswith(beginning)), math.nan)


def _mean_of(report: OracleReport, names: tuple[str, ...], first: list[WaitEvent]) -> float:
    """The mean of one kind of wait, from the first table that has it; NaN where none has."""
    for events in (first, report.all_waits, report.top):
        chosen = [event for event in events if event.name.startswith(names) and math.isfinite(event.mean_ms)]
        if len(chosen) == 1:
            return chosen[0].mean_ms
        weight = sum(event.waits for event in chosen)
        if weight > 0:
            return sum(event.mean_ms * event.waits for event in chosen) / weight
    return math.nan


def _waiting(report: OracleReport, elapsed_s: float) -> Iterator[tuple[str, float]]:
    """Sessions that waited for each event, the longest first, and those at work on a processor."""
    cpu_s = report.db_cpu_s
    for event in report.top:
        cpu_s = event.total_s if math.isnan(cpu_s) and event.name in ("DB CPU", "CPU time") else cpu_s
    yield _CPU, cpu_s / elapsed_s
    waits = report.foreground or report.all_waits or report.top
    longest = sorted((w for w in waits if not w.is_idle and w.total_s > 0), key=lambda wait: -wait.total_s)
    for event in longest[:_KEPT_MAX]:
        if event.name not in ("DB CPU", "CPU time"):
            yield event.name, event.total_s / elapsed_s


def _machine(report: OracleReport) -> Iterator[tuple[str, float]]:
    """Shares of the host's processors."""
    shares = report.cpu_pct
    yield "guest_cpu_user_pct", shares.get("user", math.nan)
    yield "guest_cpu_system_pct", shares.get("system", math.nan)
    yield "guest_cpu_iowait_pct", shares.get("wio", math.nan)
    yield "guest_cpu_busy_pct", 100.0 - shares.get("idle", math.nan)


def _add_statements(report: OracleReport, place: tuple[Entity, int, float], source: Source, rows: _Rows) -> None:
    """Keep the statements that took most time, without their literals."""
    server, time_ns, elapsed_s = place
    kept = sorted(report.statements, key=lambda one: -one.elapsed_s)[:_KEPT_MAX]
    same = Counter(statement_name(one.text) for one in kept)
    for one in kept:
        name = statement_name(one.text)
        label = shown_name(name) if same[name] == 1 else f"{shown_name(name)} ({one.sql_id})"
        entity = Entity(EntityKind.STATEMENT, label, server)
        # Passwords are written without quotes, or in those of names; q'[...]' may hold quotes.
        text = name if _WITH_SECRETS.search(one.text) else normalised(one.text) or None
        rows.builder.inventory.add(
            entity, source.name, statement=shown_name(name), query_id=one.sql_id, statement_text=text
        )
        rows.add("db_statement_sessions_count", entity, time_ns, one.elapsed_s / elapsed_s)
        rows.add("db_statement_calls_per_s", entity, time_ns, one.executions / elapsed_s)
        mean = one.elapsed_s * 1000.0 / one.executions if one.executions > 0 else math.nan
        rows.add("db_statement_ms", entity, time_ns, mean)


def _refused(source: Source, problem: str) -> InputError:
    return InputError(
        source.name,
        found=problem,
        expected="an AWR or Statspack report of one instance, with its tables of wait events",
        advice=f"Write it again with {META.record}, as text or HTML.",
    )
