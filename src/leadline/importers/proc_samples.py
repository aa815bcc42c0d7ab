"""Disks, CPUs, paging, memory and network of Linux, as copies of the kernel's files taken one after another.

Reads:
    Copies of ``/proc/diskstats``, ``/proc/stat``, ``/proc/vmstat``, ``/proc/meminfo`` and ``/proc/net/dev``, one kind
    or several, with a line of time before each: ``TS EPOCH DATE TIME`` (pt-stalk, pt-diskstats: files ``-diskstats``,
    ``-procstat``, ``-procvmstat``, ``-meminfo``), ``zzz ***DATE`` (OSWatcher), what ``date`` prints, ISO 8601 or the
    seconds since 1970. Also copies without times, and one copy alone.

Sample:
    .. code-block:: text

        TS 1795510800.003042017 2026-11-24 09:00:00
         253       0 vda 6843 12 466422 4187 8730 6021 331512 9876 0 11020 14063 0 0 0 0 411 120
        TS 1795510801.003913021 2026-11-24 09:00:01
         253       0 vda 6849 12 466822 4190 8790 6061 332512 9906 1 11060 14096 0 0 0 0 413 121

Lost:
    Partitions, which are counted with their disk, the loopback interface, and intervals in which a counter fell. Rates
    where no line tells the time. One copy alone gives averages since boot: how long a request took and how large it
    was, never how many there were per second.

Units:
    Counters become rates between two copies as sysstat computes them; sectors are 512 bytes, times are milliseconds,
    pages 4 KiB, memory KiB. Flushes are there from Linux 5.5 on.

Sources:
    Linux kernel documentation, admin-guide/iostats; proc_stat(5), proc_meminfo(5); sysstat, iostat.c; pt-stalk and
    pt-diskstats of Percona Toolkit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.linux.procfs import MEMORY_FIELDS, parse_memory
from leadline.formats.linux.procfs_counters import FIELDS, CounterTables, entity_in
from leadline.formats.linux.sample_stamps import stamp_of
from leadline.formats.sysstat.text import add_cpu_busy
from leadline.formats.tables import SampleTable, TableScheme, emit

META = ImporterMeta(
    tool="/proc samples",
    layers=(Layer.GUEST,),
    fields={**FIELDS, **MEMORY_FIELDS},
    record="while sleep 1; do date +'TS %s.%N %F %T'; cat /proc/diskstats; done > diskstats.txt",
)

_DISK = re.compile(r" {0,8}\d{1,4} {1,8}\d{1,8} [\w/!.:-]{1,64}(?: \d{1,20}){4,20} ?", re.ASCII)
_STAT = re.compile(r"(?:cpu\d{0,5}|intr|ctxt|btime|processes|procs_running|procs_blocked|softirq)(?: {1,2}\d{1,20})+ ?")
_MEMORY = re.compile(r"[A-Z][\w()]{2,40}: {1,20}\d{1,18}(?: kB)?", re.ASCII)
_PAGING = re.compile(r"[a-z][a-z0-9_]{3,60} \d{1,20}", re.ASCII)
_NET = re.compile(r" {0,12}[\w.@:-]{1,32}: {0,16}\d{1,20}(?: {1,20}\d{1,20}){15}", re.ASCII)
_NET_HEAD = re.compile(r"(?:Inter-\||  ?face \|).{1,160}")
_DISK_WORDS_MIN = 14  # the partitions of Linux 2.6 have fewer, and are left out like all others
_KINDS = (
    ("/proc/diskstats", _DISK),
    ("/proc/stat", _STAT),
    ("/proc/meminfo", _MEMORY),
    ("/proc/vmstat", _PAGING),
    ("/proc/net/dev", _NET),
)
# What needs no time between two copies.
_RATIOS = frozenset(
    FIELDS[name].metric
    for name in FIELDS
    if name.startswith("cpu:") or name.endswith(("await", "areq-sz", ":blocked"))
) | {"guest_cpu_busy_pct"}  # fmt: skip
_NS_PER_S = 1_000_000_000


def sniff(source: Source) -> int:
    """Sure where the first lines are lines of time and of the kernel's files, with a disk or a CPU among them."""
    lines = [line for line in source.head_text.splitlines()[:60] if line.strip()][:-1] or source.head_text.splitlines()
    kinds = [_kind(line) for line in lines]
    stamps = sum(1 for line, kind in zip(lines, kinds, strict=True) if kind is None and stamp_of(line, Request()))
    known = sum(1 for kind in kinds if kind is not None)
    sure = any(_is_sure(line, kind) for line, kind in zip(lines, kinds, strict=True))
    return 88 if sure and (known + stamps) * 10 >= 9 * len(lines) and known * 2 > len(lines) else 0


def _kind(line: str) -> str | None:
    """Which of the kernel's files a line is of; None for none."""
    if _NET_HEAD.fullmatch(line):
        return "/proc/net/dev"
    return next((path for path, form in _KINDS if form.fullmatch(line)), None)


def _is_sure(line: str, kind: str | None) -> bool:
    if kind == "/proc/diskstats":
        return len(line.split()) >= _DISK_WORDS_MIN
    starts = {
        "/proc/stat": "cpu ",
        "/proc/meminfo": "MemTotal:",
        "/proc/vmstat": "nr_free_pages ",
        "/proc/net/dev": "Int",
    }
    return kind is not None and line.startswith(starts[kind])


