"""biosnoop: one line for each request of a disk, with who asked for it and how long it took.

Reads:
    What ``biosnoop`` of bcc (with ``-Q``, ``-P``) and ``biosnoop.bt`` of bpftrace print.

Sample:
    .. code-block:: text

        TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   QUE(ms) LAT(ms)
        0.000000    mysqld         1811    sdb       W 1142400    16384      0.01    0.55
        0.000771    kworker/u8:1   22177   sdb       W 41963894   4096       0.11    0.47

Lost:
    Sectors and patterns. When the recording began: times count from its first request. The last second, which is not
    whole, where there are others. Without ``-Q`` the time that a request waited in the kernel's queue.

Units:
    Milliseconds, bytes. Requests are counted in the second in which they completed. Who is the program that was on the
    CPU when the request was issued: for writes in the background a thread of the kernel (kworker).

Sources:
    bcc: tools/biosnoop.py, libbpf-tools/biosnoop.c; bpftrace: tools/biosnoop.bt.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="biosnoop",
    marks=("lat(ms)",),
    layers=(Layer.GUEST,),
    fields={
        "T=R": Field("disk_reads_per_s", "per_s"),
        "T=W": Field("disk_writes_per_s", "per_s"),
        "lines": Field("disk_iops", "per_s"),
        "BYTES of T=R": Field("disk_read_mib_per_s", "bytes_per_s"),
        "BYTES of T=W": Field("disk_write_mib_per_s", "bytes_per_s"),
        "QUE(ms) + LAT(ms)": Field("guest_disk_await_ms", "ms"),
        "QUE(ms) + LAT(ms) of T=R": Field("guest_disk_await_ms_read", "ms"),
        "QUE(ms) + LAT(ms) of T=W": Field("guest_disk_await_ms_write", "ms"),
        "p99 of QUE(ms) + LAT(ms)": Field("guest_disk_latency_ms_p99", "ms"),
        "BYTES of T=R by COMM": Field("process_read_kib_per_s", "bytes_per_s"),
        "BYTES of T=W by COMM": Field("process_write_kib_per_s", "bytes_per_s"),
    },
    record="biosnoop-bpfcc -Q > biosnoop.txt",
)

_HEADING = re.compile(r"TIME\((s|ms)\)\s+[A-Z][A-Z()a-z ]{4,120}LAT\(ms\)", re.ASCII)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)
_LOST = re.compile(r"Possibly lost (\d{1,12}) samples|Lost (\d{1,12}) events")
_CHATTER = re.compile(r"\^C|Attaching \d{1,5} probes?\.\.\.|Tracing block I/O.{0,80}|[#$] .{0,200}")
_SECONDS_MAX = 1_000_000
_KIB, _MIB = 1024.0, 1024.0 * 1024.0


@dataclass(slots=True)
class _Requests:
    """What a disk, or a way of it, completed."""

    seconds: list[int] = field(default_factory=list)
    waits_ms: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)

    def put(self, second: int, wait_ms: float, size: float) -> None:
        """One request."""
        self.seconds.append(second)
        self.waits_ms.append(wait_ms)
        self.sizes.append(size)


@dataclass(slots=True)
class _Log:
    """The requests by disk and by program, each of one way and of all."""

    columns: list[str] = field(default_factory=list)
    disks: defaultdict[tuple[str, str], _Requests] = field(default_factory=lambda: defaultdict(_Requests))
    programs: defaultdict[tuple[str, str], _Requests] = field(default_factory=lambda: defaultdict(_Requests))
    last: int = -1
    lost: int = 0

    def take(self, text: str) -> bool:
        """One line; False where it is none of biosnoop's."""
        if _HEADING.fullmatch(text):
            self.columns = text.split()
            return True
        if (missing := _LOST.search(text)) is not None:
            self.lost += int(missing[1] or missing[2])
            return True
        row = _row(self.columns, text)
        if row is None:
            return not text or _CHATTER.fullmatch(text) is not None
        self.disks[row.disk, "all"].put(row.second, row.wait_ms, row.size)
        self.disks[row.disk, row.way].put(row.second, row.wait_ms, row.size)
        self.programs[row.program, row.way].put(row.second, row.wait_ms, row.size)
        self.last = max(self.last, row.second)
        return True


def sniff(source: Source) -> int:
    """Sure by the heading."""
    return 93 if any(_HEADING.fullmatch(line.strip()) for line in source.head_text.splitlines()[:20]) else 0


