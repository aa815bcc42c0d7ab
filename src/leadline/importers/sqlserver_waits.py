r"""What SQL Server waits for and how long its files take: results of queries of its dynamic management views.

Reads:
    Results saved from Management Studio or written by ``sqlcmd`` (comma, semicolon, tab, bar or aligned columns) of
    ``sys.dm_os_wait_stats`` and of ``sys.dm_io_virtual_file_stats``, as they are, joined with names of files, or with
    means computed; also the columns WaitType, Wait_S, Resource_S, Signal_S and WaitCount. ``sys.dm_os_schedulers``:
    runnable_tasks_count. Several results in one file, with a column of times or without.

Sample:
    .. code-block:: text

        collection_time,wait_type,waiting_tasks_count,wait_time_ms,max_wait_time_ms,signal_wait_time_ms
        2026-11-24 10:00:00,PAGEIOLATCH_SH,182000,8190000,2100,91000
        2026-11-24 10:01:00,PAGEIOLATCH_SH,183200,8244000,2100,91600

Lost:
    Waits of idle threads (SLEEP_TASK and its like), all but the longest twenty others. Means of files without their
    counts: only the highest is kept. Rows that do not fit their header are counted.

Units:
    The views count since the server was started. One sample becomes facts: means since then. Between two samples the
    differences make means and numbers of sessions. A wait without its signal part is time at the resource; the signal
    part is the queue for a processor, kept as CPU. WRITELOG is the wait of a commit. Reads are those of data files,
    writes those of log files (type_desc LOG, .ldf or file_id 2). Where files were not sampled, the time at the resource
    of PAGEIOLATCH and of WRITELOG stands for them.

Sources:
    Microsoft SQL Server documentation, sys.dm_os_wait_stats, sys.dm_io_virtual_file_stats, sys.master_files (file_id 2
    is a log), sys.dm_os_schedulers; sqlcmd utility (-s, -W). P. Randal, "Wait statistics, or please tell me where it
    hurts" (names of the columns, waits of idle threads).
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times, to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.printed import number_of
from leadline.formats.stamps import YEARS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="SQL Server waits",
    layers=(Layer.DATABASE,),
    fields={
        "io_stall_read_ms / num_of_reads": Field("db_data_read_latency_ms", "ms"),
        "io_stall_write_ms / num_of_writes": Field("db_log_write_latency_ms", "ms"),
        "WRITELOG": Field("db_commit_wait_ms", "ms"),
        "wait_time_ms - signal_wait_time_ms": Field("db_wait_event_sessions_count", "count"),
        "LCK_": Field("db_blocked_sessions_count", "count"),
    },
    record='sqlcmd -s "," -W -Q "SELECT SYSDATETIMEOFFSET() AS now, * FROM sys.dm_os_wait_stats" >> waits.csv, twice',
    marks=("wait_type", "waittype", "num_of_reads", "io_stall_read_ms", "latency", "runnable_tasks_count", "stall_ms"),
)

_SEPARATORS = (",", ";", "\t", "|")
_TIME = re.compile(
    r"now|ts(?:utc)?|(?:date)?time|date|getdate|(?:collect|captur|snapshot|sample|run)\w{0,12}(?:time|date|at)"
)
_WAITS = {"waittype": "type", "waitingtaskscount": "count", "waittimems": "ms", "signalwaittimems": "signal_ms"}
_WAITS |= {"waits": "s", "signals": "signal_s", "waitcount": "count"}
_FILES = {
    "numofreads": "reads", "iostallreadms": "read_ms", "numofwrites": "writes", "iostallwritems": "write_ms",
    "fileid": "file", "typedesc": "kind", "physicalname": "path", "filename": "path", "databaseid": "database",
    "databasename": "database", "database": "database", "dbname": "database",
}  # fmt: skip
_MEANS = re.compile(r"(?:avg|average)?(?:io)?(?P<way>read|write)s?(?:latency|stall|wait)(?:ms)?(?:avg)?")
_IDLE = re.compile(
    r"(?:SLEEP_|BROKER_|XE_|CLR_|QDS_|SQLTRACE_|WAIT_XTP|WAITFOR|FT_|DBMIRROR|PWAIT_|REDO_THREAD|PARALLEL_REDO|FSAGENT"
    r"|HADR_(?!SYNC_COMMIT)|LAZYWRITER_SLEEP|LOGMGR_QUEUE|ONDEMAND_TASK|REQUEST_FOR_DEADLOCK|RESOURCE_QUEUE|CHKPT"
    r"|SERVER_IDLE|SNI_HTTP|SP_SERVER_DIAG|DISPATCHER_QUEUE|CHECKPOINT_QUEUE|EXECSYNC|KSOURCE|MEMORY_ALLOCATION_EXT"
    r"|PVS_PREALLOC|SOS_WORK_DISP|UCS_SESSION|VDI_CLIENT|POPULATE_LOCK|STARTUP_DEP|CXCONSUMER|DIRTY_PAGE_POLL"
    r"|PREEMPTIVE_XE|PREEMPTIVE_OS_FLUSH|AZURE_IMDS|DIRTY_PAGE|WAIT_FOR_RESULTS|DEADLOCK_ENUM)"
)
_NOTE = re.compile(r"\(\d+ |Changed database|Msg \d")
_KEPT_MAX = 20
_MINUTE_S = 60.0
_SERVER = Entity(EntityKind.DATABASE, "sqlserver", UNNAMED_GUEST)

_Numbers = dict[str, float]


@dataclass(slots=True)
class _Header:
    """What the cells of the rows below a header are."""

    kind: str
    names: list[str]
    split: Callable[[str], list[str]]
    decimal_comma: bool = False


@dataclass(slots=True)
class _Snapshot:
    """What was counted since the server's start, at one moment."""

    waits: dict[str, _Numbers] = field(default_factory=dict)
    files: dict[str, _Numbers] = field(default_factory=dict)
    runnable: float = math.nan


