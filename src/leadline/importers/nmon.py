"""CPU, memory, disks and network of a guest, as nmon records them.

Reads:
    ``nmon -f`` or ``nmon -F FILE`` of Linux; the sections of AIX that mean the same. Sorted files too.

Sample:
    .. code-block:: text

        DISKREAD,Disk Read KB/s db01,loop0,loop1,loop2,loop3,vda
        ZZZZ,T0002,00:52:55,21-NOV-2026
        PROC,T0002,2,0,1408.4,-1.0,-1.0,-1.0,1.0,-1.0,-1.0,-1.0
        DISKREAD,T0002,0.0,0.0,0.0,0.0,8.0

Lost:
    Processes (TOP), the configuration dump (BBBP), arguments (UARG). nmon writes negative numbers, and a minus zero,
    for what the kernel does not report: not measured. AIX's service times leave the queue out and Linux' disk groups
    print sums of them: both stay raw counters and are no await.

Units:
    KB are KiB, MB are MiB. VM holds counts of the interval, not rates: ``pgpgin`` KiB, ``pswpin`` pages. Rates are
    made of them with the interval asked for, or the distance of the time stamps where it differs by over a second.

Sources:
    lmon.c of nmon 16 (``proc_read``, ``proc_net``, ``proc_disk``); IBM AIX documentation, nmon command; checked
    against DISKREAD and DISKWRITE of the same recording.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from leadline._core import CoreError, NmonRecording
from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, rolled_over, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder, SeriesGroup, usual_interval_s
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.stamps import YEARS
from leadline.formats.tables import spread

Matrix = NDArray[np.float64]  # [columns, snapshots]

META = ImporterMeta(
    tool="nmon",
    marks=("aaa,",),
    layers=(Layer.GUEST, Layer.NETWORK),
    fields={
        "CPU.User%": Field("guest_cpu_user_pct", "pct"),
        "CPU.Sys%": Field("guest_cpu_system_pct", "pct"),
        "CPU.Wait%": Field("guest_cpu_iowait_pct", "pct"),
        "CPU.Idle%": Field("guest_cpu_idle_pct", "pct"),
        "CPU.Steal%": Field("guest_cpu_steal_pct", "pct"),
        "CPU.busy": Field("guest_cpu_busy_pct", "pct"),
        "MEM.memfree": Field("guest_memory_free_mib", "mib"),
        "MEM.cached": Field("guest_memory_cached_mib", "mib"),
        "MEM.buffers": Field("guest_memory_buffers_mib", "mib"),
        "MEM.active": Field("guest_memory_active_mib", "mib"),
        "MEM.inactive": Field("guest_memory_inactive_mib", "mib"),
        "MEM.swapused": Field("guest_swap_used_mib", "mib"),
        "PROC.Runnable": Field("guest_run_queue_count", "count"),
        "PROC.Blocked": Field("guest_blocked_count", "count"),
        "PROC.pswitch": Field("guest_context_switches_per_s", "per_s"),
        "PROC.fork": Field("guest_forks_per_s", "per_s"),
        "VM.pgpgin": Field("guest_page_in_kib_per_s", "kib_per_s"),
        "VM.pgpgout": Field("guest_page_out_kib_per_s", "kib_per_s"),
        "VM.pswpin": Field("guest_swap_in_kib_per_s", "kib_per_s"),
        "VM.pswpout": Field("guest_swap_out_kib_per_s", "kib_per_s"),
        "VM.pgfault": Field("guest_page_faults_per_s", "per_s"),
        "VM.pgmajfault": Field("guest_major_faults_per_s", "per_s"),
        "DISKBUSY": Field("guest_disk_util_pct", "pct"),
        "DISKREAD": Field("disk_read_mib_per_s", "kib_per_s"),
        "DISKWRITE": Field("disk_write_mib_per_s", "kib_per_s"),
        "DISKXFER": Field("disk_iops", "per_s"),
        "DISKREADS": Field("disk_reads_per_s", "per_s"),
        "DISKWRITES": Field("disk_writes_per_s", "per_s"),
        "DISKBSIZE": Field("guest_disk_io_size_kib", "kib"),
        "NET.read": Field("net_rx_mbit_per_s", "kib_per_s"),
        "NET.write": Field("net_tx_mbit_per_s", "kib_per_s"),
        "NETPACKET.read": Field("net_rx_packets_per_s", "per_s"),
        "NETPACKET.write": Field("net_tx_packets_per_s", "per_s"),
    },
    record="nmon -f -s 10 -c 360",
)

_MONTHS = {name: i for i, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}
_DATE = re.compile(r"(\d{1,2})-([A-Za-z]{3})-(\d{4})")
_MINUTE = re.compile(r"(\d{1,2}):(\d\d)")
_SECOND = re.compile(r"[0-5]\d")
_CPU = re.compile(r"CPU(\d{1,6}|_ALL)")
_DISK = re.compile(r"(DISK[A-Z]+)\d*")  # a number where there are more disks than fit on a line
_INTERFACE = re.compile(r"(.+)-(read|write)s?(?:-KB)?/s")
_PAGE_KIB = {"x86_64": 4.0, "i686": 4.0, "i586": 4.0, "s390x": 4.0}  # others are built with pages of several sizes


def sniff(source: Source) -> int:
    """Sure by nmon's own facts at the start, or the kinds of lines of a sorted file."""
    text = source.head_text
    return 95 if re.search(r"^AAA,(?:progname,\w*nmon|snapshots,\d|note0)", text, re.MULTILINE) else 0


