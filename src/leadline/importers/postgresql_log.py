r"""What a PostgreSQL server wrote to its log: errors, a full disk, checkpoints, temporary files, lock waits.

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
    (``log_temp_files``), lock waits (``log_lock_waits``) and log-ons (``log_connections``) are there from the first
    line of their kind.

Units:
    Events per second and bytes per second, counted in whole seconds from the first line to the last; in longer steps
    where the log covers more than a day. A lock wait is told in milliseconds, the mean of those that a line names.

Sources:
    PostgreSQL 12 to 18 documentation, chapter "Error Reporting and Logging"; the server's message texts in
    ``src/backend`` (``xlog.c``, ``fd.c``, ``proc.c``, ``postinit.c``, ``md.c``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.stamps import YEARS

META = ImporterMeta(
    tool="PostgreSQL log",
    layers=(Layer.DATABASE,),
    fields={
        "ERROR|FATAL|PANIC": Field("db_errors_per_s", "per_s"),
        "No space left on device": Field("db_out_of_space_errors_per_s", "per_s"),
        "checkpoint starting: time": Field("db_checkpoints_timed_per_s", "per_s"),
        "checkpoint starting": Field("db_checkpoints_requested_per_s", "per_s"),
        "temporary file": Field("db_temp_bytes_per_s", "bytes_per_s"),
        "connection received": Field("db_logons_per_s", "per_s"),
        "waiting|acquired ... after": Field("db_lock_wait_ms", "ms"),
    },
    record="grep -h . /var/log/postgresql/postgresql-*.log > postgresql.log",
)

_LEVELS = "DEBUG[1-5]?|INFO|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC|STATEMENT|DETAIL|HINT|CONTEXT|QUERY|LOCATION"
_LINE = re.compile(
    r"(?P<time>(?:19|20)\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) (?P<zone>[A-Z]{1,5}|[+-]\d\d(?::?\d\d)?)\b"
    rf".{{0,300}}?(?<![A-Za-z])(?P<level>{_LEVELS}):  (?P<text>.*)"
)
_ZONE_OFFSET = {"UTC": "+00:00", "GMT": "+00:00", "Z": "+00:00"}
_ALWAYS_LOGGED = ("db_errors_per_s", "db_out_of_space_errors_per_s")
_BAD = frozenset({"ERROR", "FATAL", "PANIC"})
_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_TEMPORARY = re.compile(r"temporary file: path .*, size (\d{1,18})")
_LOCK = re.compile(r"process \d+ (?:still waiting for|acquired) \w+ on .* after (\d{1,12}\.\d+) ms")
_STEPS_MAX = 86_400
_NS_PER_S = 1_000_000_000
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
    events = _Events(request)
    for line in source.lines():
        match = _LINE.match(line)
        if match is not None:
            events.take(match)
    if not events.times_ns:
        raise InputError(
            source.name,
            found="no line with a time and a level, such as 'LOG:  '",
            expected="a PostgreSQL log in English, its lines beginning with the time",
            advice="Set log_line_prefix = '%m [%p] ' and lc_messages = 'C', or give the log of another time.",
        )
    if events.unknown_zones:
        zones = ", ".join(sorted(events.unknown_zones))
        zone = "UTC; --timezone sets it" if request.timezone is None else request.timezone
        builder.warn("no-zone", f"times are in {zones}, which names no offset, and were taken as {zone}")
    builder.inventory.add(_CLUSTER, source.name, engine="postgresql")
    times, series = events.series()
    for metric, values in series.items():
        if request.wants(metric):
            builder.add_series(metric, _CLUSTER, times, values, interval_s=events.step_s)
    return builder.build(clock_known=not events.unknown_zones or request.timezone is not None)


@dataclass(slots=True)
class _Events:
    """What the lines tell: when each was written, and the metric and value of those that count."""

    request: Request
    times_ns: list[int] = field(default_factory=list)
    values_by_metric: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    unknown_zones: set[str] = field(default_factory=set)

    @property
    def first_ns(self) -> int:
        """The whole second in which the first line was written."""
        return min(self.times_ns) // _NS_PER_S * _NS_PER_S

    @property
    def step_s(self) -> int:
        """What a value covers: a second, or as much as keeps a long log to a day of values."""
        return -(-((max(self.times_ns) - self.first_ns) // _NS_PER_S + 1) // _STEPS_MAX)

    def take(self, match: re.Match[str]) -> None:
        """Take in a line; one whose time is none is left out."""
        zone = match["zone"]
        offset = _ZONE_OFFSET.get(zone, zone)
        if offset[0] not in "+-":
            self.unknown_zones.add(zone)
            offset = ""
        try:
            moment = datetime.fromisoformat(match["time"] + offset)
        except ValueError:
            return
        if moment.year not in YEARS:
            return
        time_ns = to_ns(moment, self.request)
        self.times_ns.append(time_ns)
        for metric, value in _events_of(match["level"], match["text"]):
            self.values_by_metric.setdefault(metric, []).append((time_ns, value))

    def series(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
        """Times int64 [n] at which the steps end, and for each metric float64 [n]."""
        first, step_ns = self.first_ns, self.step_s * _NS_PER_S
        count = (max(self.times_ns) - first) // step_ns + 1
        times = first + step_ns * np.arange(1, count + 1, dtype=np.int64)
        series = {}
        for metric in dict.fromkeys((*_ALWAYS_LOGGED, *self.values_by_metric)):
            events = self.values_by_metric.get(metric, [])
            places = np.array([(time_ns - first) // step_ns for time_ns, _ in events], dtype=np.int64)
            sums = np.bincount(places, weights=[value for _, value in events], minlength=count)
            if metric.endswith("_ms"):
                number = np.bincount(places, minlength=count)
                series[metric] = np.divide(sums, number, out=np.full(count, np.nan), where=number > 0)
            else:
                series[metric] = sums / self.step_s
        return times, series


def _events_of(level: str, text: str) -> Iterator[tuple[str, float]]:
    """(metric, value) of each event that a line tells."""
    if level in _BAD:
        yield "db_errors_per_s", 1.0
    if level in _BAD or level in {"WARNING", "LOG"}:
        if _SPACE.search(text):
            yield "db_out_of_space_errors_per_s", 1.0
    if level != "LOG":
        return
    if text.startswith("checkpoint starting:"):
        of_time = text.endswith(": time")
        yield ("db_checkpoints_timed_per_s" if of_time else "db_checkpoints_requested_per_s"), 1.0
    elif text.startswith("connection received:"):
        yield "db_logons_per_s", 1.0
    elif (size := _TEMPORARY.match(text)) is not None:
        yield "db_temp_bytes_per_s", float(size[1])
    elif (wait := _LOCK.match(text)) is not None:
        yield "db_lock_wait_ms", float(wait[1])