def sniff(source: Source) -> int:
    """Sure by the columns of the views."""
    lines = source.head_uncut.splitlines()[:200]
    return 94 if any(_header(lines, number) is not None for number in range(len(lines))) else 0


def read(source: Source, request: Request) -> Capture:
    """The views as series between samples, or as facts of one.

    Raises:
        InputError: there is no row that belongs to a header.
    """
    builder = CaptureBuilder(source.name, "sqlserver-waits", META.tool)
    snapshots, zoned = _snapshots(source, request, builder)
    if not snapshots:
        raise InputError(
            source.name,
            found="no row of sys.dm_os_wait_stats or sys.dm_io_virtual_file_stats below a header",
            expected="the result of a query of one of these views, with the names of its columns",
            advice=f"Record {META.record}.",
        )
    builder.inventory.add(_SERVER, source.name, engine="sqlserver")
    if len(snapshots) == 1:
        builder.warn("one-sample", "one sample: means since the server's start; record twice to see the time between")
        _add_facts(next(iter(snapshots.values())), builder)
        return builder.build(clock_known=False)
    if all(key > 10**6 for key in snapshots):
        times = np.array(sorted(snapshots), dtype=np.int64)
    else:
        builder.warn("no-times", "samples have no times (add a column now); they were taken as a minute apart")
        times, zoned = synthetic_times(len(snapshots), _MINUTE_S, source.mtime_ns), False
    _add_series([snapshots[key] for key in sorted(snapshots)], times, builder, request)
    return builder.build(clock_known=zoned)


def _snapshots(source: Source, request: Request, builder: CaptureBuilder) -> tuple[dict[int, _Snapshot], bool]:
    """Samples by their time in UTC nanoseconds, or by their number where they have none; whether times have zones."""
    snapshots: dict[int, _Snapshot] = defaultdict(_Snapshot)
    header: _Header | None = None
    blocks: dict[str, int] = defaultdict(int)
    zoned = True
    lines = source.lines()
    for number, line in enumerate(lines):
        if not line.strip() or _NOTE.match(line) or not line.strip(" -,;|\t"):
            continue
        begun = _header(lines, number)
        if begun is not None:
            header = begun
            blocks[header.kind] += 1
            continue
        if header is None:
            continue
        try:
            cells = header.split(line)
        except csv.Error:
            cells = []
        if len(cells) != len(header.names):
            builder.warn("damaged-rows", "rows that do not fit their header were left out")
            continue
        row = dict(zip(header.names, cells, strict=True))
        moment = _moment(row.get("time", ""), request) if "time" in row else None
        if "time" in row and moment is None:
            builder.warn("damaged-rows", "rows that do not fit their header were left out")
            continue
        if moment is not None:
            zoned &= moment[1] or request.timezone is not None
        key = blocks[header.kind] if moment is None else moment[0]
        if not _keep(snapshots, key, header, row):
            builder.warn("damaged-rows", "rows that do not fit their header were left out")
    if snapshots and not zoned:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    return dict(snapshots), zoned


