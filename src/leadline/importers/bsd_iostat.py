"""Disk and CPU lines of macOS and FreeBSD, as their own iostat prints them.

Reads:
    ``iostat -w N`` in its default form: three columns per disk, then CPU shares, then load averages; with or without
    ``-d``, ``-C``, ``-K``, ``-U``; an ISO time in front of each line (``ts``, pgbench-tools) if there is one.

Sample:
    .. code-block:: text

                      disk0               disk2       cpu    load average
            KB/t  tps  MB/s     KB/t  tps  MB/s  us sy id   1m   5m   15m
           42.49   21  0.88    21.05    0  0.00   3  1 96  1.50 1.60 1.70

Lost:
    Terminal characters (``tin``, ``tout``). Reads and writes are not told apart by the tool.

Units:
    ``KB`` is KiB and ``MB`` is MiB. A size of 0.00 is "no transfer", so "not measured". The first line is an average
    since boot.

Sources:
    iostat(8) of macOS and FreeBSD; iostat.c in Apple's system_cmds (KB/t = bytes / transfers / 1024).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.stamps import StampReader
from leadline.formats.sysstat.text import add_cpu_busy
from leadline.formats.tables import SampleTable, TableScheme, emit

META = ImporterMeta(
    tool="iostat of macOS and FreeBSD",
    marks=("kb/t",),
    layers=(Layer.GUEST,),
    fields={
        "KB/t": Field("guest_disk_io_size_kib", "kib"),
        "tps": Field("disk_iops", "per_s"),
        "MB/s": Field("guest_disk_busy_mib_per_s", "mib_per_s"),
        "us": Field("guest_cpu_user_pct", "pct"),
        "ni": Field("guest_cpu_nice_pct", "pct"),
        "sy": Field("guest_cpu_system_pct", "pct"),
        "in": Field("guest_cpu_irq_pct", "pct"),
        "id": Field("guest_cpu_idle_pct", "pct"),
        "1m": Field("guest_load_1m", "count"),
        "5m": Field("guest_load_5m", "count"),
        "15m": Field("guest_load_15m", "count"),
    },
    record="iostat -w 5 | ts '%Y-%m-%d %H:%M:%S'",
)

_DISK = ("KB/t", "tps", "MB/s")
_WHOLE = ("us", "ni", "sy", "in", "id", "1m", "5m", "15m")
_TTY = ("tin", "tout")
_NOT_DISKS = {"tty", "cpu", "load", "average"}
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?)[ \t]")
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_PUNCTUATED = re.compile(r"[^\w/-]")
_HEADING = re.compile(rf"^(?:{_TIME.pattern})?[^\S\n]*+(?:tin\s+tout\s+)?KB/t\s+tps\s+MB/s(?:\s|$)", re.MULTILINE)


def sniff(source: Source) -> int:
    """Sure by the heading of a disk's three columns."""
    return 92 if _HEADING.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """The capture of a recording."""
    builder = CaptureBuilder(source.name, "bsd-iostat", META.tool)
    reader = _Reader(source, builder)
    reader.read()
    known = False
    count = len(reader.stamps)
    if all(reader.stamps):
        stamps = StampReader.of(reader.stamps, [], source, request, builder)
        times = stamps.times_ns(reader.stamps, None)
        known = stamps.known
    else:
        builder.warn("no-times", "lines have no times: they are taken as 1 s apart, the last when the file was written")
        times = synthetic_times(count, 1.0, source.mtime_ns)
    for table in (reader.disks, reader.whole):
        if table is not None:
            scheme = TableScheme("bsd-iostat", META.fields, _entity_of, derive=add_cpu_busy)
            emit(table, times[table.moments], scheme, builder, request, since_boot=True)
    return builder.build(clock_known=known)


def _are_disks(names: list[str]) -> bool:
    """Whether all are names of disks, as ada0 and disk2: the heading of their columns has nothing else."""
    return all(name[-1:].isdigit() for name in names)


def _entity_of(group: str, item: str) -> Entity:
    return Entity(EntityKind.BLOCK_DEVICE, item, UNNAMED_GUEST) if group else UNNAMED_GUEST


@dataclass(slots=True)
class _Reader:
    """State of reading line by line; a report is a line."""

    source: Source
    builder: CaptureBuilder
    stamps: list[str] = field(default_factory=list)
    disks: SampleTable | None = None
    whole: SampleTable | None = None
    _names: list[str] = field(default_factory=list)
    _columns: list[str] = field(default_factory=list)

    def read(self) -> None:
        """Read the whole file.

        Raises:
            InputError: a line is neither heading nor numbers, or there are none.
        """
        text = self.source.text()
        lines = text.splitlines()
        whole = len(lines) if text.endswith(("\n", "\r")) else len(lines) - 1
        for index, line in enumerate(lines):
            stamp = _TIME.match(line)
            words = (line[stamp.end() :] if stamp else line).split()
            if not words or words == ["^C"]:
                continue
            if index >= whole:
                self.builder.warn("cut", "the last line has no end and was left out")
                return
            if not self._line(stamp[1] if stamp else "", words):
                raise self._error(f":{index + 1}", f"{line.strip()[:60]!r}")
        if not self.stamps:
            raise self._error("", "no line of numbers")

    def _line(self, stamp: str, words: list[str]) -> bool:
        if words[0] in {*_DISK, *_WHOLE, *_TTY}:
            self._columns = words
            return self._fits()
        try:
            numbers = [float(word.replace(",", ".")) for word in words]
        except ValueError:
            names = [word for word in words if word not in _NOT_DISKS]
            if any(_NUMBER.fullmatch(word) or _PUNCTUATED.search(word) for word in words) or not _are_disks(names):
                return False
            self._names, self._columns = names, []
            return True
        if len(numbers) != len(self._columns) or not np.isfinite(numbers).all():
            return False
        self._row(stamp, numbers)
        return True

    def _fits(self) -> bool:
        """Whether the two heading lines agree, and every column is known."""
        per_disk = [column for column in self._columns if column in _DISK]
        rest = [column for column in self._columns if column not in _DISK]
        return per_disk == list(_DISK) * len(self._names) and all(column in {*_WHOLE, *_TTY} for column in rest)

    def _row(self, stamp: str, numbers: list[float]) -> None:
        moment = len(self.stamps)
        self.stamps.append(stamp)
        disk_numbers = [n for column, n in zip(self._columns, numbers, strict=True) if column in _DISK]
        if self._names and self.disks is None:
            self.disks = SampleTable("disk", _DISK)
        for index, name in enumerate(self._names):
            size, rate, throughput = disk_numbers[3 * index : 3 * index + 3]
            values = [size if size > 0 else float("nan"), rate, throughput]
            if self.disks is not None:
                self.disks.add(moment, name, values)
        shares = {c: n for c, n in zip(self._columns, numbers, strict=True) if c in _WHOLE}
        if shares and self.whole is None:
            self.whole = SampleTable("", tuple(shares))
        if self.whole is not None and tuple(shares) == self.whole.columns:
            self.whole.add(moment, "", list(shares.values()))

    def _error(self, place: str, problem: str) -> InputError:
        return InputError(
            f"{self.source.name}{place}",
            found=problem,
            expected="the columns KB/t, tps and MB/s of every disk, then those of the CPU",
            advice="Record again with `iostat -w 5`, or cut the lines that are not iostat's out of the file.",
        )
