"""What Xen's domains use, as ``xentop`` and ``xl list`` print it.

Reads:
    Text of ``xentop -b [-f] [-i N] [-d S] [-x]`` (also ``xm top``, and what was copied off its screen), one or many
    reports, with a line of ``date`` before a report or the clock of the screen's first line; ``xl list``, ``xm list``.

Sample:
    .. code-block:: text

              NAME  STATE   CPU(sec) CPU(%)     MEM(k) MEM(%)  MAXMEM(k) MAXMEM(%) VCPUS NETS NETTX(k) NETRX(k) VBDS ...
          Domain-0 -----r        632    0.3   15446944   92.3   no limit       n/a     8    0        0        0    0 ...
          guest-01 --b---          7    0.0    1048576    6.3    1049600       6.3     2    1      113       34    2 ...

Lost:
    Ready time: Xen does not print it; a guest's own steal (``vmstat``, ``top``) is it. Without times there are no
    rates, only shares of CPU and memory. Disks are those of a whole domain, unless ``-x`` prints each.

Units:
    CPU(%) is the sum over vCPUs and is kept per vCPU; the first report of a run has none. Memory is KiB. Requests,
    sectors of 512 bytes and KiB count since a domain was started. VBD_OO is how often the backend had no place left.

Sources:
    Xen's tools/xentop/xentop.c; xentop(1); xl(1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, rolled_over, synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.date_lines import DateLines
from leadline.formats.stamps import parse_stamp

META = ImporterMeta(
    tool="xentop",
    marks=("cpu(sec)", "vcpus"),
    layers=(Layer.HYPERVISOR_CPU, Layer.STORAGE_PATH),
    fields={
        "CPU(%)": Field("cpu_run_pct", "pct"),
        "MEM(k)": Field("memory_consumed_mib", "kib"),
        "VBD_RD": Field("disk_reads_per_s", "per_s"),
        "VBD_WR": Field("disk_writes_per_s", "per_s"),
        "VBD_RSECT": Field("disk_read_mib_per_s", "sectors_per_s"),
        "VBD_WSECT": Field("disk_write_mib_per_s", "sectors_per_s"),
    },
    record='xentop -b -f -d 10 -i 60 | while read -r l; do case $l in NAME*) date;; esac; echo "$l"; done > xentop.txt',
)

_HEADING = re.compile(r"^[ \t]*NAME(?:\(s\))?[ \t]+STATE[ \t]+CPU\(sec\)[ \t]+CPU\(%\)[^\n]{0,400}", re.MULTILINE)
_LIST = re.compile(r"^Name[ \t]+ID[ \t]+Mem(?:\(MiB\))?[ \t]+VCPUs[ \t]+State[ \t]+Time\(s\)[ \t]*\r?$", re.MULTILINE)
_SCREEN = re.compile(r"xentop - (\d\d:\d\d:\d\d) .{0,60}")
_SUMMARY = re.compile(r"\d+ domains: .{0,120}|Mem: \d+k total, .{0,160}")
_STATE = re.compile(r"[dsbcpr-]{5,7}")
_VBD = re.compile(
    r"\s*VBD (\S{1,20})\s+(\d{1,10})\s+\[\s?([0-9a-f]{1,4}):\s?([0-9a-f]{1,4})\]\s+OO:\s+(\d{1,20})\s+RD:\s+(\d{1,20})"
    r"\s+WR:\s+(\d{1,20})(?:\s+RSECT:\s+(\d{1,20})\s+WSECT:\s+(\d{1,20}))?\s*"
)
_OTHER = re.compile(r"\s*(?:VCPUs\(sec\):|Net ?\d+ |Tmem:|-{3,}|\^C|No domains).*")
_XVD_MAJOR = 0xCA
_SECTOR_MIB = 512 / 2**20
_KIB_PER_MIB = 1024.0
_STEP_S = 3.0  # xentop's own delay
_ALL = "all"  # the disks of a domain, where they are not printed one by one
Values = NDArray[np.float64]


@dataclass(slots=True)
class _Domain:
    """What a report says of a domain: its columns, and the counters of its disks by their name."""

    columns: dict[str, float] = field(default_factory=dict)
    disks: dict[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class _Table:
    """One report.

    Attributes:
        time_ns: when, UTC nanoseconds; None where no time is printed.
    """

    time_ns: int | None
    domains: dict[str, _Domain] = field(default_factory=dict)


def sniff(source: Source) -> int:
    """Sure by the headings of its columns."""
    text = source.head_text
    return 94 if _HEADING.search(text) else 90 if _LIST.search(text) else 0


def read(source: Source, request: Request) -> Capture:
    """The series of each domain and its disks.

    Raises:
        InputError: a line is none of xentop's, or there is no domain.
    """
    builder = CaptureBuilder(source.name, "xentop", META.tool)
    reader = _Lines(source, request, builder)
    reader.read()
    if not reader.tables and not reader.listed:
        raise reader.error("", "no domain")
    for name, (vcpus, memory_mib) in reader.listed.items():
        builder.inventory.add(Entity(EntityKind.VM, name), builder.info.name, vcpu_count=vcpus, memory_mib=memory_mib)
    tables = [table for table in reader.tables if table.domains]
    is_timed = bool(tables) and all(table.time_ns is not None for table in tables)
    if is_timed:
        times = np.array([table.time_ns for table in tables], dtype=np.int64)
        times = rolled_over(times.tolist()) if reader.is_undated else times
        steps = np.diff(times)
        is_timed = bool(np.all(steps > 0))
    if tables and not is_timed:
        if len(tables) > 1:
            builder.warn("no-times", f"no times of reports: no rates; record with `{META.record}`")
        times = synthetic_times(len(tables), _STEP_S, source.mtime_ns)
    for name in dict.fromkeys(name for table in tables for name in table.domains):
        taken = [(int(t), table.domains[name]) for t, table in zip(times, tables, strict=True) if name in table.domains]
        _DomainSeries(Entity(EntityKind.VM, name), taken, request, builder).add(is_timed=is_timed)
    return builder.build(clock_known=is_timed and reader.is_zoned and not reader.is_undated)


@dataclass(slots=True)
class _Lines:
    """State of reading line by line."""

    source: Source
    request: Request
    builder: CaptureBuilder
    tables: list[_Table] = field(default_factory=list)
    listed: dict[str, tuple[int, float]] = field(default_factory=dict)
    is_zoned: bool = True
    is_undated: bool = False
    _now: int | None = None
    _columns: list[str] = field(default_factory=list)
    _domain: _Domain | None = None

    def read(self) -> None:
        """Read the whole file.

        Raises:
            InputError: a line is none of xentop's.
        """
        text = self.source.text()
        lines = text.splitlines()
        whole = len(lines) if text.endswith(("\n", "\r")) else len(lines) - 1
        dates = DateLines(self.request, self.builder)
        for index, line in enumerate(lines):
            if not line.strip() or _OTHER.fullmatch(line):
                continue
            if (moment := dates.time_ns(line)) is not None:
                self._now = moment
            elif not (self._heading(line) or self._screen(line) or self._disk(line) or self._row(line)):
                if index < whole:
                    raise self.error(f":{index + 1}", f"{line.strip()[:60]!r}")
                self.builder.warn("cut", "the last line was cut off and left out")
        self.is_zoned = self.is_zoned and dates.is_zoned

    def _heading(self, line: str) -> bool:
        if _LIST.fullmatch(line):
            self._columns = []
            return True
        if not _HEADING.fullmatch(line):
            return False
        words = line.split()
        if not self.tables or self._now is not None:  # `xentop -r` repeats the heading before every domain
            self.tables.append(_Table(self._now))
            self._now = None
        self._columns = words[2:]
        return True

    def _screen(self, line: str) -> bool:
        """The lines above the table on a screen."""
        bare = line.strip()
        if (match := _SCREEN.fullmatch(bare)) is not None:
            stamp = parse_stamp(match[1])
            if stamp is not None and self._now is None:
                from datetime import datetime  # noqa: PLC0415 - only screens have a clock without a date

                self._now = to_ns(datetime.combine(assumed_date(self.source, self.request), stamp.clock), self.request)
                self.is_undated = True
                self.builder.warn("no-date", "times have no date; the file's was assumed; --date sets it")
            return True
        return _SUMMARY.fullmatch(bare) is not None

    def _disk(self, line: str) -> bool:
        match = _VBD.fullmatch(line)
        if match is None or self._domain is None:
            return False
        major, minor = int(match[3], 16), int(match[4], 16)
        name = f"xvd{chr(ord('a') + minor // 16)}" if major == _XVD_MAJOR and minor < 16 * 26 else match[2]
        self._domain.disks[name] = tuple(float(match[i]) if match[i] else float("nan") for i in (6, 7, 8, 9, 5))
        return True

    def _row(self, line: str) -> bool:
        words = line.replace("no limit", "no-limit").split()
        state = next((i for i, word in enumerate(words) if i and _STATE.fullmatch(word)), None)
        if state is None:
            return False
        if not self._columns:
            return self._listed_row(words, state)
        cells = words[state + 1 :]
        if len(cells) != len(self._columns):
            return False
        columns = {name: _number(cell) for name, cell in zip(self._columns, cells, strict=True)}
        if any(np.isnan(columns.get(name, 0.0)) for name in ("CPU(sec)", "CPU(%)", "MEM(k)", "VCPUS")):
            return False
        name = " ".join(words[:state])
        table = self.tables[-1]
        if name in table.domains:  # a heading was lost
            self.tables.append(table := _Table(self._now))
            self._now = None
        self._domain = table.domains[name] = _Domain(columns)
        return True

    def _listed_row(self, words: list[str], state: int) -> bool:
        """A row of ``xl list``: name, ID, memory, vCPUs, state, time."""
        numbers = words[state - 3 : state]
        if state < 4 or not all(word.isascii() and word.isdigit() and len(word) < 10 for word in numbers[1:]):
            return False
        self.listed[" ".join(words[: state - 3])] = (int(numbers[2]), float(numbers[1]))
        return True

    def error(self, place: str, problem: str) -> InputError:
        """The error that names a place and what was read there."""
        return InputError(
            f"{self.source.name}{place}",
            found=problem,
            expected="rows of `xentop -b` (NAME, STATE, CPU(sec), CPU(%), ...) or of `xl list`",
            advice=f"Record it again: {META.record}",
        )


@dataclass(slots=True)
class _DomainSeries:
    """One domain's samples in the order of time, and its series."""

    vm: Entity
    taken: list[tuple[int, _Domain]]
    request: Request
    builder: CaptureBuilder

    def add(self, *, is_timed: bool) -> None:
        """Add shares of CPU and memory; rates only where reports have times."""
        vcpus = self._column("VCPUS")
        count = vcpus[-1]
        self.builder.inventory.add(self.vm, self.builder.info.name, vcpu_count=int(count) if count > 0 else None)
        cpu = self._column("CPU(%)")
        if cpu[0] == 0.0:
            cpu[0] = np.nan  # the first report has nothing to compare with
        self._put("cpu_run_pct", self.vm, cpu / np.where(vcpus > 0, vcpus, 1.0))
        self._put("memory_consumed_mib", self.vm, self._column("MEM(k)") / _KIB_PER_MIB)
        if not is_timed or len(self.taken) < 2:
            return
        names = {name: None for _, domain in self.taken for name in domain.disks}
        if not names:
            counters = [self._column(name) for name in ("VBD_RD", "VBD_WR", "VBD_RSECT", "VBD_WSECT", "VBD_OO")]
            if np.nansum(self._column("VBDS")) > 0:
                self._disk(Entity(EntityKind.VIRTUAL_DISK, _ALL, self.vm), counters)
        for name in names:
            absent = (float("nan"),) * 5
            rows = np.array([domain.disks.get(name, absent) for _, domain in self.taken], dtype=np.float64)
            self._disk(Entity(EntityKind.VIRTUAL_DISK, name, self.vm), list(rows.T))

    def _column(self, name: str) -> Values:
        return np.array([domain.columns.get(name, np.nan) for _, domain in self.taken], dtype=np.float64)

    def _disk(self, disk: Entity, counters: list[Values]) -> None:
        seconds = np.diff(np.array([time_ns for time_ns, _ in self.taken], dtype=np.int64)) / 1e9
        rates = []
        for values in counters:
            grown = np.diff(values)
            if bool(np.any(grown < 0)):
                self.builder.warn("reset", "a domain was started again: those intervals are not measured")
            rates.append(np.append(np.nan, np.where(grown < 0, np.nan, grown) / seconds))
        reads, writes, read_sectors, written_sectors, full = rates
        self._put("disk_reads_per_s", disk, reads)
        self._put("disk_writes_per_s", disk, writes)
        self._put("disk_iops", disk, reads + writes)
        self._put("disk_read_mib_per_s", disk, read_sectors * _SECTOR_MIB)
        self._put("disk_write_mib_per_s", disk, written_sectors * _SECTOR_MIB)
        self._put("raw.xentop.VBD_OO", disk, full)

    def _put(self, metric: str, entity: Entity, values: Values) -> None:
        wanted = self.request.metrics is None if metric.startswith("raw.") else self.request.wants(metric)
        measured = np.isfinite(values)
        if wanted and bool(measured.any()):
            first = int(np.argmax(measured))
            times = np.array([time_ns for time_ns, _ in self.taken], dtype=np.int64)
            self.builder.add_series(metric, entity, times[first:], values[first:])


def _number(cell: str) -> float:
    """A number; NaN for a cell without one (``n/a``, ``no limit``)."""
    try:
        value = float(cell)
    except ValueError:
        return float("nan")
    return value if abs(value) < 1e18 and "_" not in cell else float("nan")
