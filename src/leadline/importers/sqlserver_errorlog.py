r"""SQL Server's error log: requests that took longer than 15 s, full disks and logs, memory that was paged out.

Reads:
    ``ERRORLOG`` files of SQL Server 2005 and later (UTF-16 or UTF-8), lines of them that people paste, and
    ``sp_readerrorlog`` saved as text or CSV (LogDate, ProcessInfo, Text).

Sample:
    .. code-block:: text

        2023-05-11 02:14:27.31 spid7s      SQL Server has encountered 37 occurrence(s) of I/O requests taking longer
        than 15 seconds to complete on file [E:\\MSSQL\\DATA\\tempdb.mdf] in database id 2.

    (each message is one line).

Lost:
    All other messages. Names of databases and files; the drive of a file is kept.

Units:
    The server tells at most every five minutes how many requests took longer than 15 s: they are counted in the
    interval of a minute in which it told. Times are of the server's clock.

Sources:
    Microsoft SQL Server documentation, MSSQLSERVER_833 (I/O requests taking longer than 15 seconds), 1105 and 9002
    (no space), 17890 (a significant part of process memory has been paged out), 17883 to 17890.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leadline.core.io.source import Source

LONG = "guest_disk_requests_over_15_s_per_s"
_FULL = "db_out_of_space_errors_per_s"
_PAGED = "db_memory_paged_out_per_s"

META = ImporterMeta(
    tool="SQL Server error log",
    layers=(Layer.DATABASE, Layer.GUEST),
    fields={
        "I/O requests taking longer than 15 seconds": Field(LONG, "per_s"),
        "Error: 1105, 9002|not enough space": Field(_FULL, "per_s"),
        "process memory has been paged out": Field(_PAGED, "per_s"),
    },
    record='sqlcmd -W -Q "EXEC sp_readerrorlog 0, 1" > errorlog.txt',
    marks=("spid", "i/o requests taking longer"),
)

_LINE = re.compile(
    r"\"?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.:,]\d{1,7})?)\"?[ \t,;|]{1,20}\"?"
    r"(spid\d{1,6}s?|Server|Logon|Backup)\"?[ \t,;|]{1,40}(\S.{0,4000})"
)
_LONG_IO = re.compile(
    r"encountered (\d{1,9}) occurrence\(s\) of I/O requests taking longer than (\d{1,4}) seconds to complete on file "
    r"\[([^\]]{1,400})\]"
)
_NO_SPACE = re.compile(r"Error: (?:1105|9002),|There is not enough space on the disk")
_PAGED_OUT = re.compile(r"significant part of sql server process memory has been paged out", re.IGNORECASE)
_DRIVE = re.compile(r"([A-Za-z]:)[\\/]|(/[\w.-]{1,80}(?:/[\w.-]{1,80}){0,8})/[^/]{1,200}$")
_SERVER = Entity(EntityKind.DATABASE, "sqlserver", UNNAMED_GUEST)
_STEP_S = 60
_STEPS_MAX = 18_000
_NS_PER_S = 1_000_000_000


@dataclass(slots=True)
class _Log:
    """What the lines tell: how many events of an entity there were, by the nanosecond."""

    times: list[int] = field(default_factory=list)
    counts: dict[tuple[str, Entity], list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))


def sniff(source: Source) -> int:
    """Sure by the time and the process that begin a line, or by the message of slow requests itself."""
    lines = [line for line in source.head_text.splitlines()[:80] if line.strip()]
    count = sum(1 for line in lines if _LINE.match(line.lstrip()) is not None)
    if any(_LONG_IO.search(line) for line in lines):
        return 93 if count else 60
    return 90 if count and count * 3 >= len(lines) and "spid" in source.head_text else 0


def read(source: Source, request: Request) -> Capture:
    """The events of each drive and of the server, counted by the minute.

    Raises:
        InputError: no line has a time.
    """
    builder = CaptureBuilder(source.name, "sqlserver-errorlog", META.tool)
    log = _Log()
    for line in source.lines():
        parts = _LINE.match(line.lstrip())
        if parts is None:
            continue
        time_ns = _moment(source, parts[1], request)
        log.times.append(time_ns)
        for metric, entity, count in _events(parts[3]):
            log.counts[metric, entity].append((time_ns, count))
    if not log.times:
        raise InputError(
            source.name,
            found="no line with a time and a process (spid7s)",
            expected="SQL Server's ERRORLOG, or sp_readerrorlog saved as text",
            advice=f"Run: {META.record}",
        )
    builder.inventory.add(_SERVER, source.name, engine="sqlserver")
    if request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    _emit(log, builder, request)
    return builder.build(clock_known=request.timezone is not None)


def _moment(source: Source, text: str, request: Request) -> int:
    try:
        stamp = datetime.fromisoformat(text[:19].replace("T", " "))
    except ValueError:
        raise InputError(
            source.name, found=f"the time {text!r}", expected="year-month-day hour:minute:second", advice="Mend it."
        ) from None
    return to_ns(stamp, request)


def _events(text: str) -> Iterator[tuple[str, Entity, float]]:
    """What a message tells: metric, whose, how often."""
    slow = _LONG_IO.search(text)
    if slow is not None:
        drive = _DRIVE.search(slow[3])
        name = "a disk" if drive is None else (drive[1].upper() if drive[1] else drive[2])
        yield LONG, Entity(EntityKind.BLOCK_DEVICE, name, UNNAMED_GUEST), float(slow[1])
    elif _NO_SPACE.search(text) is not None:
        yield _FULL, _SERVER, 1.0
    elif _PAGED_OUT.search(text) is not None:
        yield _PAGED, _SERVER, 1.0


def _emit(log: _Log, builder: CaptureBuilder, request: Request) -> None:
    """Add a series per kind of event and entity, in steps of a minute or longer; zeros where nothing was logged."""
    first, last = min(log.times) // _NS_PER_S, max(log.times) // _NS_PER_S
    step_s = max(_STEP_S, -(-(last - first + 1) // _STEPS_MAX))
    count = (last - first) // step_s + 1
    times = (first + step_s * np.arange(1, count + 1, dtype=np.int64)) * _NS_PER_S
    rows = dict(log.counts)
    for metric in (_FULL, _PAGED):
        rows.setdefault((metric, _SERVER), [])
    for (metric, entity), events in rows.items():
        if not request.wants(metric):
            continue
        rates = np.zeros(count)
        for time_ns, number in events:
            rates[(time_ns // _NS_PER_S - first) // step_s] += number / step_s
        builder.add_series(metric, entity, times, rates, interval_s=step_s)