def read(source: Source, request: Request) -> Capture:
    """The series of each disk and each program, a value for each second.

    Raises:
        InputError: a line is no request, or there is none.
    """
    builder = CaptureBuilder(source.name, "biosnoop", META.tool)
    lines = source.lines()
    if lines and not source.text().endswith(("\n", "\r")):
        builder.warn("cut", "the last line has no end and was left out")
        lines.pop()
    log = _Log()
    for number, line in enumerate(lines, 1):
        if not log.take(line.strip()):
            raise _refused(f"{source.name}:{number}", f"{line.strip()[:60]!r}")
    if log.last < 0:
        raise _refused(f"{source.name}:1", "no line of a request")
    if log.lost:
        builder.warn("lost", "requests that the tracer lost: there were more", log.lost)
    if "QUE(ms)" not in log.columns:
        builder.warn("no-queue", "times without that in the kernel's queue: record with -Q")
    builder.warn("no-times", "times count from the first request; the last was placed at the file's last change")
    count = max(log.last, 1)
    times = synthetic_times(count, 1.0, source.mtime_ns)
    for (name, way), requests in log.disks.items():
        _emit_disk(Entity(EntityKind.BLOCK_DEVICE, name, UNNAMED_GUEST), way, requests, times, (builder, request))
    for (name, way), requests in log.programs.items():
        metric = {"read": "process_read_kib_per_s", "write": "process_write_kib_per_s"}.get(way)
        if metric is not None and request.wants(metric):
            sums = _sums(requests.seconds, requests.sizes, count) / _KIB
            builder.add_series(metric, Entity(EntityKind.PROCESS, name, UNNAMED_GUEST), times, sums, interval_s=1.0)
    return builder.build(clock_known=False)


@dataclass(frozen=True, slots=True)
class _Row:
    second: int
    program: str
    disk: str
    way: str
    wait_ms: float
    size: float


def _row(columns: list[str], text: str) -> _Row | None:
    """The parts of a line; a program's name may hold blanks, everything else is one word."""
    words = text.split()
    if not columns or len(words) < len(columns):
        return None
    place = columns.index("COMM") if "COMM" in columns else -1
    if place < 0:
        return None
    extra = len(words) - len(columns)
    words[place : place + extra + 1] = [" ".join(words[place : place + extra + 1])]
    cells = dict(zip(columns, words, strict=True))
    numbers = [cells[name] for name in columns if name.endswith("(ms)") or name in {"TIME(s)", "BYTES"}]
    if not all(_NUMBER.fullmatch(number) for number in numbers):
        return None
    unit_s = 1e-3 if columns[0] == "TIME(ms)" else 1.0
    second = int(float(cells[columns[0]]) * unit_s)
    if second > _SECONDS_MAX:
        return None
    way = {"R": "read", "W": "write", "F": "flush", "D": "discard"}.get(cells.get("T", "")[:1], "other")
    waited = float(cells["LAT(ms)"]) + float(cells.get("QUE(ms)", 0))
    program = f"{cells['COMM']} ({cells['PID']})" if "PID" in cells else cells["COMM"]
    return _Row(second, program, cells.get("DISK", "all-disks"), way, waited, float(cells.get("BYTES", "nan")))


def _sums(seconds: list[int], values: list[float], count: int) -> NDArray[np.float64]:
    """The sum [count] of what came in each second; what came after the last whole one is left out."""
    return np.bincount(seconds, weights=values, minlength=count)[:count].astype(np.float64)


def _emit_disk(
    disk: Entity, way: str, requests: _Requests, times: NDArray[np.int64], to: tuple[CaptureBuilder, Request]
) -> None:
    builder, request = to
    size = len(times)
    counts = _sums(requests.seconds, [1.0] * len(requests.seconds), size)
    waits = _sums(requests.seconds, requests.waits_ms, size)
    means = np.divide(waits, counts, out=np.full(size, np.nan), where=counts > 0)
    rows: dict[str, NDArray[np.float64]] = {}
    if way == "all":
        rows = {"disk_iops": counts, "guest_disk_await_ms": means, "guest_disk_latency_ms_p99": _p99(requests, size)}
    elif way in {"read", "write"}:
        bytes_per_s = _sums(requests.seconds, requests.sizes, size)
        rows = {
            f"disk_{way}s_per_s": counts,
            f"guest_disk_await_ms_{way}": means,
            f"disk_{way}_mib_per_s": bytes_per_s / _MIB,
        }
    for metric, values in rows.items():
        if request.wants(metric) and np.isfinite(values).any():
            builder.add_series(metric, disk, times, values, interval_s=1.0)


def _p99(requests: _Requests, size: int) -> NDArray[np.float64]:
    """The 99th percentile [size] of what took how long in each second; NaN where nothing completed."""
    order = np.argsort(requests.seconds, kind="stable")
    seconds, waits = np.array(requests.seconds)[order], np.array(requests.waits_ms)[order]
    p99 = np.full(size, np.nan)
    begins = np.searchsorted(seconds, np.arange(size + 1))
    for second in range(size):
        if begins[second + 1] > begins[second]:
            p99[second] = np.percentile(waits[begins[second] : begins[second + 1]], 99)
    return p99


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="the heading of biosnoop and a line for each request",
        advice=f"Record it with: {META.record}",
    )