def read(source: Source, request: Request) -> Capture:
    """The guest's series, a value for each interval between two copies.

    Raises:
        InputError: a line is none of the kernel's files, or there is no copy.
    """
    builder = CaptureBuilder(source.name, "proc-samples", META.tool)
    samples, zoned = _samples(source, request, builder)
    if not samples:
        raise _refused(f"{source.name}:1", "no copy of a file of the kernel")
    timed = all(sample.time_ns is not None for sample in samples)
    if not timed:
        builder.warn("no-times", "samples have no time: no rates, and they end at the file's last change")
        placed = synthetic_times(len(samples), 1.0, source.mtime_ns).tolist()
        samples = [replace(sample, time_ns=moment) for sample, moment in zip(samples, placed, strict=True)]
    elif not zoned and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    _emit_counters(samples, builder, request, timed=timed)
    _emit_memory(samples, builder, request)
    return builder.build(clock_known=timed and (zoned or request.timezone is not None))


@dataclass(slots=True)
class _Copies:
    """The copies of one moment: the lines of each file, and the names that began them."""

    time_ns: int | None = None
    lines: dict[str, list[str]] = field(default_factory=dict)
    names: set[tuple[str, str]] = field(default_factory=set)


def _samples(source: Source, request: Request, builder: CaptureBuilder) -> tuple[list[_Copies], bool]:
    """The samples in order, and whether all times have a zone."""
    lines = source.lines()
    if lines and not source.text().endswith(("\n", "\r")):
        builder.warn("cut", "the last line has no end and was left out")
        lines = lines[:-1]
    samples, zoned = [_Copies()], True
    for number, line in enumerate(lines, 1):
        kind = _kind(line)
        if kind is None:
            stamp = stamp_of(line, request) if line.strip() else None
            if stamp is None and line.strip():
                raise _refused(f"{source.name}:{number}", f"{line.strip()[:60]!r}")
            if stamp is not None:
                zoned = zoned and stamp[1]
                samples.append(_Copies(stamp[0]))
            continue
        words = line.split(None, 3)
        name = (kind, words[2] if kind == "/proc/diskstats" else words[0])
        if name in samples[-1].names and not _NET_HEAD.fullmatch(line):
            samples.append(_Copies())
        samples[-1].names.add(name)
        if kind != "/proc/diskstats" or len(line.split()) >= _DISK_WORDS_MIN:
            samples[-1].lines.setdefault(kind, []).append(line)
    return [sample for sample in samples if sample.lines], zoned


def _emit_counters(samples: list[_Copies], builder: CaptureBuilder, request: Request, *, timed: bool) -> None:
    tables = CounterTables()
    copies: dict[str, int] = {}
    for sample in samples:
        for path in sample.lines:
            copies[path] = copies.get(path, 0) + (path != "/proc/meminfo")
    alone = max(copies.values(), default=0) == 1
    scheme = TableScheme("procfs", FIELDS, partial(entity_in, UNNAMED_GUEST), derive=add_cpu_busy)
    wanted = request
    if alone or not timed:
        metrics = _RATIOS if request.metrics is None else _RATIOS & request.metrics
        wanted = replace(request, metrics=frozenset(metrics))
    for sample in samples:
        for path, lines in sample.lines.items():
            if path == "/proc/meminfo" or sample.time_ns is None:
                continue
            if alone:
                tables.add(sample.time_ns - _NS_PER_S, path, [_zeroed(line) for line in lines])
            tables.add(sample.time_ns, path, lines)
    for table in tables.tables():
        emit(table, np.array(table.moments, dtype=np.int64), scheme, builder, wanted, since_boot=alone)
    if alone:
        builder.warn("since-boot", "one copy of the counters: averages since boot; take two, a second apart, for rates")


def _zeroed(line: str) -> str:
    """A line of counters as it was at boot."""
    words = line.split(None, 3)
    if words[0].isdigit():
        return " ".join([*words[:3], re.sub(r"\d+", "0", words[3])])
    name, mark, rest = line.partition(":") if ":" in line else line.partition(" ")
    return f"{name}{mark}{re.sub(r'[0-9]+', '0', rest)}"


def _emit_memory(samples: list[_Copies], builder: CaptureBuilder, request: Request) -> None:
    kept = [(s.time_ns, parse_memory(s.lines["/proc/meminfo"])) for s in samples if "/proc/meminfo" in s.lines]
    names = tuple(dict.fromkeys(name for _, values in kept for name in values))
    table = SampleTable("", names)
    for moment, values in kept:
        table.add(moment or 0, "", [values.get(name, float("nan")) for name in names])
    scheme = TableScheme("meminfo", MEMORY_FIELDS, lambda group, item: UNNAMED_GUEST)
    emit(table, np.array(table.moments, dtype=np.int64), scheme, builder, request)
    total_kib = next((values["MemTotal"] for _, values in kept if "MemTotal" in values), None)
    memory_mib = None if total_kib is None else total_kib / 1024
    builder.inventory.add(UNNAMED_GUEST, builder.info.name, memory_mib=memory_mib)


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="a line of time, or one of /proc/diskstats, stat, vmstat, meminfo or net/dev",
        advice=f"Record it with: {META.record}",
    )
