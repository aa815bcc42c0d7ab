"""HammerDB: test results, the transaction counter's log and the time profiles of its stored procedures.

Reads:
    ``hammerdb.log`` (results of TPROC-C runs of versions 2 to 5, one or many, and ``etprof`` percentiles every ten
    seconds), ``hdbtcount.log`` (transactions per minute) and ``hdbxtprofile.log``.

Sample:
    .. code-block:: text

        Hammerdb Log @ Tue Jun 30 13:14:13 CST 2020
        Vuser 2:|PERCENTILES 2020-06-30 13:14:14 to 2020-06-30 13:14:24
        Vuser 2:|neword|MIN-2328|P50%-4568|P95%-6589|P99%-7988|MAX-24075|SAMPLES-1068
        Vuser 1:TEST RESULT : System achieved 8043 NOPM from 16365 Oracle TPM
        193290 PostgreSQL tpm @ Thu Jun 30 21:18:41 UTC 2022

Lost:
    The profile table at the end of an etprof log (it sums up the percentiles' calls), profiles of single virtual users
    where there is a summary of all, query times of TPROC-H.

Units:
    Percentiles of etprof in microseconds, of xtprof in milliseconds; TPM and NOPM per minute.

Sources:
    HammerDB documentation, "Interpret the Test Results" and "Transaction Response Times"; HammerDB sources,
    ``gentccmn-1.1.tm``, ``etprof-1.1.tm``, ``xtprof-1.0.tm``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, add_columns, bad_line, epoch_ns, zone_named

META = ImporterMeta(
    tool="HammerDB",
    marks=("hammerdb", "test result", " tpm", "percentiles", "proc:"),
    layers=(Layer.DATABASE,),
    fields={
        "tpm": Field("db_tpm", "count"),
        "tpm / 60": Field("db_tps", "per_s"),
        "MIN": Field("db_latency_ms_min", "us"),
        "P95%": Field("db_latency_ms_p95", "us"),
        "P99%": Field("db_latency_ms_p99", "us"),
        "MAX": Field("db_latency_ms_max", "us"),
    },
    record="hammerdbcli: vuset logtotemp 1; tcset logtotemp 1; tcset timestamps 1; diset tpcc pg_timeprofile true",
)
COUNTER_STEP_S = 10.0  # the transaction counter's default refresh rate
US_PER_MS = 1000.0
SECONDS_PER_MINUTE = 60.0

_RESULT = re.compile(
    r"(?:Vuser \d+:)?TEST RESULT : System achieved (?:(\d{1,12}) NOPM from (\d{1,12}) (.+?) TPM"
    r"|(\d{1,12}) (.+?) TPM at (\d{1,12}) NOPM)\s*"
)
_TPM = re.compile(r"(\d{1,12}) ([A-Za-z][\w ]*?) tpm(?: @ (.+?))?\s*")
_BANNER = re.compile(r"Hammerdb (?:Transaction Counter |Time Profile )?Log @ (.+?)\s*", re.IGNORECASE)
_DATE = re.compile(r"(?:[A-Z]\w\w )?([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) ([A-Za-z]+|[+-]\d{4}) (\d{4})")
_PERCENTILES = re.compile(
    r"Vuser (\d+):\|PERCENTILES (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) to (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*"
)
_PROCEDURE = re.compile(
    r"Vuser (\d+):\|(\w+)\|MIN-([\d.]+)\|P50%-([\d.]+)\|P95%-([\d.]+)\|P99%-([\d.]+)\|MAX-([\d.]+)\|SAMPLES-(\d+)\s*"
)
_PROFILE = re.compile(r">+ ?(SUMMARY OF|COMBINED METRICS|VIRTUAL USER|PROC:) ?(\w*)")
_STATISTIC = re.compile(r"(CALLS|MIN|AVG|MAX|P\d\d): ?([\d.]+)(ms)?")
_MARK = re.compile(
    r"^Hammerdb (?:Transaction Counter |Time Profile )?Log @|TEST RESULT : System achieved \d"
    r"|^\d+ [\w ]+ tpm(?: @|\s*$)|^Vuser \d+:\|PERCENTILES |^>+ ?PROC: ?\w+\s*\n(?:CALLS|MIN)",
    re.MULTILINE | re.IGNORECASE,
)
_ACTIVE = re.compile(r"Vuser 1:(\d{1,6}) Active Virtual Users configured")
_MINUTES = re.compile(r"Vuser 1:(?:Beginning (rampup) time of|Timing test (period) of) (\d{1,6}) ")
_MONTHS = {name: i for i, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_COLUMNS = ("db_latency_ms_min", "raw.hammerdb.p50_ms", "db_latency_ms_p95", "db_latency_ms_p99", "db_latency_ms_max")


@dataclass
class _Log:
    """What a log holds, as it is collected."""

    request: Request
    builder: CaptureBuilder
    name: str
    zoned: bool = True
    start_ns: int | None = None
    workload: dict[str, Any] = field(default_factory=dict)
    counter: dict[str, list[tuple[int | None, float]]] = field(default_factory=dict)
    percentiles: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    interval_end: dict[str, tuple[int, int]] = field(default_factory=dict)


def sniff(source: Source) -> int:
    """Sure by a banner, a result, a counter line or a profile."""
    return 92 if _MARK.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the transaction counter and of the percentiles, one result per test and one per time profile.

    Raises:
        InputError: the file holds none of these, or one is damaged before the last line.
    """
    builder = CaptureBuilder(source.name, "hammerdb", META.tool)
    log = _Log(request, builder, source.name)
    lines = source.lines()
    banners = 0
    for index, line in enumerate(lines):
        banners += _BANNER.fullmatch(line) is not None
        if not _take(log, line, index) and line.startswith(("Hammerdb ", "Vuser 1:TEST RESULT")):
            if index < len(lines) - 1 and "System achieved" in line:
                raise bad_line(source.name, index, line, "TEST RESULT : System achieved NUMBER …")
            builder.warn("cut", "a line is cut and was passed over")
    builder.results.extend(_profiles(lines, source.name))
    if not (log.counter or log.percentiles or builder.results or banners):
        raise bad_line(source.name, 0, "no result, counter or profile", "a log of HammerDB")
    if not (log.counter or log.percentiles or builder.results):
        builder.warn("no-result", "the log ends before any result")
    clock_known = _add_series(log, source)
    return builder.build(clock_known=clock_known)


