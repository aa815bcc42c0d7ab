r"""What collectl recorded of a Linux guest: its plot files (``-P``) and its screen of one line a sample.

Reads:
    Plot files of collectl 3 and 4 (``.tab``, ``.cpu``, ``.dsk``, ``.net`` or standard output), with any subsystems, any
    separator (``--sep``) and times as ``-oD``, ``-od``, ``-oU`` or ``-om`` write them. The screen of ``collectl`` with
    ``-oT``, ``-oD`` or without times, for the subsystems cpu, disks, memory and network.

Sample:
    .. code-block:: text

        # Date:       20261125-142710  Secs: 1795616830 TZ: +0000
        #Date Time [CPU]User% [CPU]Wait% [CPU]Idle% [DSK:vda]Name [DSK:vda]Reads [DSK:vda]WaitR [DSK:vda]Wait
        20261125 14:27:12 1 0 90 vda 262 2 2

Lost:
    Raw files (``.raw.gz``): play them back (``collectl -p FILE -P``). Files of processes, slabs and NFS. Sums over all
    disks become what the machine read and wrote. Rows with another number of cells than their header. Fractions:
    collectl writes whole numbers unless ``-o1`` or ``-o2`` ask for decimals.

Units:
    Rates are per second, sizes KiB, waits milliseconds. A wait of an interval without requests is not measured.
    ``QueLen`` is the mean while the disk was busy, so it stays raw. Times are local; the header's ``TZ`` says where.

Sources:
    collectl 4.3.1, formatit.ph (headers and columns of plot files, disk statistics); collectl(1).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, synthetic_times, to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.printed import number_of
from leadline.formats.stamps import YEARS
from leadline.formats.sysstat.text import add_cpu_busy
from leadline.formats.tables import Columns, SampleTable, TableScheme, emit

if TYPE_CHECKING:
    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="collectl",
    layers=(Layer.GUEST,),
    fields={
        "CPU.User%": Field("guest_cpu_user_pct", "pct"),
        "CPU.Nice%": Field("guest_cpu_nice_pct", "pct"),
        "CPU.Sys%": Field("guest_cpu_system_pct", "pct"),
        "CPU.Wait%": Field("guest_cpu_iowait_pct", "pct"),
        "CPU.Irq%": Field("guest_cpu_irq_pct", "pct"),
        "CPU.Soft%": Field("guest_cpu_softirq_pct", "pct"),
        "CPU.Steal%": Field("guest_cpu_steal_pct", "pct"),
        "CPU.Idle%": Field("guest_cpu_idle_pct", "pct"),
        "CPU.Totl%": Field("guest_cpu_busy_pct", "pct"),
        "CPU.Intrpt/sec": Field("guest_interrupts_per_s", "per_s"),
        "CPU.Ctx/sec": Field("guest_context_switches_per_s", "per_s"),
        "CPU.Proc/sec": Field("guest_forks_per_s", "per_s"),
        "CPU.L-Avg1": Field("guest_load_1m", "count"),
        "CPU.L-Avg5": Field("guest_load_5m", "count"),
        "CPU.L-Avg15": Field("guest_load_15m", "count"),
        "CPU.RunTot": Field("guest_run_queue_count", "count"),
        "CPU.BlkTot": Field("guest_blocked_count", "count"),
        "MEM.Free": Field("guest_memory_free_mib", "kib"),
        "MEM.Buf": Field("guest_memory_buffers_mib", "kib"),
        "MEM.Cached": Field("guest_memory_cached_mib", "kib"),
        "MEM.Dirty": Field("guest_memory_dirty_mib", "kib"),
        "MEM.SwapUsed": Field("guest_swap_used_mib", "kib"),
        "MEM.PageMajFaults": Field("guest_major_faults_per_s", "per_s"),
        "DSK.ReadKBTot": Field("guest_block_in_kib_per_s", "kib_per_s"),
        "DSK.WriteKBTot": Field("guest_block_out_kib_per_s", "kib_per_s"),
        "DSK.Reads": Field("disk_reads_per_s", "per_s"),
        "DSK.Writes": Field("disk_writes_per_s", "per_s"),
        "DSK.RKBytes": Field("disk_read_mib_per_s", "kib_per_s"),
        "DSK.WKBytes": Field("disk_write_mib_per_s", "kib_per_s"),
        "DSK.WaitR": Field("guest_disk_await_ms_read", "ms"),
        "DSK.WaitW": Field("guest_disk_await_ms_write", "ms"),
        "DSK.Wait": Field("guest_disk_await_ms", "ms"),
        "DSK.SvcTim": Field("guest_disk_service_ms", "ms"),
        "DSK.Util": Field("guest_disk_util_pct", "pct"),
        "DSK.Request": Field("guest_disk_io_size_kib", "kib"),
        "NET.RxKB": Field("net_rx_mbit_per_s", "kib_per_s"),
        "NET.TxKB": Field("net_tx_mbit_per_s", "kib_per_s"),
        "NET.RxPkt": Field("net_rx_packets_per_s", "per_s"),
        "NET.TxPkt": Field("net_tx_packets_per_s", "per_s"),
        "NET.RxDrp": Field("net_rx_dropped_per_s", "per_s"),
        "NET.TxDrp": Field("net_tx_dropped_per_s", "per_s"),
    },
    record="collectl -scdmnCDN -P -o2z -i 5 -f FOLDER",
    marks=(
        "[cpu]",
        "[cpu:",
        "[dsk",
        "[mem]",
        "[net",
        "# collectl:",
        "#cpu sys inter",
        "cpu sys inter  ctxsw",
        "kbread  reads",
    ),
)

_PLOT = re.compile(
    r"^#(?:Date(?P<sep>[^\w\s]| )Time|UTC(?P<other>[^\w\s]| ))[^\n]{0,2}\[(?:CPU|DSK|MEM|NET)", re.MULTILINE
)
_SCREEN = re.compile(
    r"^#(?:Date +Time +|Time +|)(?:cpu sys inter|KBRead +Reads|Free Buff Cach|KBIn +PktIn)", re.MULTILINE
)
_COLUMN = re.compile(r"\[(?P<group>[A-Z]+)(?::(?P<item>[^\]]{1,64}))?\](?P<name>\S{1,32})")
_ZONE = re.compile(r"^# Date: .{0,60}\bTZ: ([+-]\d\d)(\d\d)\b", re.MULTILINE)
_HOST = re.compile(r"^# Host: +(\S{1,64})", re.MULTILINE)
_KINDS = {"CPU": EntityKind.CPU, "DSK": EntityKind.BLOCK_DEVICE, "NET": EntityKind.NIC}
# Without requests these are 0; so is a wait that was rounded down, which counts requests.
_OF_REQUESTS = {"WaitR": ("Reads",), "WaitW": ("Writes",), "Wait": ("Reads", "Writes"), "SvcTim": ("Reads", "Writes")}
_OF_REQUESTS["Request"] = ("Reads", "Writes")
_ON_SCREEN = {
    "cpu": "CPU.Totl%", "sys": "CPU.Sys%",
    "inter": "CPU.Intrpt/sec", "ctxsw": "CPU.Ctx/sec", "Free": "MEM.Free", "Buff": "MEM.Buf", "Cach": "MEM.Cached",
    "KBRead": "DSK.ReadKBTot", "KBWrit": "DSK.WriteKBTot",
}  # fmt: skip
_LETTERS = {"K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3}


def sniff(source: Source) -> int:
    """Sure by the first columns of a plot file; of the screen by its line of names."""
    text = source.head_uncut
    return 97 if _PLOT.search(text) else 92 if _SCREEN.search(text) else 0


def read(source: Source, request: Request) -> Capture:
    """The capture of a file.

    Raises:
        InputError: there is no row that belongs to a header.
    """
    builder = CaptureBuilder(source.name, "collectl", META.tool)
    reader = _Reader(source, request, builder)
    reader.read()
    if not any(table.moments for table in reader.tables.values()):
        raise InputError(
            source.name,
            found="no row below a header of collectl",
            expected="a plot file or the screen of collectl",
            advice=f"Record with `{META.record}`, or play a raw file back with `collectl -p FILE -P`.",
        )
    host = _HOST.search(source.head_text)
    guest = Entity(EntityKind.GUEST, host[1]) if host is not None else UNNAMED_GUEST

    def entity_of(group: str, item: str) -> Entity | None:
        kind = _KINDS.get(group)
        return guest if not item else None if kind is None else Entity(kind, item, guest)

    scheme = TableScheme("collectl", META.fields, entity_of, derive=_add_busy, guest=guest)
    for table in reader.tables.values():
        times = np.array(table.moments, dtype=np.int64)
        if not reader.is_timed:
            times = synthetic_times(len(times), 1.0, source.mtime_ns)
        emit(table, times, scheme, builder, request)
    return builder.build(clock_known=reader.is_timed and reader.is_zoned)


def _add_busy(columns: Columns) -> None:
    """Add busy time where shares of processors are there."""
    add_cpu_busy(columns)


@dataclass(slots=True)
class _Reader:
    """State of reading line by line."""

    source: Source
    request: Request
    builder: CaptureBuilder
    tables: dict[tuple[str, bool], SampleTable] = field(default_factory=dict)
    is_timed: bool = True
    is_zoned: bool = True
    _cells: list[str] = field(default_factory=list)
    _separator: str = " "
    _is_screen: bool = False
    _day: date | None = None
    _last: datetime | None = None

    def read(self) -> None:
        """Read the whole file; rows that do not fit are counted."""
        text = self.source.text()
        zone = _ZONE.search(text[:65536])
        shift = timedelta(hours=int(zone[1]), minutes=int(zone[1][0] + zone[2])) if zone else None
        lines = text.splitlines()
        if lines and not text.endswith(("\n", "\r")):
            self.builder.warn("cut", "the last line has no end and was left out")
            lines.pop()
        for line in lines:
            if line.startswith("#"):
                self._header(line)
            elif self._cells and line.strip():
                cells = line.split(None if self._separator == " " else self._separator)
                moment = self._moment(cells, shift) if len(cells) == len(self._cells) else None
                if moment is None or not self._row(cells, moment):
                    self.builder.warn("damaged-rows", "rows that do not fit their header were left out")

    def _header(self, line: str) -> None:
        plot, screen = _PLOT.match(line), _SCREEN.match(line)
        if plot is None and screen is None:
            return
        self._is_screen = plot is None
        self._separator = " " if plot is None else plot["sep"] or plot["other"]
        names = line[1:].split(None if self._separator == " " else self._separator)
        self._cells = [name.strip() for name in names]

    def _moment(self, cells: list[str], shift: timedelta | None) -> int | None:
        """The time of a row, UTC nanoseconds; None where it is none."""
        first = self._cells[0]
        if first == "UTC":
            seconds = number_of(cells[0])
            return int(seconds * 1e9) if 10**8 < seconds < 7 * 10**9 else None
        if first not in ("Date", "Time"):
            if self.is_timed:
                self.builder.warn("no-times", "no times (record with -oD): samples are taken as 1 s apart")
            self.is_timed = False
            return len(next(iter(self.tables.values())).moments) if self.tables else 0
        day = self._date(cells[0] if first == "Date" else "")
        clock = re.fullmatch(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?", cells[1 if first == "Date" else 0])
        if day is None or clock is None:
            return None
        try:
            moment = datetime(
                day.year, day.month, day.day, int(clock[1]), int(clock[2]), int(clock[3]),
                int((clock[4] or "0").ljust(6, "0")), timezone(shift) if shift is not None else None,
            )  # fmt: skip
        except ValueError:
            return None
        if first == "Time" and self._last is not None and moment < self._last - timedelta(hours=12):
            moment += timedelta(days=1)
            self._day = moment.date()
        self._last = moment
        if shift is None and self.request.timezone is None and self.is_zoned:
            self.is_zoned = False
            self.builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
        return to_ns(moment, self.request)

    def _date(self, text: str) -> date | None:
        if re.fullmatch(r"\d{8}", text):
            digits = (int(text[:4]), int(text[4:6]), int(text[6:]))
        elif re.fullmatch(r"\d\d/\d\d", text):
            near = assumed_date(self.source, self.request)
            digits = (near.year, int(text[:2]), int(text[3:]))
        else:
            self._day = self._day or (None if text else assumed_date(self.source, self.request))
            return None if text else self._day
        try:
            return date(*digits) if digits[0] in YEARS else None
        except ValueError:
            return None

    def _row(self, cells: list[str], moment: int) -> bool:
        values: dict[tuple[str, str], dict[str, float]] = {}
        for name, cell in zip(self._cells, cells, strict=True):
            match = _COLUMN.fullmatch(name)
            if match is not None and match["name"] != "Name":
                values.setdefault((match["group"], match["item"] or ""), {})[match["name"]] = _number(cell)
            elif self._is_screen and name in _ON_SCREEN:
                group, _, name_there = _ON_SCREEN[name].partition(".")
                values.setdefault((group, ""), {})[name_there] = _on_screen(cell)
        if not any(math.isfinite(value) for row in values.values() for value in row.values()):
            return False
        for (group, item), row in values.items():
            for name, needed in _OF_REQUESTS.items():
                if group == "DSK" and item and name in row and not any(row.get(each, 0.0) > 0 for each in needed):
                    row[name] = math.nan
            names = tuple(f"{group}.{name}" for name in row)
            table = self.tables.setdefault((group, bool(item)), SampleTable(group, names))
            table.add(moment, item, [row.get(name.partition(".")[2], math.nan) for name in table.columns])
        return True


_number = lru_cache(maxsize=4096)(number_of)  # whole numbers repeat, and each is kept once


def _on_screen(text: str) -> float:
    """A number of the screen, sizes in KiB: ``17G``, ``534M``, ``206``.

    >>> _on_screen("4G"), _on_screen("206")
    (4194304.0, 206.0)
    """
    scale = _LETTERS.get(text[-1:], 0.0)
    return _number(text[:-1]) * scale if scale else _number(text)