def _header(lines: list[str], number: int) -> _Header | None:
    """What a line of names of columns says; None where it is none."""
    line = lines[number].lstrip("\ufeff")
    low = line.casefold()
    if not any(mark in low.replace(" ", "_") for mark in META.marks):
        return None
    for separator in _SEPARATORS:
        if separator in line:
            names = _named([cell.strip().strip('"[]') for cell in line.split(separator)])
            if names is not None:

                def split(text: str, separator: str = separator) -> list[str]:
                    return [cell.strip() for cell in next(csv.reader([text], delimiter=separator))]

                return _Header(names[0], names[1], split, decimal_comma=separator != ",")
    ruler = lines[number + 1] if number + 1 < len(lines) else ""
    if re.fullmatch(r"-+(?: -+)+ *", ruler):
        spans = [(match.start(), match.end()) for match in re.finditer(r"-+", ruler)]

        def cut(text: str) -> list[str]:
            return [text[start:end].strip() for start, end in spans]

        names = _named(cut(line))
        return None if names is None else _Header(names[0], names[1], cut, decimal_comma=True)
    return None


def _named(cells: list[str]) -> tuple[str, list[str]] | None:
    """Which view columns are of, and what each is; None for another table."""
    plain = [re.sub(r"[\s_\[\]()./%]", "", cell).casefold() for cell in cells]
    names: list[str] = []
    for name in plain:
        mean = _MEANS.fullmatch(name)
        known = _WAITS.get(name) or _FILES.get(name) or (f"{mean['way']}_mean_ms" if mean is not None else None)
        known = known or ("runnable" if name == "runnabletaskscount" else None)
        names.append(known or ("time" if _TIME.fullmatch(name) and "time" not in names else f"?{name}"))
    seen = set(names)
    if {"type", "count"} <= seen and seen & {"ms", "s"}:
        return "waits", names
    if {"reads", "read_ms"} <= seen or {"writes", "write_ms"} <= seen or {"read_mean_ms", "write_mean_ms"} <= seen:
        return "files", names
    return ("schedulers", names) if "runnable" in seen and any("scheduler" in name for name in plain) else None


def _moment(text: str, request: Request) -> tuple[int, bool] | None:
    """A time as UTC nanoseconds, and whether it says its zone; None where it is none."""
    shorter = re.sub(r"(\.\d{6})\d+", r"\1", text.strip())
    try:
        moment = datetime.fromisoformat(re.sub(r" ([+-]\d\d:\d\d)$", r"\1", shorter))
    except ValueError:
        return None
    return (to_ns(moment, request), moment.tzinfo is not None) if moment.year in YEARS else None


def _keep(snapshots: dict[int, _Snapshot], key: int, header: _Header, row: dict[str, str]) -> bool:
    """Keep a row; False where it holds no number."""
    numbers = {name: _number(cell, header.decimal_comma) for name, cell in row.items() if not name.startswith("?")}
    if header.kind == "waits":
        ms = numbers["ms"] if "ms" in row else numbers.get("s", math.nan) * 1000.0
        signal = numbers["signal_ms"] if "signal_ms" in row else numbers.get("signal_s", 0.0) * 1000.0
        if not row["type"] or math.isnan(ms) or not numbers["count"] >= 0:
            return False
        snapshots[key].waits[row["type"][:64]] = {"count": numbers["count"], "ms": ms, "signal_ms": signal}
        return True
    if header.kind == "schedulers":
        if math.isnan(numbers["runnable"]):
            return False
        snapshots[key].runnable = np.nansum([snapshots[key].runnable, numbers["runnable"]])
        return True
    names = ("reads", "read_ms", "writes", "write_ms", "read_mean_ms", "write_mean_ms")
    known = {name: numbers[name] for name in names if math.isfinite(numbers.get(name, math.nan))}
    if not known:
        return False
    known["is_log"] = float(_is_log(row))
    files = snapshots[key].files
    files[f"{row.get('database', '')} {row.get('path') or row.get('file') or len(files)}"] = known
    return True


def _number(text: str, decimal_comma: bool) -> float:
    plain = text.strip().strip('"')
    return number_of(plain.replace(",", ".") if decimal_comma and plain.count(",") == 1 else plain)


def _is_log(row: dict[str, str]) -> bool:
    """Whether a file holds a log."""
    if row.get("kind"):
        return row["kind"].strip().upper() in ("LOG", "1")
    path = row.get("path", "").strip().casefold()
    return path.endswith((".ldf", "_log")) or (not path and row.get("file", "").strip() == "2")


def _mean_ms(files: dict[str, _Numbers], way: str, *, log: bool) -> float:
    """Mean of reads or writes of files, or the highest mean where they were not counted; NaN where there are none."""
    chosen = [numbers for numbers in files.values() if bool(numbers["is_log"]) is log]
    counts = sum(numbers.get(f"{way}s", 0.0) for numbers in chosen)
    if counts > 0:
        return sum(numbers.get(f"{way}_ms", 0.0) for numbers in chosen) / counts
    return max((numbers.get(f"{way}_mean_ms", math.nan) for numbers in chosen), default=math.nan)