def _take(log: _Log, line: str, index: int) -> bool:
    """Put one line where it belongs; whether it was of a known kind."""
    if line.startswith("Vuser ") and "|" in line:
        return _take_percentiles(log, line, index)
    banner, result, counted = _BANNER.fullmatch(line), _RESULT.fullmatch(line), _TPM.fullmatch(line)
    active, minutes = _ACTIVE.match(line), _MINUTES.match(line)
    if banner:
        log.start_ns, log.workload = _moment(log, banner[1], index), {}
    elif result:
        log.builder.results.append(_result(log, result))
    elif counted:
        when = None if counted[3] is None else _moment(log, counted[3], index)
        log.counter.setdefault(_engine(counted[2]), []).append((when, float(counted[1])))
    elif active:
        log.workload["client_count"] = int(active[1])
    elif minutes:
        log.workload["rampup_s" if minutes[1] else "duration_s"] = int(minutes[3]) * 60
    else:
        return False
    return True


def _moment(log: _Log, text: str, index: int) -> int:
    """UTC nanoseconds of Tcl's ``clock format``; a zone that names several is taken as the requested one."""
    match = _DATE.fullmatch(text)
    if match is None or match[1] not in _MONTHS:
        raise bad_line(log.name, index, text, "a time such as Tue Jun 30 13:14:13 UTC 2020")
    month, day, hour, minute, second, zone, year = match.groups()
    try:
        local = datetime(int(year), _MONTHS[month], int(day), int(hour), int(minute), int(second))  # noqa: DTZ001 - below
    except ValueError as error:
        raise bad_line(log.name, index, text, "a date that exists") from error
    if zone[0] in "+-":
        hours = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:]))
        return to_ns((local + (hours if zone[0] == "-" else -hours)).replace(tzinfo=UTC), log.request)
    offset = zone_named(zone)
    if offset is None:
        log.zoned = False
        assumed = log.request.timezone or "UTC"
        log.builder.warn("no-zone", f"zone {zone} is not one zone; times are taken as {assumed}")
    return _checked(to_ns(local if offset is None else local.replace(tzinfo=offset), log.request), log.name, index)


def _checked(moment_ns: int, name: str, index: int) -> int:
    epoch_ns(moment_ns / 1e9, name, index)
    return moment_ns