def read(source: Source, request: Request) -> Capture:
    """The capture of a recording.

    Lines that are neither fact, heading, stamp nor row, rows that do not fit their heading, and sections whose heading
    names a column twice are left out and counted.

    Raises:
        InputError: no snapshot has a time and a row.
    """
    builder = CaptureBuilder(source.name, "nmon", META.tool)
    recording = _opened(source)
    if recording.is_cut:
        builder.warn("cut", "the last line has no end and was left out")
    has_row, stamped = recording.has_row, recording.stamp_snapshots.astype(np.int64)
    chosen = np.flatnonzero(has_row[stamped])
    if not len(chosen):
        raise _nothing_sound(source, recording)
    _note_damages(recording, builder)
    if lost := int(has_row.sum()) - len(chosen):
        builder.warn("no-stamp", "snapshots without a time stamp (ZZZZ) were left out", lost)
    facts = dict(recording.facts)
    clock = _Clock(source, request, builder, facts)
    clocks, days, stamp_days = recording.clocks, recording.days, recording.stamp_days.tolist()
    moments, is_sound = clock.times([(clocks[i], days[stamp_days[i]]) for i in chosen.tolist()])
    chosen = chosen[is_sound]
    if np.any(np.diff(moments) < 0):
        builder.warn("clock-back", "the clock went back while recording; samples are in the order of their times")
    order = np.argsort(moments, kind="stable")
    places = np.full(len(has_row), -1, dtype=np.int64)
    places[stamped[chosen][order]] = np.arange(len(chosen))
    host = facts.get("host") or None
    guest = Entity(EntityKind.GUEST, host) if host else UNNAMED_GUEST
    writer = _Writer(builder, request, guest, spread(moments[order]), facts)
    for i, (kind, names) in enumerate(recording.sections):
        columns = {name: column for column, name in enumerate(names)}
        writer.section(kind, columns, recording.take_values(i, places, len(chosen)))
    writer.note_guest()
    return builder.build(host=host, tool_version=facts.get("version"), clock_known=clock.known)


