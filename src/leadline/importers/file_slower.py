"""ext4slower and its kin: one line for each operation on a file that took longer than a limit, with who waited.

Reads:
    What ``ext4slower``, ``xfsslower``, ``btrfsslower``, ``zfsslower``, ``nfsslower`` and ``fileslower`` of bcc print,
    also with ``-j``, and ``fsslower`` of libbpf-tools.

Sample:
    .. code-block:: text

        Tracing ext4 operations slower than 10 ms
        TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME
        14:51:02 postgres       1788   S 0       0          18.32 000000010000000A00000031

Lost:
    Whatever was quicker than the limit: the longest wait of each second is one that was felt, a mean is not known.
    Offsets and sizes. The names of all files but the 20 slowest, and of all programs but 50. The day, which is not
    printed.

Units:
    Milliseconds from the call into the file system to its return, in the second in which it returned. ``S`` and ``F``
    are syncs.

Sources:
    bcc: tools/ext4slower.py, xfsslower.py, nfsslower.py, fileslower.py and their examples; libbpf-tools/fsslower.c.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="ext4slower",
    marks=("lat(ms) filename", "offset_b,latency_us,file"),
    layers=(Layer.GUEST,),
    fields={
        "lines": Field("guest_slow_file_operations_per_s", "per_s"),
        "longest LAT(ms)": Field("guest_file_wait_ms_max", "ms"),
        "longest LAT(ms) of T=S": Field("guest_file_sync_wait_ms_max", "ms"),
    },
    record="ext4slower-bpfcc 10 > ext4slower.txt",
)

_HEADING = re.compile(r"TIME(?:\(s\))?\s+COMM\s+[PT]ID\s+[TD]\s+BYTES\s+(?:OFF_KB\s+)?LAT\(ms\)\s+FILENAME", re.ASCII)
_CSV_HEADING = "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE"
_ROW = re.compile(
    r"(?P<time>\d\d:\d\d:\d\d|\d{1,7}\.\d{1,6})\s+(?P<comm>\S.{0,30}?)\s+(?P<pid>\d{1,10})\s+(?P<way>[RWOSFGD])"
    r"\s+(?:\d{1,20})\s+(?:-?\d{1,20}\s+)?(?P<ms>\d{1,9}\.\d{1,6})\s(?P<file>.{0,400})",
    re.ASCII,
)
_CSV_ROW = re.compile(
    r"(?P<time>\d{1,18}),(?P<comm>[^,]{1,30}),(?P<pid>\d{1,10}),(?P<way>[RWOSFGD]),\d{1,20},-?\d{1,20},"
    r"(?P<us>\d{1,15}),(?P<file>.{0,400})",
    re.ASCII,
)
_CHATTER = re.compile(r"\^C|Tracing .{0,120}|Possibly lost .{0,40}|Lost \d{1,12} events.{0,40}|[#$] .{0,200}")
_SYNCS = frozenset("SF")
_FILES_MAX = 20
_PROGRAMS_MAX = 50
_SECONDS_MAX = 200_000  # two days, of which each second is kept


@dataclass(slots=True)
class _Operations:
    """The operations that a program, or all of them, waited for."""

    seconds: list[int] = field(default_factory=list)
    waits_ms: list[float] = field(default_factory=list)
    syncs: list[bool] = field(default_factory=list)

    def put(self, second: int, wait_ms: float, *, is_sync: bool) -> None:
        """One operation."""
        self.seconds.append(second)
        self.waits_ms.append(wait_ms)
        self.syncs.append(is_sync)


@dataclass(slots=True)
class _Trace:
    """The operations by program, "" for all; and the longest of each file."""

    programs: defaultdict[str, _Operations] = field(default_factory=lambda: defaultdict(_Operations))
    files: dict[str, float] = field(default_factory=dict)
    has_clock: bool = False
    day: int = 0
    last: int = -1
    left_out: int = 0

    def take(self, line: str) -> None:
        """One line."""
        match = _ROW.fullmatch(line) or _CSV_ROW.fullmatch(line)
        if match is None:
            is_known = not line or line == _CSV_HEADING or _HEADING.fullmatch(line) or _CHATTER.fullmatch(line)
            self.left_out += not is_known
            return
        parts = match.groupdict()
        second = self._second(parts["time"], is_csv="us" in parts)
        wait_ms = float(parts["ms"]) if "ms" in parts else float(parts["us"]) / 1000.0
        program = f"{parts['comm'].strip()} ({parts['pid']})"
        for name in ("", program):
            self.programs[name].put(second, wait_ms, is_sync=parts["way"] in _SYNCS)
        name = parts["file"].strip()
        self.files[name] = max(wait_ms, self.files.get(name, 0.0))

    def _second(self, text: str, *, is_csv: bool) -> int:
        """Seconds of the day, which go on behind midnight; else since the tracer or the machine began."""
        if ":" not in text:
            return int(text) // 1_000_000 if is_csv else int(float(text))
        self.has_clock = True
        hours, minutes, seconds = (int(part) for part in text.split(":"))
        second = self.day + (hours * 60 + minutes) * 60 + seconds
        if second < self.last - 43_200:
            self.day += 86_400
            second += 86_400
        self.last = max(self.last, second)
        return second


def sniff(source: Source) -> int:
    """Sure by the heading."""
    lines = [line.strip() for line in source.head_text.splitlines()[:20]]
    return 93 if any(_HEADING.fullmatch(line) or line == _CSV_HEADING for line in lines) else 0


def read(source: Source, request: Request) -> Capture:
    """The series of the machine and of each program, a value for each second.

    Raises:
        InputError: there is no line of an operation.
    """
    builder = CaptureBuilder(source.name, "file-slower", META.tool)
    lines = source.lines()
    if lines and not source.text().endswith(("\n", "\r")):
        builder.warn("cut", "the last line has no end and was left out")
        lines.pop()
    trace = _Trace()
    for line in lines:
        trace.take(line.strip())
    seconds = trace.programs[""].seconds
    if not seconds or max(seconds) - min(seconds) > _SECONDS_MAX:
        raise InputError(
            source.name,
            found="no operation that was slower than the limit" if not seconds else "times that are years apart",
            expected="the heading of ext4slower and a line for each operation",
            advice=f"Record while it is slow, with a lower limit if need be: {META.record}",
        )
    if trace.left_out:
        builder.warn("left-out", "lines that are no operation were left out", trace.left_out)
    first = min(seconds)
    count = max(seconds) - first + 1
    times = _times(source, request, builder, trace, (first, count))
    _emit(UNNAMED_GUEST, trace.programs.pop(""), first, times, (builder, request))
    for name, operations in sorted(trace.programs.items(), key=lambda item: -sum(item[1].waits_ms))[:_PROGRAMS_MAX]:
        _emit(Entity(EntityKind.PROCESS, name, UNNAMED_GUEST), operations, first, times, (builder, request))
    if len(trace.programs) > _PROGRAMS_MAX:
        builder.warn("programs", f"only the {_PROGRAMS_MAX} programs that waited longest are kept by name")
    slowest = sorted(trace.files.items(), key=lambda item: -item[1])[:_FILES_MAX]
    builder.inventory.add(UNNAMED_GUEST, source.name, slow_files_ms=dict(slowest))
    return builder.build(clock_known=False)


def _times(
    source: Source, request: Request, builder: CaptureBuilder, trace: _Trace, span: tuple[int, int]
) -> NDArray[np.int64]:
    """The ends of the seconds [n] of the trace, UTC nanoseconds; ``span`` is the first second and their count."""
    first, count = span
    if not trace.has_clock:
        builder.warn("no-times", "times count from the first operation; the last was placed at the file's last change")
        return synthetic_times(count, 1.0, source.mtime_ns)
    builder.warn("no-date", "times have no date and no zone: that of the file's last change, and UTC")
    day = assumed_date(source, request) - timedelta(days=trace.day // 86_400)
    start = to_ns(datetime.combine(day, time()), request)
    return start + (first + 1 + np.arange(count, dtype=np.int64)) * 1_000_000_000


def _emit(
    entity: Entity, operations: _Operations, first: int, times: NDArray[np.int64], to: tuple[CaptureBuilder, Request]
) -> None:
    """Add what was slow in each second; of a program only the seconds in which it waited."""
    builder, request = to
    places = np.array(operations.seconds, dtype=np.int64) - first
    waits, syncs = np.array(operations.waits_ms), np.array(operations.syncs)
    counts = np.bincount(places, minlength=len(times)).astype(np.float64)
    longest, longest_sync = np.full(len(times), -np.inf), np.full(len(times), -np.inf)
    np.maximum.at(longest, places, waits)
    np.maximum.at(longest_sync, places[syncs], waits[syncs])
    rows = {
        "guest_slow_file_operations_per_s": counts,
        "guest_file_wait_ms_max": np.where(np.isfinite(longest), longest, np.nan),
        "guest_file_sync_wait_ms_max": np.where(np.isfinite(longest_sync), longest_sync, np.nan),
    }
    kept = slice(None) if entity.kind is EntityKind.GUEST else np.flatnonzero(counts)
    for metric, values in rows.items():
        if request.wants(metric) and np.isfinite(values[kept]).any():
            builder.add_series(metric, entity, times[kept], values[kept], interval_s=1.0)
