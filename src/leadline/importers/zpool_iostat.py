"""Operations and throughput of ZFS pools, as ``zpool iostat`` prints them.

Reads:
    Text of ``zpool iostat [-v] [-l] [-p] [-T d|u] [-y] INTERVAL``, one or many reports.

Sample:
    .. code-block:: text

                      capacity     operations     bandwidth
        pool        alloc   free   read  write   read  write
        ----------  -----  -----  -----  -----  -----  -----
        zint500      230G  24.0G      0      9   112K   318K
        ----------  -----  -----  -----  -----  -----  -----

Lost:
    The devices of a pool (``-v``): their I/O is the pool's, told twice. With ``-y`` the first report is not an
    average since the pool was imported; the text does not show that, so it is taken as one.

Units:
    Letters are powers of 1024, for operations too; bandwidth is bytes per second, waits carry their own unit.

Sources:
    zpool-iostat(8); zfs_nicenum_format in OpenZFS' libzutil.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.tables import SampleTable, TableScheme, emit

META = ImporterMeta(
    tool="zpool iostat",
    marks=("capacity",),
    layers=(Layer.GUEST,),
    fields={
        "operations.read": Field("disk_reads_per_s", "per_s"),
        "operations.write": Field("disk_writes_per_s", "per_s"),
        "bandwidth.read": Field("disk_read_mib_per_s", "bytes_per_s"),
        "bandwidth.write": Field("disk_write_mib_per_s", "bytes_per_s"),
        "total_wait.read": Field("guest_disk_await_ms_read", "ns"),
        "total_wait.write": Field("guest_disk_await_ms_write", "ns"),
        "disk_wait.read": Field("pool_disk_wait_ms_read", "ns"),
        "disk_wait.write": Field("pool_disk_wait_ms_write", "ns"),
        "syncq_wait.read": Field("pool_sync_queue_wait_ms_read", "ns"),
        "syncq_wait.write": Field("pool_sync_queue_wait_ms_write", "ns"),
    },
    record="zpool iostat -l -T u 5 > zpool-iostat.txt",
)

_HEADING = re.compile(r"^[^\S\n]*+capacity\s+operations\s+bandwidth\b.*\n\s*pool\s+alloc\s+free\s", re.MULTILINE)
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)?)([KMGTPE]|ns|us|ms|s)?")
_RULE = re.compile(r"\s*-{2,}(?:\s+-{2,})*\s*")
_CTIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)(?: ([AP]M))?(?: ([A-Z]{3,5}))? (\d{4})")
_SCALE = {"": 1.0, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9} | {
    letter: 1024.0**power for power, letter in enumerate("KMGTPE", 1)
}


def sniff(source: Source) -> int:
    """Sure by its two heading lines."""
    return 95 if _HEADING.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """The capture of a recording."""
    builder = CaptureBuilder(source.name, "zpool-iostat", META.tool)
    reader = _Reader(source, request, builder)
    reader.read()
    table = reader.table
    if table is None or not table.moments:
        raise reader.error("", "no row of a pool")
    timed = bool(reader.times)
    if timed:
        times: NDArray[np.int64] = np.array(table.moments, dtype=np.int64)
    else:
        builder.warn(
            "no-times",
            "no times (record with -T u): reports are taken as 1 s apart, the last when the file was written",
        )
        times = synthetic_times(len(table.moments), 1.0, source.mtime_ns)
    emit(table, times, TableScheme("zpool-iostat", META.fields, _entity_of), builder, request, since_boot=True)
    return builder.build(clock_known=timed and reader.zoned)


def _entity_of(group: str, item: str) -> Entity:
    del group
    return Entity(EntityKind.BLOCK_DEVICE, item, UNNAMED_GUEST)


def number(word: str) -> float:
    """A number as ZFS prints it: bytes, operations, or nanoseconds for a wait; NaN for a dash.

    Raises:
        ValueError: it is none.

    >>> number("349K"), number("2ms"), number("24.0G") == 24 * 2**30
    (357376.0, 2000000.0, True)
    """
    if word == "-":
        return float("nan")
    match = _NUMBER.fullmatch(word)
    if match is None:
        raise ValueError(word)
    return float(match[1].replace(",", ".")) * _SCALE[match[2] or ""]


@dataclass(slots=True)
class _Reader:
    """State of reading line by line."""

    source: Source
    request: Request
    builder: CaptureBuilder
    table: SampleTable | None = None
    times: list[int] = field(default_factory=list)
    zoned: bool = True
    _groups: list[str] = field(default_factory=list)

    def read(self) -> None:
        """Read the whole file.

        Raises:
            InputError: a line is neither heading, time, rule nor row.
        """
        text = self.source.text()
        lines = text.splitlines()
        whole = len(lines) if text.endswith(("\n", "\r")) else len(lines) - 1
        for index, line in enumerate(lines):
            if not line.strip() or _RULE.fullmatch(line) or line.strip() == "^C":
                continue
            if index >= whole:
                self.builder.warn("cut", "the last line has no end and was left out")
            elif not (self._heading(line.split()) or self._time(line.strip()) or self._row(line)):
                raise self.error(f":{index + 1}", f"{line.strip()[:60]!r}")

    def _heading(self, words: list[str]) -> bool:
        if words[:3] == ["capacity", "operations", "bandwidth"]:
            self._groups = words
            return True
        if words[:3] != ["pool", "alloc", "free"] or not self._groups:
            return False
        names: list[str] = []
        for group in self._groups:
            width = 1 if words[1 + len(names) : 2 + len(names)] == ["wait"] else 2
            names.extend(f"{group}.{word}" for word in words[1 + len(names) : 1 + len(names) + width])
        if self.table is None:
            self.table = SampleTable("pool", tuple(names))
        return self.table.columns == tuple(names) and len(names) == len(words) - 1

    def _time(self, text: str) -> bool:
        if text.isascii() and text.isdigit() and 9 <= len(text) <= 10:
            self.times.append(int(text) * 1_000_000_000)
            return True
        match = _CTIME.fullmatch(text)
        if match is None:
            return False
        month, day, clock, half, zone, year = match.groups()
        form = "%Y %b %d %I:%M:%S %p" if half else "%Y %b %d %H:%M:%S"
        try:
            moment = datetime.strptime(f"{year} {month} {day} {clock} {half or ''}".strip(), form)  # noqa: DTZ007
        except ValueError:
            return False
        if not 1970 <= moment.year < 2200:
            return False
        if zone in {"UTC", "GMT"}:
            moment = moment.replace(tzinfo=UTC)
        elif self.request.timezone is None:
            self.zoned = False
            self.builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
        self.times.append(to_ns(moment, self.request))
        return True

    def _row(self, line: str) -> bool:
        words = line.split()
        if self.table is None or len(words) < len(self.table.columns) + 1:
            return False
        name = " ".join(words[: -len(self.table.columns)])
        try:
            values = [number(word) for word in words[-len(self.table.columns) :]]
        except ValueError:
            return False
        if line[0].isspace():
            self.builder.warn("vdevs", "the devices of pools were left out: their I/O is the pool's")
        else:
            self.table.add(self.times[-1] if self.times else 0, name, values)
        return True

    def error(self, place: str, problem: str) -> InputError:
        """The error that names a place and what was read there."""
        return InputError(
            f"{self.source.name}{place}",
            found=problem,
            expected="the columns of `zpool iostat`: pool, capacity, operations, bandwidth",
            advice="Record again with `zpool iostat -T u 5`, or cut the lines that are not its own out of the file.",
        )