def _read_and_write_ms(files: dict[str, _Numbers], waits: dict[str, _Numbers]) -> tuple[float, float]:
    """Means of reads of data files and of writes of logs; where files were not sampled, of the waits for them."""
    if files:
        return _mean_ms(files, "read", log=False), _mean_ms(files, "write", log=True)
    means = []
    for beginning in ("PAGEIOLATCH_", "WRITELOG"):
        chosen = [wait for name, wait in waits.items() if name.startswith(beginning)]
        count = sum(wait["count"] for wait in chosen)
        means.append(sum(wait["ms"] - wait["signal_ms"] for wait in chosen) / count if count > 0 else math.nan)
    return means[0], means[1]


def _add_facts(snapshot: _Snapshot, builder: CaptureBuilder) -> None:
    """Add means since the server's start."""
    waits = {name: w for name, w in snapshot.waits.items() if not _IDLE.match(name)}
    whole = sum(w["ms"] for w in waits.values())
    disk = sum(w["ms"] - w["signal_ms"] for name, w in waits.items() if name.startswith(("PAGEIOLATCH_", "WRITELOG")))
    read_ms, write_ms = _read_and_write_ms(snapshot.files, waits)
    facts = {
        "read_ms_since_start": read_ms,
        "log_write_ms_since_start": write_ms,
        "disk_wait_share_since_start": disk / whole if whole else math.nan,
        "signal_wait_share_since_start": sum(w["signal_ms"] for w in waits.values()) / whole if whole else math.nan,
        "runnable_tasks_count": snapshot.runnable,
    }
    known: dict[str, Any] = {name: round(value, 3) for name, value in facts.items() if math.isfinite(value)}
    builder.inventory.add(_SERVER, builder.info.name, **known)


def _add_series(
    snapshots: list[_Snapshot], times: NDArray[np.int64], builder: CaptureBuilder, request: Request
) -> None:
    """Add what was counted between samples."""
    seconds = np.diff(times) / 1e9
    series: dict[tuple[str, Entity], list[float]] = defaultdict(lambda: [math.nan] * len(times))
    spent: dict[str, list[float]] = defaultdict(lambda: [math.nan] * len(times))
    for place, (before, after) in enumerate(pairwise(snapshots), 1):
        files = _risen(before.files, after.files)
        waits = _risen(before.waits, after.waits)
        if files is None or waits is None:
            builder.warn("reset", "counters fell: the server was started again, that interval is not measured")
            continue
        read_ms, write_ms = _read_and_write_ms(files, waits)
        series["db_data_read_latency_ms", _SERVER][place] = read_ms
        series["db_log_write_latency_ms", _SERVER][place] = write_ms
        log = waits.get("WRITELOG")
        if log is not None and log["count"] > 0:
            series["db_commit_wait_ms", _SERVER][place] = log["ms"] / log["count"]
        if waits:
            per_second = 1000.0 * seconds[place - 1]
            working = {name: wait for name, wait in waits.items() if not _IDLE.match(name)}
            blocked = sum(wait["ms"] for name, wait in working.items() if name.startswith("LCK_"))
            series["db_blocked_sessions_count", _SERVER][place] = blocked / per_second
            spent["CPU"][place] = sum(wait["signal_ms"] for wait in working.values()) / per_second
            for name, wait in working.items():
                spent[name][place] = (wait["ms"] - wait["signal_ms"]) / per_second
    longest = sorted(spent, key=lambda name: (name != "CPU", -np.nansum(spent[name])))[: _KEPT_MAX + 1]
    for name in longest:
        if name == "CPU" or np.nansum(spent[name]) > 0:
            series["db_wait_event_sessions_count", Entity(EntityKind.DATABASE, name, _SERVER)] = spent[name]
    series[f"{RAW_PREFIX}sqlserver.runnable_tasks_count", _SERVER] = [one.runnable for one in snapshots]
    for (metric, entity), values in series.items():
        wanted = request.metrics is None if metric.startswith(RAW_PREFIX) else request.wants(metric)
        if wanted and np.isfinite(values).any():
            builder.add_series(metric, entity, times, np.array(values))


def _risen(before: dict[str, _Numbers], after: dict[str, _Numbers]) -> dict[str, _Numbers] | None:
    """By how much counters rose; None where one fell. What is new in the second sample was 0 in the first."""
    risen: dict[str, _Numbers] = {}
    for key, numbers in after.items():
        was = before.get(key, {})
        levels = ("is_log", "read_mean_ms", "write_mean_ms")
        steps = {name: value - (0.0 if name in levels else was.get(name, 0.0)) for name, value in numbers.items()}
        if any(steps[name] < 0 for name in ("count", "ms", "reads", "read_ms", "writes", "write_ms") if name in steps):
            return None
        risen[key] = steps
    return risen