def _take_percentiles(log: _Log, line: str, index: int) -> bool:
    """An interval's heading or a procedure of it; lines of other virtual users stand between them."""
    heading, procedure = _PERCENTILES.fullmatch(line), _PROCEDURE.fullmatch(line)
    if heading:
        try:
            begin, end = (datetime.fromisoformat(text) for text in heading.groups()[1:])
        except ValueError as error:
            raise bad_line(log.name, index, line, "dates that exist") from error
        if log.request.timezone is None:
            log.zoned = False
            log.builder.warn("no-zone", "percentiles have times without a zone; taken as UTC")
        span = tuple(_checked(to_ns(moment, log.request), log.name, index) for moment in (begin, end))
        log.interval_end[heading[1]] = (span[0], span[1])
    elif procedure and procedure[1] in log.interval_end:
        end_ns = log.interval_end[procedure[1]][1]
        values = [_microseconds(text, log.name, index, line) / US_PER_MS for text in procedure.groups()[2:7]]
        log.percentiles.setdefault(procedure[2], {})[end_ns] = values
    return bool(heading or procedure)


def _microseconds(text: str, name: str, index: int, line: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise bad_line(name, index, line, "numbers of microseconds") from error


def _engine(text: str) -> str:
    """The database's name as an entity: ``SQL Server`` becomes ``sqlserver``."""
    return text.replace(" ", "").casefold()


def _result(log: _Log, match: re.Match[str]) -> Result:
    nopm, tpm, engine = (match[1], match[2], match[3]) if match[1] else (match[6], match[4], match[5])
    operations = (
        Operation("transaction", per_s=float(tpm) / SECONDS_PER_MINUTE),
        Operation("new order", per_s=float(nopm) / SECONDS_PER_MINUTE),
    )
    workload = {"script": "TPROC-C", "engine": _engine(engine), **log.workload}
    duration = float(log.workload.get("duration_s", NAN))
    return Result(META.tool, "TPROC-C", operations, duration, log.start_ns, workload=workload, source=log.name)


def _profiles(lines: list[str], name: str) -> Iterator[Result]:
    """One result per time profile: the summary of all virtual users, or the users' where there is none."""
    groups: list[tuple[str, dict[str, dict[str, float]]]] = []
    procedure: dict[str, float] | None = None
    for line in lines:
        heading = _PROFILE.match(line)
        if heading and heading[1] == "PROC:":
            procedure = {}
            if not groups:
                groups.append(("", {}))
            groups[-1][1][heading[2].lower()] = procedure
        elif heading:
            title = "all virtual users" if heading[1] != "VIRTUAL USER" else f"virtual user {heading[2]}"
            groups.append((title, {}))
            procedure = None
        elif procedure is not None:
            for key, number, unit in _STATISTIC.findall(line):
                if unit or key == "CALLS":
                    procedure[key] = _float(number)
    summed = [group for group in groups if group[0] == "all virtual users"] or groups
    for title, procedures in summed:
        operations = tuple(_operation(key, values) for key, values in procedures.items())
        if operations:
            yield Result(META.tool, f"time profile {title}".strip(), operations, source=name)


def _float(text: str) -> float:
    return float(text) if re.fullmatch(r"\d{1,18}(\.\d+)?", text) else NAN


def _operation(name: str, values: dict[str, float]) -> Operation:
    words = {"MIN": "min", "AVG": "mean", "MAX": "max"}
    latency = {words.get(key, key.lower()): value for key, value in values.items() if key != "CALLS"}
    return Operation(name, count=values.get("CALLS", NAN), latency_ms=latency)


def _add_series(log: _Log, source: Source) -> bool:
    """Add what was collected; whether the clock is known."""
    zoned = log.zoned or log.request.timezone is not None
    for procedure, rows in log.percentiles.items():
        job = Entity(EntityKind.JOB, f"hammerdb {procedure}", UNNAMED_GUEST)
        times = np.array(sorted(rows), dtype=np.int64)
        table = np.array([rows[time] for time in times.tolist()]).T
        step = float(np.median([end - begin for begin, end in log.interval_end.values()])) / 1e9
        add_columns(log.builder, log.request, job, times, dict(zip(_COLUMNS, table, strict=True)), interval_s=step)
    for engine, counts in log.counter.items():
        database = Entity(EntityKind.DATABASE, engine, UNNAMED_GUEST)
        known = [(when, tpm) for when, tpm in counts if when is not None]
        if len(known) < len(counts):
            zoned = False
            log.builder.warn(
                "no-times", f"counter lines have no time: taken as {COUNTER_STEP_S:g} s apart (the default)"
            )
            times, tpm = synthetic_times(len(counts), COUNTER_STEP_S, source.mtime_ns), np.array([c[1] for c in counts])
        else:
            known.sort(key=lambda pair: pair[0])
            times, tpm = np.array([when for when, _ in known], dtype=np.int64), np.array([tpm for _, tpm in known])
        add_columns(log.builder, log.request, database, times, {"db_tpm": tpm, "db_tps": tpm / SECONDS_PER_MINUTE})
    return zoned