def _opened(source: Source) -> NmonRecording:
    """What the lines of a file say, before any time or unit is known.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        if source.head.startswith((b"\xff\xfe", b"\xfe\xff")):
            return NmonRecording.from_bytes(source.text().encode(), source.name)
        return NmonRecording.open(source.path, source.name)
    except CoreError as error:
        raise InputError(error.where, found=error.found, expected=error.expected, advice=error.advice) from error


def _nothing_sound(source: Source, recording: NmonRecording) -> InputError:
    """The error for a recording of which nothing can be used: its first damage, where it has one."""
    if not recording.damages:
        return _error(source.name, "no snapshot with a time (ZZZZ)")
    line, _, problem, detail = recording.damages[0]
    return _error(f"{source.name}:{line}", problem.replace("{}", repr(detail[:60])))


def _note_damages(recording: NmonRecording, builder: CaptureBuilder) -> None:
    """Say what was left out, how often, and where it begins."""
    for line, count, problem, detail in recording.damages:
        lines = f"line {line}" if count == 1 else f"{count:,} lines from line {line} on"
        builder.warn("left-out", f"left out: {lines}: {problem.replace('{}', repr(detail[:60]))}")
    if recording.further_damage_count:
        builder.warn("left-out", f"left out: {recording.further_damage_count:,} lines for further reasons")


def _error(place: str, problem: str) -> InputError:
    """The error that names a place and what was read there."""
    return InputError(
        place,
        found=problem,
        expected="the lines of one nmon recording: AAA facts, headings, ZZZZ time stamps and rows of snapshots",
        advice="Record again with `nmon -f -s 10 -c 360`, and name recordings one by one, not joined.",
    )


@dataclass(slots=True)
class _Clock:
    """Turns stamps into times, with warnings about what had to be assumed."""

    source: Source
    request: Request
    builder: CaptureBuilder
    facts: Mapping[str, str]
    known: bool = True
    minutes_ns: dict[tuple[str, str], int] = field(default_factory=dict)

    def times(self, stamps: list[tuple[str, str]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """UTC nanoseconds int64 [n] of stamps (time, date) in the order of the recording, and which of them are such.

        Raises:
            InputError: no stamp is a time and a date.
            UsageError: the request names a date or time zone that does not exist.
        """
        if self.request.timezone is None:
            self.known = False
            self.builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
        dated = all(day for _, day in stamps)
        start = None if dated else self._start()
        moments = [self._moment(clock, day if start is None else start) for clock, day in stamps]
        is_sound = np.array([moment is not None for moment in moments], dtype=bool)
        if not is_sound.all():
            odd = stamps[int(np.argmin(is_sound))]
            if not is_sound.any():
                raise self._refused(",".join(odd))
            count = int((~is_sound).sum())
            self.builder.warn("left-out", f"left out: snapshots whose time stamp is none, as {odd[0][:40]!r}", count)
        times = [moment for moment in moments if moment is not None]
        return np.array(times, dtype=np.int64) if dated else rolled_over(times), is_sound

    def _start(self) -> str:
        text = self.facts.get("date", "")
        if self.request.date is None and text:
            return text
        self.known = False
        day = assumed_date(self.source, self.request)
        self.builder.warn("no-date", f"times have no date; {day} was assumed; --date sets it")
        return f"{day.day}-{list(_MONTHS)[day.month - 1]}-{day.year}"

    def _moment(self, clock: str, day: str) -> int | None:
        """UTC nanoseconds; None where it is no time."""
        minute, _, second = clock.rpartition(":")
        minute_ns = self.minutes_ns.get((minute, day))
        if minute_ns is None:
            minute_ns = self._minute(minute, day)
        if minute_ns is None or _SECOND.fullmatch(second) is None:
            return None
        self.minutes_ns[minute, day] = minute_ns
        return minute_ns + int(second) * 1_000_000_000

    def _minute(self, minute: str, day: str) -> int | None:
        """The UTC nanoseconds of a minute, None when there is no such time."""
        on, at = _DATE.fullmatch(day), _MINUTE.fullmatch(minute)
        if on is None or at is None or int(on[3]) not in YEARS or on[2].upper() not in _MONTHS:
            return None
        text = f"{on[3]}-{_MONTHS[on[2].upper()]:02}-{on[1]:0>2}T{at[1]:0>2}:{at[2]}"
        try:
            return to_ns(datetime.fromisoformat(text), self.request)
        except ValueError:
            return None

    def _refused(self, text: str) -> InputError:
        return InputError(
            self.source.name,
            found=f"the time stamp {text[:40]!r}",
            expected="ZZZZ with a snapshot, a time 23:59:59 and a date 21-NOV-2026",
            advice="Record again with LC_ALL=C in the environment.",
        )


@dataclass(slots=True)
class _Writer:
    """Gives sections to a capture."""

    builder: CaptureBuilder
    request: Request
    guest: Entity
    times: NDArray[np.int64]
    facts: Mapping[str, str]
    memory_mib: float | None = None

    def section(self, kind: str, columns: Mapping[str, int], values: Matrix) -> None:
        """Add the series of a section."""
        disk, cpu = _DISK.fullmatch(kind), _CPU.fullmatch(kind)
        if disk is not None and disk[1] in META.fields:
            self._disks(disk[1], list(columns), values)
        elif cpu is not None:
            entity = self.guest if cpu[1] == "_ALL" else Entity(EntityKind.CPU, str(int(cpu[1]) - 1), self.guest)
            rows = {name: values[i] for name, i in columns.items() if name not in {"Busy", "CPUs"}}
            if "Idle%" in rows and "Wait%" in rows:
                rows["busy"] = np.clip(100.0 - rows["Idle%"] - rows["Wait%"], 0.0, 100.0)
            self._named("CPU", rows, entity)
        elif kind in {"NET", "NETPACKET"}:
            self._interfaces(kind, columns, values)
        else:
            rows = {name: values[i] for name, i in columns.items()}
            derive = {"MEM": self._memory, "VM": self._rates, "PROC": _without_first_count}
            if kind in derive:
                derive[kind](rows)
            self._named(kind, rows, self.guest)

    def note_guest(self) -> None:
        """Record what the facts say of the guest."""
        cpus = self.facts.get("cpus", "").split(",", maxsplit=1)[0]
        system = self.facts.get("OS", "").split(",")
        release = f"{system[0]} {system[1]}" if len(system) > 1 and system[1] else None
        count = int(cpus) if cpus.isascii() and cpus.isdigit() and len(cpus) < 7 else None
        name, memory = self.builder.info.name, self.memory_mib
        self.builder.inventory.add(self.guest, name, cpu_count=count, os_release=release, memory_mib=memory)

    def _add(self, name: str, entities: list[Entity], values: Matrix) -> None:
        """Add rows [k, n] under nmon's name, without those never measured."""
        known = META.fields.get(name)
        metric = known.metric if known is not None else f"{RAW_PREFIX}nmon.{name}"
        rows = [i for i, row in enumerate(values) if not np.isnan(row).all()]
        if not rows or not self.request.wants(metric):
            return
        scale = 1.0 if known is None else factor(known.unit, metric_of(metric).unit)
        step = usual_interval_s(self.times)
        interval = self._asked_s() if np.isnan(step) else step
        kept = [entities[i] for i in rows]
        self.builder.add(SeriesGroup(metric, kept, self.times, values[rows] * scale, interval))

    def _named(self, kind: str, rows: Mapping[str, Matrix], entity: Entity) -> None:
        for name, row in rows.items():
            self._add(f"{kind}.{name}", [entity], row[np.newaxis])

    def _disks(self, kind: str, names: list[str], values: Matrix) -> None:
        if kind == "DISKBSIZE":
            values[values == 0] = np.nan  # the size of no transfer
        self._add(kind, [Entity(EntityKind.BLOCK_DEVICE, name, self.guest) for name in names], values)

    def _interfaces(self, kind: str, columns: Mapping[str, int], values: Matrix) -> None:
        for way in ("read", "write"):
            matches = {i: _INTERFACE.fullmatch(name) for name, i in columns.items()}
            names = {i: match[1] for i, match in matches.items() if match is not None and match[2] == way}
            entities = [Entity(EntityKind.NIC, name, self.guest) for name in names.values()]
            self._add(f"{kind}.{way}", entities, values[list(names)])

    def _memory(self, rows: dict[str, Matrix]) -> None:
        if "memtotal" in rows and np.isfinite(rows["memtotal"]).any():
            self.memory_mib = float(rows["memtotal"][np.isfinite(rows["memtotal"])][-1])
        if "swaptotal" in rows and "swapfree" in rows:
            rows["swapused"] = np.maximum(rows["swaptotal"] - rows["swapfree"], 0.0)

    def _asked_s(self) -> float:
        text = self.facts.get("interval", "")
        return float(text) if text.isascii() and text.isdigit() and 0 < len(text) < 8 and int(text) else float("nan")

    def _rates(self, rows: dict[str, Matrix]) -> None:
        """Counts of intervals to rates in place, those without canonical metric left as they are."""
        asked = self._asked_s()
        lengths = np.diff(self.times, prepend=self.times[0]) / 1e9
        lengths[0] = asked
        near = np.abs(lengths - asked) <= 1.0  # stamps are whole seconds: their distance is one more or less
        lengths = np.where(near, asked, lengths)
        system = self.facts.get("OS", "").split(",")
        page_kib = next((_PAGE_KIB[word] for word in system if word in _PAGE_KIB), float("nan"))
        for name in list(rows):
            if f"VM.{name}" in META.fields:
                rows[name] = rows[name] / lengths * (page_kib if name.startswith("pswp") else 1.0)
                if np.isnan(page_kib) and name.startswith("pswp"):
                    self.builder.warn("page-size", "the page size is not known: swapping was left out")


def _without_first_count(rows: dict[str, Matrix]) -> None:
    """The first snapshot has no earlier count of switches and forks to differ from: nmon prints 0.0 for both."""
    if "pswitch" in rows and rows["pswitch"][0] == 0.0:
        for name in {"pswitch", "fork"} & set(rows):
            rows[name] = np.concatenate(([np.nan], rows[name][1:]))
