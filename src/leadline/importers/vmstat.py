"""Output of ``vmstat`` on Linux: run queue, blocked tasks, swapping, CPU; with ``-d`` its counters per disk.

Reads:
    ``vmstat`` with any of ``-w -a -n -t -S``, short or long, with repeated headings; ``vmstat -d``; lines that a
    wrapper prefixed with an ISO time; the table ``collected,value,metric`` that pgbench-tools makes of it. Headings
    may be translated: columns are known by their place.

Sample:
    .. code-block:: text

        --procs-- -----------------------memory---------------------- ---swap-- -----io---- -system-- ----------cpu--
           r    b         swpd         frei         buff        Cache   si   so    bi    bo   in   cs  us  sy  id  wa
           4    0            0     24217476         2540       254984    0    0  4954  3993 1714 5732   5   7  86   3

Lost:
    Without ``-t`` the times: samples are placed one second apart before the last change of the file. With ``-d`` and
    without ``-t`` the interval is not known: only averages per request. Its busy seconds (``sec``) are too coarse.

Units:
    Memory and swap columns are KiB unless ``vmstat -S`` was used, which the output does not say; a machine with less
    than 64 MiB in all is taken as a sign of ``-S`` and its memory is left out. Blocks are 1 KiB, sectors 512 bytes.
    Rates and CPU shares of the first line are averages since boot; the queue and memory columns are not. ``us``
    holds user and nice time, ``sy`` holds interrupts.

Sources:
    vmstat(8) of procps-ng; Linux kernel documentation, admin-guide/iostats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import EPOCH, synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.sysstat.text import add_cpu_busy
from leadline.formats.tables import Columns, SampleTable, TableScheme, emit

META = ImporterMeta(
    tool="vmstat",
    marks=("collected,value,metric", "proc", "disk-"),
    layers=(Layer.GUEST,),
    fields={
        "r": Field("guest_run_queue_count", "count"),
        "b": Field("guest_blocked_count", "count"),
        "swpd": Field("guest_swap_used_mib", "kib"),
        "free": Field("guest_memory_free_mib", "kib"),
        "buff": Field("guest_memory_buffers_mib", "kib"),
        "cache": Field("guest_memory_cached_mib", "kib"),
        "inact": Field("guest_memory_inactive_mib", "kib"),
        "active": Field("guest_memory_active_mib", "kib"),
        "si": Field("guest_swap_in_kib_per_s", "kib_per_s"),
        "so": Field("guest_swap_out_kib_per_s", "kib_per_s"),
        "bi": Field("guest_block_in_kib_per_s", "kib_per_s"),
        "bo": Field("guest_block_out_kib_per_s", "kib_per_s"),
        "in": Field("guest_interrupts_per_s", "per_s"),
        "cs": Field("guest_context_switches_per_s", "per_s"),
        "us": Field("guest_cpu_user_pct", "pct"),
        "sy": Field("guest_cpu_system_pct", "pct"),
        "id": Field("guest_cpu_idle_pct", "pct"),
        "wa": Field("guest_cpu_iowait_pct", "pct"),
        "st": Field("guest_cpu_steal_pct", "pct"),
        "gu": Field("guest_cpu_guest_pct", "pct"),
    },
    record="vmstat -t -w 1 > vmstat.txt",
)

_COLUMNS = tuple(name for name in META.fields if name not in {"inact", "active"})
_NOT_AVERAGED = {META.fields[name].metric for name in ("r", "b", "swpd", "free", "buff", "cache", "inact", "active")}
_MEMORY = ("swpd", "free", "buff", "cache", "inact", "active", "si", "so")
_PLAUSIBLE_MEMORY_KIB = 64 * 1024  # Judgement: no database server has less, and ``-S M`` shows 64 GiB as 65536
_LONG_HEADER = "collected,value,metric"
_DISK_COLUMNS = tuple("reads read_merged read_sectors read_ms writes write_merged write_sectors write_ms".split())

_STAMP = re.compile(
    r"^\[?((?:19|20)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)\]?[\t ]+"
)
_TAIL_STAMP = re.compile(r"\s((?:19|20)\d\d-\d\d-\d\d \d\d:\d\d:\d\d)(?:\s+([A-Z]{2,5}|[+-]\d\d))?\s*$")
_GROUPS = re.compile(r"^\s*-*procs?-* +-+\S+-+ ")
_HEADING = re.compile(r"^\s*r\s+b\s+\S+\s+\S+\s+\S+\s+\S+\s+si\s+so\s+")
_DISK_GROUPS = re.compile(r"^\s*disk- -+\S+-+ -+\S+-+ -+\S+-+")
# Abbreviations that mean one zone only; CST, IST and BST do not.
_ZONES_H = {
    "UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "EST": -5,
    "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}  # fmt: skip


def sniff(source: Source) -> int:
    """Sure by the pair of headings, which no other tool prints; the long table by its first metric."""
    lines = source.head_text.splitlines()[:40]
    if lines and lines[0].strip() == _LONG_HEADER:
        return 90 if len(lines) > 1 and lines[1].endswith(",r") else 0
    plain = [_STAMP.sub("", line) for line in lines]
    if any(_GROUPS.match(a) and _HEADING.match(b) for a, b in pairwise(plain)):
        return 95
    return 95 if any(_DISK_GROUPS.match(line) for line in plain) else 0


def read(source: Source, request: Request) -> Capture:
    """The guest's series, or with ``-d`` its disks'.

    Raises:
        InputError: no sample, or a line in the middle that is neither heading nor sample.
    """
    builder = CaptureBuilder(source.name, "vmstat", META.tool)
    text = source.text()
    if text.startswith(_LONG_HEADER):
        reading = _read_long(source, text, builder)
    else:
        reading = _read_lines(source, text, builder)
    times, known = _times(reading, source, request, builder)
    if reading.disks is not None:
        _emit_disks(reading.disks, times, reading.interval_known, builder, request)
    else:
        _emit_guest(reading.table, times, builder, request)
    return builder.build(clock_known=known)


@dataclass(slots=True)
class _Reading:
    """What the lines held: one of two tables, with the moment of each sample where the lines say it."""

    table: SampleTable = field(default_factory=lambda: SampleTable("", _COLUMNS))
    disks: SampleTable | None = None
    stamps: list[datetime | None] = field(default_factory=list)
    zone_name: str | None = None
    names: tuple[str, ...] = _COLUMNS

    @property
    def interval_known(self) -> bool:
        return None not in self.stamps

    def add(self, item: str, values: list[float], stamp: datetime | None) -> None:
        table = self.disks if self.disks is not None else self.table
        moment = -1 if stamp is None else (stamp.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
        table.add(moment, item, values)
        if len(table.moments) > len(self.stamps):
            self.stamps.append(stamp)


def _read_lines(source: Source, text: str, builder: CaptureBuilder) -> _Reading:
    lines = text.splitlines()
    last = max((i for i, line in enumerate(lines, 1) if line.strip()), default=0)
    open_end = bool(text) and text[-1] not in "\r\n"
    reading = _Reading()
    for index, line in enumerate(lines, 1):
        if not line.strip():
            continue
        prefix = _STAMP.match(line)
        body = line[prefix.end() :] if prefix else line
        if _heading(reading, body):
            continue
        try:
            _take(reading, body, prefix[1] if prefix else None, cut=open_end and index == last)
        except ValueError:
            if index == last:
                builder.warn("cut", "the last line is cut and was left out")
                continue
            raise _refused(source, index, line, reading) from None
    table = reading.disks if reading.disks is not None else reading.table
    if not table.moments:
        raise InputError(
            source.name,
            found="no sample",
            expected="a heading and at least one line of numbers",
            advice=f"Record it again: {META.record}",
        )
    return reading


def _take(reading: _Reading, body: str, stamp: str | None, *, cut: bool) -> None:
    """Take in a line of numbers; ValueError when it is none or has no end."""
    if cut:
        raise ValueError(body)
    tail = _TAIL_STAMP.search(body)
    if tail is not None:
        reading.zone_name = tail[2] or reading.zone_name
        body, stamp = body[: tail.start()], tail[1]
    reading.add(*_row(reading, body.split()), _moment(stamp))


def _refused(source: Source, index: int, line: str, reading: _Reading) -> InputError:
    columns = "a disk and 10" if reading.disks is not None else str(len(reading.names))
    return InputError(
        f"{source.name}:{index}",
        found=f"{line.strip()[:60]!r}",
        expected=f"a heading or {columns} numbers",
        advice="The file is damaged or was edited; record it again, or cut the bad part out.",
    )


def _heading(reading: _Reading, body: str) -> bool:
    """Take in a heading; False when the line is none."""
    if _GROUPS.match(body):
        return True
    if _DISK_GROUPS.match(body):
        if reading.disks is None:
            reading.disks = SampleTable("disk", _DISK_COLUMNS)
        return True
    words = body.split()
    if reading.disks is not None:
        reading.zone_name = words[10] if len(words) == 11 and words[9].isalpha() else reading.zone_name
        return bool(words) and not any(word.isdigit() for word in words)
    if not _HEADING.match(body):
        return False
    if len(words) > 17 and words[17] != "gu":
        reading.zone_name = words.pop()
    elif len(words) > 18:
        reading.zone_name = words[18]
    _set_columns(reading, words)
    return True


def _set_columns(reading: _Reading, words: list[str]) -> None:
    """Name the columns by place; the fifth and sixth are buffers and cache, or with ``-a`` inactive and active."""
    fifth = words[4].casefold()
    active = fifth.startswith(("ina", "неа", "nie"))
    names = list(_COLUMNS[: len(words)])
    names[4:6] = ["inact", "active"] if active else ["buff", "cache"]
    if tuple(names) != reading.names:
        reading.names = tuple(names)
        if not reading.table.moments:
            reading.table = SampleTable("", reading.names)


def _row(reading: _Reading, words: list[str]) -> tuple[str, list[float]]:
    if reading.disks is not None:
        if len(words) != 11:
            raise ValueError(words)
        return words[0], [float(word) for word in words[1:9]]
    if len(words) != len(reading.table.columns) or reading.names != reading.table.columns:
        raise ValueError(words)
    return "", [float(word) for word in words]


def _read_long(source: Source, text: str, builder: CaptureBuilder) -> _Reading:
    """The long table of pgbench-tools: a line per time and column."""
    reading = _Reading()
    rows: dict[str, dict[str, float]] = {}
    lines = text.splitlines()
    for index, line in enumerate(lines[1:], 2):
        stamp, _, rest = line.partition(",")
        value, _, name = rest.partition(",")
        try:
            _expect_column(name)
            rows.setdefault(stamp, {})[name] = float(value)
        except ValueError:
            if index == len(lines):
                builder.warn("cut", "the last line is cut and was left out")
                continue
            raise _refused(source, index, line, reading) from None
    names = tuple(name for name in META.fields if any(name in row for row in rows.values()))
    reading.names, reading.table = names, SampleTable("", names)
    for stamp, row in rows.items():
        try:
            reading.add("", [row.get(name, float("nan")) for name in names], _moment(stamp))
        except ValueError:
            raise _refused(source, 2, stamp, reading) from None
    if not rows:
        raise _refused(source, 2, "", reading)
    return reading


def _expect_column(name: str) -> None:
    if name not in META.fields:
        raise ValueError(name)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    plain = text.strip().replace(",", ".").replace("UTC", "+00:00").replace("Z", "+00:00").replace(" +", "+")
    moment = datetime.fromisoformat(plain)
    return moment.replace(year=moment.year if 1970 <= moment.year < 2200 else 0)  # nanoseconds of others do not fit


def _times(
    reading: _Reading, source: Source, request: Request, builder: CaptureBuilder
) -> tuple[NDArray[np.int64], bool]:
    """Times of the samples and whether they are certain."""
    if not reading.interval_known:
        builder.warn(
            "no-times", "samples have no time (vmstat -t); they were placed 1 s apart before the file's last change"
        )
        return synthetic_times(len(reading.stamps), 1.0, source.mtime_ns), False
    stamps = [stamp for stamp in reading.stamps if stamp is not None]
    if all(stamp.tzinfo is not None for stamp in stamps):
        return np.array([to_ns(stamp, request) for stamp in stamps], dtype=np.int64), True
    zone = _zone(reading.zone_name)
    if zone is None and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    moments = [stamp.replace(tzinfo=stamp.tzinfo or zone) for stamp in stamps]
    return np.array([to_ns(moment, request) for moment in moments], dtype=np.int64), bool(zone or request.timezone)


def _zone(name: str | None) -> timezone | None:
    if name is None:
        return None
    if name[0] in "+-" and name[1:].isdigit() and int(name) in range(-14, 15):
        return timezone(timedelta(hours=int(name)))
    return timezone(timedelta(hours=_ZONES_H[name])) if name in _ZONES_H else None


def _emit_guest(table: SampleTable, times: NDArray[np.int64], builder: CaptureBuilder, request: Request) -> None:
    fields = dict(META.fields)
    _, _, values = table.arrays()
    memory = [j for j, name in enumerate(table.columns) if name in _MEMORY[1:6]]
    if memory and float(np.median(np.nan_to_num(values[:, memory]).sum(axis=1))) < _PLAUSIBLE_MEMORY_KIB:
        builder.warn(
            "memory-unit", "memory is not in KiB (vmstat -S), the unit is not known: memory and swap were left out"
        )
        fields = {name: known for name, known in fields.items() if name not in _MEMORY}
    averaged = frozenset({known.metric for known in fields.values()} - _NOT_AVERAGED) | {"guest_cpu_busy_pct"}
    scheme = TableScheme("vmstat", fields, lambda group, item: UNNAMED_GUEST, derive=add_cpu_busy)
    emit(table, times, scheme, builder, request, since_boot=averaged)


def _emit_disks(
    table: SampleTable, times: NDArray[np.int64], interval_known: bool, builder: CaptureBuilder, request: Request
) -> None:
    """Rates and averages per request from counters since boot."""
    row_item, row_moment, values = table.arrays()
    order = np.lexsort((row_moment, row_item))
    starts = np.diff(row_item[order], prepend=-1) != 0
    change = np.diff(values[order], axis=0, prepend=np.zeros((1, values.shape[1])))
    change[starts] = values[order][starts]  # the first report is what happened since boot
    change[starts & (row_moment[order] > 0)] = np.nan  # but not that of a disk that came later
    elapsed_s = np.diff(times[row_moment[order]], prepend=0) / 1e9
    elapsed_s[starts | (elapsed_s <= 0)] = np.nan
    change[(change < 0).any(axis=1)] = np.nan  # a counter went back: the disk was removed and came again
    columns = _disk_columns(change, elapsed_s if interval_known else np.full(len(order), np.nan))
    if not interval_known:
        builder.warn(
            "no-interval", "vmstat -d without -t does not say its interval: no rates, only averages per request"
        )
    derived = SampleTable("disk", tuple(columns))
    stacked = np.column_stack(list(columns.values()))
    items, moments = table.items, row_moment[order]
    for row in np.argsort(moments, kind="stable"):
        derived.add(int(moments[row]), items[row_item[order][row]], stacked[row].tolist())

    def disk(group: str, item: str) -> Entity:
        del group
        return Entity(EntityKind.BLOCK_DEVICE, item, UNNAMED_GUEST)

    scheme = TableScheme("vmstat", _DISK_FIELDS, disk)
    emit(derived, times, scheme, builder, request, since_boot=frozenset(_SINCE_BOOT))


_DISK_FIELDS = {
    "reads/s": Field("disk_reads_per_s", "per_s"),
    "writes/s": Field("disk_writes_per_s", "per_s"),
    "total/s": Field("disk_iops", "per_s"),
    "read KiB/s": Field("disk_read_mib_per_s", "kib_per_s"),
    "write KiB/s": Field("disk_write_mib_per_s", "kib_per_s"),
    "ms/read": Field("guest_disk_await_ms_read", "ms"),
    "ms/write": Field("guest_disk_await_ms_write", "ms"),
    "ms/request": Field("guest_disk_await_ms", "ms"),
    "KiB/read": Field("guest_disk_io_size_kib_read", "kib"),
    "KiB/write": Field("guest_disk_io_size_kib_write", "kib"),
}
_SINCE_BOOT = {known.metric for name, known in _DISK_FIELDS.items() if not name.endswith("/s")}


def _disk_columns(change: NDArray[np.float64], elapsed_s: NDArray[np.float64]) -> Columns:
    reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms = change.T
    per_read, per_write = np.where(reads > 0, reads, np.nan), np.where(writes > 0, writes, np.nan)
    total = reads + writes
    return {
        "reads/s": reads / elapsed_s,
        "writes/s": writes / elapsed_s,
        "total/s": total / elapsed_s,
        "read KiB/s": read_sectors / 2 / elapsed_s,
        "write KiB/s": write_sectors / 2 / elapsed_s,
        "ms/read": read_ms / per_read,
        "ms/write": write_ms / per_write,
        "ms/request": (read_ms + write_ms) / np.where(total > 0, total, np.nan),
        "KiB/read": read_sectors / 2 / per_read,
        "KiB/write": write_sectors / 2 / per_write,
    }
