r"""The CSV file that dstat, dool and pcp-dstat write with ``--output``: CPU, disks, network, memory, swapping.

Reads:
    Files of dstat 0.6 to 0.8, dool 1.x and pcp-dstat, with any of their options. A file that several runs were
    appended to is read run by run. Times are ``time`` (day and month, year and zone of the header's ``Date:``) or
    ``epoch``; without either, rows are placed from ``Date:`` on at the interval of the command line.

Sample:
    .. code-block:: text

        "Dstat 0.7.3 CSV output"
        "Host:","web03",,,,"User:","root"
        "Cmdline:","dstat -tcd --output dstat.csv 1",,,,"Date:","03 Dec 2026 14:10:38 UTC"
        "system","total cpu usage",,,,,,"dsk/total",
        "time","usr","sys","idl","wai","hiq","siq","read","writ"
        03-12 14:10:39,2.5,1.0,96.0,0.5,0.0,0.0,8192.0,0.0

Lost:
    Sums over all disks become what the machine read and wrote; sums over all interfaces, and all columns that no metric
    speaks of, stay raw. Texts (``--top-cpu`` and the like). Rows that have another number of cells than their header.

Units:
    Throughput is bytes per second, memory bytes. dool 1.3 and newer multiplies disks and network by eight unless its
    command line has ``--bytes`` or ``--dstat``; pcp-dstat writes KiB, and pages of 4 KiB. dstat never writes bits:
    ``--bits`` and ``--float`` change its screen only. The first row of a run is an average since boot, pcp-dstat's is
    empty. A wait or a request size of 0 means that there was no request.

Sources:
    dstat 0.8.0, showcsv and its plugins; dool 1.3.8, showcsv, and its issues 45 and 72; pcp-dstat of PCP 6.0.3 and its
    /etc/pcp/dstat.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.sysstat.text import add_cpu_busy
from leadline.formats.tables import Columns, spread
from leadline.importers._dstat.times import RunTimes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="dstat",
    layers=(Layer.GUEST,),
    fields={
        "cpu.usr": Field("guest_cpu_user_pct", "pct"),
        "cpu.sys": Field("guest_cpu_system_pct", "pct"),
        "cpu.idl": Field("guest_cpu_idle_pct", "pct"),
        "cpu.wai": Field("guest_cpu_iowait_pct", "pct"),
        "cpu.hiq": Field("guest_cpu_irq_pct", "pct"),
        "cpu.siq": Field("guest_cpu_softirq_pct", "pct"),
        "cpu.stl": Field("guest_cpu_steal_pct", "pct"),
        "dsk.read": Field("disk_read_mib_per_s", "bytes_per_s"),
        "dsk.writ": Field("disk_write_mib_per_s", "bytes_per_s"),
        "dsk/total.read": Field("guest_block_in_kib_per_s", "bytes_per_s"),
        "dsk/total.writ": Field("guest_block_out_kib_per_s", "bytes_per_s"),
        "dsk.#read": Field("disk_reads_per_s", "per_s"),
        "dsk.#writ": Field("disk_writes_per_s", "per_s"),
        "io.read": Field("disk_reads_per_s", "per_s"),
        "io.writ": Field("disk_writes_per_s", "per_s"),
        "dsk.util": Field("guest_disk_util_pct", "pct"),
        "dsk.rawait": Field("guest_disk_await_ms_read", "ms"),
        "dsk.wawait": Field("guest_disk_await_ms_write", "ms"),
        "dsk.svctm": Field("guest_disk_service_ms", "ms"),
        "dsk.avgqu": Field("guest_disk_queue_count", "count"),
        "dsk.avgrq": Field("guest_disk_io_size_kib", "sectors"),
        "net.recv": Field("net_rx_mbit_per_s", "bytes_per_s"),
        "net.send": Field("net_tx_mbit_per_s", "bytes_per_s"),
        "memory.free": Field("guest_memory_free_mib", "bytes"),
        "memory.buff": Field("guest_memory_buffers_mib", "bytes"),
        "memory.buf": Field("guest_memory_buffers_mib", "bytes"),
        "memory.cach": Field("guest_memory_cached_mib", "bytes"),
        "memory.avai": Field("guest_memory_available_mib", "bytes"),
        "memory.dirty": Field("guest_memory_dirty_mib", "bytes"),
        "swap.used": Field("guest_swap_used_mib", "bytes"),
        "paging.in": Field("guest_swap_in_kib_per_s", "bytes_per_s"),
        "paging.out": Field("guest_swap_out_kib_per_s", "bytes_per_s"),
        "load avg.1m": Field("guest_load_1m", "count"),
        "load avg.5m": Field("guest_load_5m", "count"),
        "load avg.15m": Field("guest_load_15m", "count"),
        "system.int": Field("guest_interrupts_per_s", "per_s"),
        "system.csw": Field("guest_context_switches_per_s", "per_s"),
        "procs.run": Field("guest_run_queue_count", "count"),
        "procs.blk": Field("guest_blocked_count", "count"),
        "procs.new": Field("guest_forks_per_s", "per_s"),
        "virtual memory.majpf": Field("guest_major_faults_per_s", "per_s"),
    },
    record="dool -tcdnrmsyp --disk-wait --full --bytes --output dool.csv 1",
    marks=('csv output"', '"cmdline:"'),
)

_TITLE = re.compile(r'\s*"(dstat|dool|pcp-dstat) (\d{1,4}(?:\.\d{1,4}){0,3})\S{0,20} CSV output"', re.IGNORECASE)
_COMMAND = re.compile(r'"Cmdline:","[^"\n]{0,200}(dstat|dool)\b', re.IGNORECASE)
_ALL_QUOTED = re.compile(r'"[^"]*"(?:,(?:"[^"]*")?)*,?')
_OF_DISK = frozenset({"util", "rawait", "wawait", "svctm", "avgqu", "avgrq", "#read", "#writ"})
_ZERO_IS_NONE = frozenset({"dsk.rawait", "dsk.wawait", "dsk.svctm", "dsk.avgrq"})
_LEVELS = frozenset(
    name for name, known in META.fields.items() if known.unit in {"bytes", "count"} and name != "dsk.avgqu"
)
_BITS_SINCE = (1, 3)  # dool's first version that writes bits
_PCP_KIB = ("dsk.", "dsk/", "memory.", "swap.")
_PAGE_BYTES = 4096.0


def sniff(source: Source) -> int:
    """Sure by its title; nearly so by its command line, for a file whose title was cut off."""
    if _TITLE.match(source.head_text):
        return 98
    begin = source.head_text[:2000]
    return 90 if begin.lstrip().startswith('"') and _COMMAND.search(begin) else 0


def read(source: Source, request: Request) -> Capture:
    """The machine's series, with those of its disks, CPUs and interfaces.

    Raises:
        InputError: no row fits its header.
    """
    builder = CaptureBuilder(source.name, "dstat", META.tool)
    runs = _runs(source, builder)
    runs = [run for run in runs if run.rows]
    if not runs:
        raise InputError(
            source.name,
            found="no row of numbers that fits a header",
            expected="a CSV file of dstat, dool or pcp-dstat with its two lines of headings and rows",
            advice=f"Record it again: {META.record}",
        )
    collected = _Collected(request)
    times = RunTimes(source, request, builder)
    for run in runs:
        moments, kept = times.of(run.names, run.rows, run.date, run.command)
        collected.add(run, moments, kept)
    if not collected.series:
        raise InputError(
            source.name,
            found="no row with a time",
            expected="a time such as 03-12 14:10:39, or --epoch",
            advice=f"Record it again, without DSTAT_TIMEFMT: {META.record}",
        )
    if any(run.writes_bits for run in runs):
        builder.warn("bits", "dool writes disks and network in bits without --bytes; they were divided by 8")
    collected.hand_to(builder)
    host = next((run.host for run in runs if run.host), None)
    return builder.build(host=host, tool_version=runs[0].version or None, clock_known=times.known)


@dataclass(slots=True)
class _Run:
    """What one start of the tool wrote.

    Attributes:
        tool: ``dstat``, ``dool`` or ``pcp-dstat``.
        groups: the group of each column, names those of its columns; with the group in front where it is repeated.
        rows: cells of each sound row.
    """

    tool: str = "dstat"
    version: str = ""
    host: str = ""
    command: str = ""
    date: str = ""
    groups: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    def begun_again(self) -> _Run:
        """The next run of the same tool on the same machine."""
        return _Run(self.tool, self.version, self.host, self.command, self.date)

    @property
    def guest(self) -> Entity:
        return Entity(EntityKind.GUEST, self.host) if self.host else UNNAMED_GUEST

    @property
    def writes_bits(self) -> bool:
        """Whether throughput is bits: dool since 1.3, unless asked for bytes."""
        version = tuple(int(number) for number in self.version.split(".") if number)
        options = self.command.split()
        return self.tool == "dool" and version >= _BITS_SINCE and not {"--bytes", "--dstat"} & set(options)

    def fitted(self, cells: list[str]) -> list[str] | None:
        """The cells of a row, one for each column; None where they are of no row of these columns.

        pcp-dstat writes one empty cell for all columns of a group that has nothing to show.
        """
        missing = len(self.names) - len(cells)
        if missing == 0 or self.tool != "pcp-dstat" or missing < 0:
            return cells if missing == 0 else None
        fitted: list[str] = []
        place = 0
        while place < len(self.names) and cells:
            prefix = f"{self.groups[place]}:"
            width = 1
            while place + width < len(self.names) and self.groups[place + width] == self.groups[place]:
                width += 1
            is_short = self.names[place].startswith(prefix) or "/" in prefix
            if is_short and not cells[0] and 0 < width - 1 <= missing:
                fitted += [""] * width
                cells, missing = cells[1:], missing - width + 1
            else:
                fitted += cells[:width]
                cells = cells[width:]
            place += width
        return fitted if len(fitted) == len(self.names) and not cells else None


def _runs(source: Source, builder: CaptureBuilder) -> list[_Run]:
    """The runs of a file, with rows that do not fit their header left out and counted."""
    text = source.text()
    lines = text.splitlines()
    is_cut = not text.endswith(("\n", "\r"))
    runs = [_Run()]
    titles: list[list[str]] = []
    for index, line in enumerate(lines):
        title = _TITLE.match(line)
        cells = _cells(line)
        if title is not None:
            runs.append(_Run(title[1].lower(), title[2]))
        elif not cells or cells[0] == "Author:":
            continue
        elif cells[0] in {"Host:", "Cmdline:"}:
            _begin(runs, cells)
        elif _ALL_QUOTED.fullmatch(line.strip()):
            titles.append(cells)
            if len(titles) == 2:
                _head(runs, titles)
                titles = []
            continue
        elif is_cut and index == len(lines) - 1:
            builder.warn("cut", "the last row has no end and was left out")
        else:
            fitted = runs[-1].fitted(cells) if runs[-1].names else None
            if fitted is None:
                builder.warn("damaged", "rows with another number of cells than their header were left out")
            else:
                runs[-1].rows.append(fitted)
        titles = []
    return runs


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _begin(runs: list[_Run], cells: list[str]) -> None:
    """Take in a line that says where, how or when a run began."""
    if runs[-1].names:
        runs.append(runs[-1].begun_again())
    run = runs[-1]
    after = dict(pairwise(cells))
    run.host = after.get("Host:", run.host).strip()
    run.command = after.get("Cmdline:", run.command)
    run.date = after.get("Date:", run.date)


def _head(runs: list[_Run], titles: list[list[str]]) -> None:
    """Take in the two lines of headings: a group stands over its first column only."""
    if runs[-1].names:
        runs.append(runs[-1].begun_again())
    groups, names = titles
    groups += [""] * (len(names) - len(groups))
    group = ""
    for place, name in enumerate(names):
        group = groups[place] or group
        runs[-1].groups.append(group)
        runs[-1].names.append(name)


def _kind_of(group: str, name: str) -> tuple[str, str]:
    """What a column speaks of, and the item of its kind; the item of the whole machine is ``total``."""
    kind, slash, item = group.partition("/")
    if slash and kind in {"dsk", "io", "net"}:
        return kind, item
    if name in _OF_DISK:
        return "dsk", group
    cpu = re.fullmatch(r"(?:cpu ?(\d{1,5})|total(?: cpu)?) usage", group)
    if cpu is not None:
        return "cpu", cpu[1] or "total"
    if group in {"memory usage", "advanced memory usage"}:
        return "memory", "total"
    if name in {"used", "free"} and group in {"swap", "swp/total", "total"}:
        return "swap", "total"
    return group, "total"


_ITEMS = {
    "cpu": EntityKind.CPU,
    "dsk": EntityKind.BLOCK_DEVICE,
    "io": EntityKind.BLOCK_DEVICE,
    "net": EntityKind.NIC,
}


@dataclass(slots=True)
class _Collected:
    """Series of all runs: per metric and entity the times, the values, and whether the first is since boot."""

    request: Request
    series: dict[tuple[str, Entity], list[tuple[NDArray[np.int64], NDArray[np.float64], bool]]] = field(
        default_factory=dict
    )

    def add(self, run: _Run, times: NDArray[np.int64], kept: list[int]) -> None:
        """Add the rows of a run that have a time [n]; ``kept`` are their places."""
        if not len(times):
            return
        values = np.array([[_number(cell) for cell in run.rows[row]] for row in kept])
        since_boot = run.tool != "pcp-dstat" and kept[0] == 0
        levels: set[str] = set()
        columns: dict[Entity, Columns] = {}
        for place, (group, full_name) in enumerate(zip(run.groups, run.names, strict=True)):
            name = full_name.removeprefix(f"{group}:")
            if name in {"time", "epoch"} and group in {"system", "epoch"}:
                continue
            entity, metric, column = _placed(run, _kind_of(group, name), name, values[:, place])
            if not np.isnan(column).all():
                columns.setdefault(entity, {}).setdefault(metric, column)
                if _is_level(group, name):
                    levels.add(metric)
        for entity, of_entity in columns.items():
            add_cpu_busy(of_entity)
            for metric, column in of_entity.items():
                is_average = since_boot and metric not in levels
                if self.request.wants(metric):
                    self.series.setdefault((metric, entity), []).append((times, column, is_average))

    def hand_to(self, builder: CaptureBuilder) -> None:
        """Add the series to a capture; an average since boot that is not the first sample is not measured."""
        for (metric, entity), parts in self.series.items():
            times = np.concatenate([times for times, _, _ in parts])
            values = np.concatenate([column for _, column, _ in parts])
            firsts = np.concatenate([np.arange(len(column)) == (0 if boot else -1) for _, column, boot in parts])
            order = np.argsort(times, kind="stable")
            firsts = firsts[order]
            values = np.where(firsts & (np.arange(len(values)) > 0), np.nan, values[order])
            builder.add_series(metric, entity, spread(times[order]), values, since_boot=bool(firsts[0]))


def _is_level(group: str, name: str) -> bool:
    return f"{_kind_of(group, name)[0]}.{name}" in _LEVELS


def _placed(
    run: _Run, kind_and_item: tuple[str, str], name: str, column: NDArray[np.float64]
) -> tuple[Entity, str, NDArray[np.float64]]:
    """Entity, metric and values in the metric's unit of a column; a metric of our own where there is no canonical."""
    kind, item = kind_and_item
    is_total = item == "total"
    key = f"{kind}/total.{name}" if is_total and kind in {"dsk", "io", "net"} else f"{kind}.{name}"
    known = META.fields.get(key)
    if known is None:
        raw = f"{RAW_PREFIX}dstat.{kind}.{item}.{name}" if kind in _ITEMS else f"{RAW_PREFIX}dstat.{kind}.{name}"
        return run.guest, raw, column
    scale = factor(known.unit, metric_of(known.metric).unit)
    if run.tool == "pcp-dstat":
        if key.startswith(_PCP_KIB) and known.unit in {"bytes", "bytes_per_s"}:
            scale *= 1024.0
        elif kind == "paging":
            scale *= _PAGE_BYTES
        elif key == "dsk.avgrq":
            scale = 1.0
    elif run.writes_bits and known.unit == "bytes_per_s" and kind in {"dsk", "net"}:
        scale /= 8.0
    if key in _ZERO_IS_NONE:
        column = np.where(column == 0, np.nan, column)
    entity = run.guest if is_total or kind not in _ITEMS else Entity(_ITEMS[kind], item, run.guest)
    return entity, known.metric, column * scale


def _number(text: str) -> float:
    """The number of a cell; NaN for none or for one that nothing counts."""
    try:
        value = float(text) if len(text) < 40 else float("nan")
    except ValueError:
        return float("nan")
    return value if 0.0 <= value < 1e18 else float("nan")
