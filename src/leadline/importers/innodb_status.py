r"""InnoDB's status: what waits, what is pending, and how far checkpoints and purge are behind.

Reads:
    ``SHOW ENGINE INNODB STATUS`` of MySQL 5.1 to 9, Percona Server and MariaDB 5.5 to 11: from the shell with ``\G`` or
    without, from a file of ``innodb-status-file`` or the error log, from a GUI's CSV with ``\n`` for line ends; whole
    or only some sections, one report or several.

Sample:
    .. code-block:: text

        =====================================
        2026-11-25 15:16:01 0x76fcd1aa96c0 INNODB MONITOR OUTPUT
        =====================================
        Per second averages calculated from the last 10 seconds
        --------
        FILE I/O
        --------
        Pending flushes (fsync) log: 1; buffer pool: 0
        486.25 reads/s, 16384 avg bytes/read, 120.00 writes/s, 7.00 fsyncs/s

Lost:
    Literals of statements, users and hosts. Counters since the server started. The single buffer pools. Locks of
    transactions that wait for nothing. Rates of a report that follows another within the same second.

Units:
    Rates are means over the seconds that the report names; what is pending and what waits is of its moment. Ages and
    waits are seconds. The share of the log that a checkpoint may lag behind is known where the server prints
    ``Max checkpoint age``.

Sources:
    MySQL 8.4 reference manual, "InnoDB Standard Monitor and Lock Monitor Output"; MySQL and MariaDB
    ``storage/innobase/srv/srv0srv.cc``, ``lock/lock0lock.cc``, ``log/log0log.cc``; status recorded with MariaDB 10.11.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.stamps import YEARS
from leadline.importers._innodb_status.report import HEADER, InnodbReport, report_of

if TYPE_CHECKING:
    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="InnoDB status",
    layers=(Layer.DATABASE,),
    fields={
        "pending normal aio reads, pending preads": Field("db_pending_reads_count", "count"),
        "aio writes, pending pwrites": Field("db_pending_writes_count", "count"),
        "Pending flushes (fsync)": Field("db_pending_fsyncs_count", "count"),
        "fsyncs/s": Field("db_fsyncs_per_s", "per_s"),
        "FILE I/O reads/s": Field("db_file_reads_per_s", "per_s"),
        "FILE I/O writes/s": Field("db_file_writes_per_s", "per_s"),
        "BUFFER POOL reads/s": Field("db_page_reads_per_s", "per_s"),
        "BUFFER POOL writes/s": Field("db_page_writes_per_s", "per_s"),
        "Buffer pool hit rate": Field("db_buffer_hit_pct", "permille"),
        "inserts/s": Field("db_rows_inserted_per_s", "per_s"),
        "inserts/s, updates/s, deletes/s": Field("db_rows_changed_per_s", "per_s"),
        "History list length": Field("db_history_list_count", "count"),
        "Log sequence number, Last checkpoint at": Field("db_checkpoint_age_bytes", "bytes"),
        "Checkpoint age, Max checkpoint age": Field("db_checkpoint_age_pct", "pct"),
        "has waited ... the semaphore": Field("db_semaphore_wait_age_s_max", "s"),
        "has waited": Field("db_semaphore_waits_count", "count"),
        "queries in queue": Field("db_queue_outside_count", "count"),
        "LOCK WAIT": Field("db_blocked_sessions_count", "count"),
        "TRX HAS BEEN WAITING": Field("db_lock_wait_age_s_max", "s"),
        "ACTIVE sec": Field("db_transaction_age_s_max", "s"),
        "ACTIVE sec, no statement": Field("db_idle_transaction_age_s", "s"),
    },
    record=r"mysql -e 'SHOW ENGINE INNODB STATUS\G' >> innodb-status.txt, twice, ten seconds apart",
    marks=(
        *("innodb monitor output", "---transaction ", "avg bytes/read", "last checkpoint at", "buffer pool hit rate"),
        *("history list length", "queries inside innodb"),
    ),
)

_PARTS = re.compile(
    r"^(?:---TRANSACTION \S{1,40}, (?:ACTIVE|not started)|History list length \d|Buffer pool hit rate \d{1,4} / 1000"
    r"|\d{1,9} queries inside InnoDB|[\d.]{1,15} reads/s, \d{1,9} avg bytes/read|Last checkpoint at +\d)",
    re.MULTILINE,
)
# Between two reports: frames of shells, prompts, and the messages of an error log.
_BETWEEN = re.compile(
    r"=+$|-+$|\+[-+]+$|[\"|]*$|\d{1,9} rows? in set|\*{5,60} {0,4}\d{1,9}\. row|\s{0,8}(?:Type|Name|Status)\b|mysql>"
    r"|MariaDB \[|\"?InnoDB\b|\d{4}-\d\d-\d\d|\d{6} |\[?\w{3} \w{3}"
)
_SERVER = Entity(EntityKind.DATABASE, "mysql", UNNAMED_GUEST)
_HEADINGS = frozenset({"FILE I/O", "TRANSACTIONS", "ROW OPERATIONS", "LOG", "BUFFER POOL AND MEMORY"})
_REPORTS_MAX = 100_000
_KEPT_MAX = 50
_ALONE_S = 1.0
_Value = Callable[[InnodbReport], float]
NAN = float("nan")


def _level(name: str) -> _Value:
    return lambda report: report.levels.get(name, NAN)


def _rate(*names: str) -> _Value:
    return lambda report: sum(report.rates.get(name, NAN) for name in names) if report.seconds > 0 else NAN


def _longest(waits: list[float]) -> float:
    return max((wait for wait in waits if wait >= 0), default=NAN)


_LEVELS: dict[str, _Value] = {
    "db_pending_reads_count": _level("pending_reads"),
    "db_pending_writes_count": _level("pending_writes"),
    "db_pending_fsyncs_count": _level("pending_fsyncs"),
    "db_history_list_count": _level("history"),
    "db_checkpoint_age_bytes": _level("checkpoint_age"),
    "db_checkpoint_age_pct": _level("checkpoint_age_pct"),
    "db_queue_outside_count": _level("outside"),
    "db_semaphore_waits_count": lambda report: float(len(report.semaphore_waits_s)) or NAN,
    "db_blocked_sessions_count": lambda report: (
        float(sum(one.is_waiting for one in report.transactions)) if report.has_transactions else NAN
    ),
}
_AGES: dict[str, _Value] = {
    "db_semaphore_wait_age_s_max": lambda report: _longest(report.semaphore_waits_s),
    "db_lock_wait_age_s_max": lambda report: _longest([one.wait_s for one in report.transactions]),
    "db_transaction_age_s_max": lambda report: _longest([one.age_s for one in report.transactions]),
}
_RATES: dict[str, _Value] = {
    "db_fsyncs_per_s": _rate("fsyncs"),
    "db_file_reads_per_s": _rate("file_reads"),
    "db_file_writes_per_s": _rate("file_writes"),
    "db_page_reads_per_s": _rate("page_reads"),
    "db_page_writes_per_s": _rate("page_writes"),
    "db_rows_inserted_per_s": _rate("inserted"),
    "db_rows_changed_per_s": _rate("inserted", "updated", "deleted"),
    "db_buffer_hit_pct": lambda report: report.levels.get("hit_per_mille", NAN) / 10.0 if report.seconds > 0 else NAN,
    f"{RAW_PREFIX}innodb.rows_read_per_s": _rate("rows_read"),
    f"{RAW_PREFIX}innodb.log_writes_per_s": _rate("log_writes"),
}


def sniff(source: Source) -> int:
    """Sure by the heading of a report, nearly so by lines that only a report has."""
    head = _plain(source.head_text)
    if HEADER.search(head) is not None:
        return 96
    return 85 if _PARTS.search(head) is not None else 0


def _plain(text: str) -> str:
    """The text with line ends where a client wrote them as two characters, and without the blanks of a paste."""
    text = text.replace("\r\n", "\n")
    if text.count("\\n") > text.count("\n") + 2:
        text = text.replace("\\r", "").replace("\\n", "\n")
    lines = [line.rstrip(" \t") for line in text.split("\n")]
    bare = [line.lstrip(" \t") for line in lines]
    is_indented = any(line in _HEADINGS and not lines[place].startswith(line) for place, line in enumerate(bare))
    return "\n".join(bare if is_indented else lines)


def read(source: Source, request: Request) -> Capture:
    """A sample for each report.

    Raises:
        InputError: there is no report, or the time of one is none.
    """
    builder = CaptureBuilder(source.name, "innodb-status", META.tool)
    text = _plain(source.text())
    _check_between(source, text)
    begins = [match.start() for match in HEADER.finditer(text)] or [0]
    begins = begins[:_REPORTS_MAX]
    reports = [report_of(text[a:b]) for a, b in zip(begins, [*begins[1:], len(text)], strict=True)]
    reports = [one for one in reports if one.levels or one.rates or one.has_transactions or one.semaphores]
    if not reports:
        raise InputError(
            source.name,
            found="no section of InnoDB's status",
            expected="the output of SHOW ENGINE INNODB STATUS, or some of its sections",
            advice=f"Record {META.record}.",
        )
    timed: dict[int, InnodbReport] = {}
    for place, report in enumerate(reports):
        timed[_time(report, place, source, request, builder)] = report
    if len(timed) == 1 and reports[-1].seconds == 0 and reports[-1].rates:
        builder.warn("no-rates", "a report right after another: its rates are means over less than a second")
    builder.inventory.add(_SERVER, source.name, engine="mysql", **_facts(reports))
    _emit(timed, builder, request)
    return builder.build(clock_known=request.timezone is not None and all(one.moment for one in reports))


def _check_between(source: Source, text: str) -> None:
    """Raise InputError for a line behind the end of a report that no shell or log prints there."""
    lines = text.split("\n")
    if len(lines) != source.text().count("\n") + 1:
        return  # its line ends were written as two characters: lines of the file are not those of the report
    is_behind = False
    for number, line in enumerate(lines, 1):
        if line.startswith("END OF INNODB MONITOR OUTPUT"):
            is_behind = True
        elif is_behind and HEADER.match(line):
            is_behind = False
        elif is_behind and line and _BETWEEN.match(line) is None:
            raise InputError(
                f"{source.name}:{number}",
                found=f"{line.strip()[:60]!r} behind the end of a report",
                expected="the next report of InnoDB's status",
                advice="Put other recordings into separate files.",
            )


def _time(report: InnodbReport, place: int, source: Source, request: Request, builder: CaptureBuilder) -> int:
    """UTC nanoseconds of a report; that of the file where it has no heading."""
    moment = report.moment
    if moment is None or moment.year not in YEARS:
        builder.warn("no-times", "a report has no time: the time of the file was taken")
        return source.mtime_ns + place
    if request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    return to_ns(moment, request)


def _facts(reports: list[InnodbReport]) -> dict[str, Any]:
    """The statements of the latest deadlock, and where threads wait for internal locks."""
    facts: dict[str, Any] = {}
    deadlock = next((one.deadlock for one in reversed(reports) if one.deadlock), [])
    if deadlock:
        facts["latest_deadlock"] = " against ".join(deadlock[:2])
    places = Counter(place for one in reports for place in one.semaphores)
    if places:
        facts["semaphore_waits_at"] = places.most_common(1)[0][0]
    return facts


def _emit(timed: dict[int, InnodbReport], builder: CaptureBuilder, request: Request) -> None:
    """Add every series that is asked for."""
    times = np.array(sorted(timed), dtype=np.int64)
    reports = [timed[time_ns] for time_ns in times.tolist()]
    is_alone = len(reports) == 1
    averaged_s = float(np.median([one.seconds for one in reports]))
    kinds = ((_LEVELS, None), (_AGES, _ALONE_S), (_RATES, averaged_s))
    for values, alone_s in kinds:
        for metric, value in values.items():
            column = np.array([value(report) for report in reports])
            if (metric.startswith(RAW_PREFIX) and request.metrics is not None) or not request.wants(metric):
                continue
            if np.isfinite(column).any():
                builder.add_series(metric, _SERVER, times, column, interval_s=alone_s if is_alone else None)
    if not request.wants("db_idle_transaction_age_s"):
        return
    idle: dict[str, dict[int, float]] = {}
    for place, report in enumerate(reports):
        for one in report.transactions:
            if one.is_idle:
                idle.setdefault(one.thread, {})[place] = one.age_s
    for thread in sorted(idle, key=lambda name: -max(idle[name].values()))[:_KEPT_MAX]:
        entity = Entity(EntityKind.SESSION, f"thread {thread} (no statement)", _SERVER)
        builder.inventory.add(entity, builder.info.name, pid=thread, state="idle in transaction")
        column = np.array([idle[thread].get(place, NAN) for place in range(len(reports))])
        alone_s = _ALONE_S if is_alone else None
        builder.add_series("db_idle_transaction_age_s", entity, times, column, interval_s=alone_s)
