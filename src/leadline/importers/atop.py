r"""What atop recorded, in its parseable form (``atop -P``): CPU, memory, pressure, disks, network, processes.

Reads:
    The text of ``atop -P ALL`` or of any list of its labels, with or without ``-Z``, of atop 1.27 to 2.11: fields that
    a version does not print are not measured. A raw file of atop is refused with the command that makes this text.

Sample:
    .. code-block:: text

        RESET
        CPL db01 1795604985 2026/11/25 11:09:45 32958 2 2.68 2.18 1.99 156014286 57164648
        DSK db01 1795604985 2026/11/25 11:09:45 32958 vda 1512616 41526529 680695570 25708210 866617716 0 0 0 11.81
        SEP
        DSK db01 1795604987 2026/11/25 11:09:47 2 vda 8 10 80 21 336 0 0 0 1.25

Lost:
    Threads, NFS, Infiniband, graphics and NUMA. All but the fifty processes that took most CPU and the fifty that read
    and wrote most. Command lines, because they may hold passwords.

Units:
    Counts of an interval become rates, clock ticks shares, pages and sectors bytes. The first sample after ``RESET`` is
    since boot. The time of a request is the queue's length while the disk was busy, times its busy time, divided by the
    number of requests; versions without the queue's length tell none. Pressure is the share of the interval.

Sources:
    atop(1) of 2.8.1, "PARSEABLE OUTPUT"; parseable.c of atop 1.26 to 2.8; Little's law for the time of a request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import EPOCH_S_MAX, EPOCH_S_MIN
from leadline.formats.sysstat.text import add_cpu_busy
from leadline.formats.tables import SampleTable, TableScheme, emit

if TYPE_CHECKING:
    from leadline.core.io.source import Source

_CPU_FIELDS = {
    "system": Field("guest_cpu_system_pct", "pct"),
    "user": Field("guest_cpu_user_pct", "pct"),
    "nice": Field("guest_cpu_nice_pct", "pct"),
    "idle": Field("guest_cpu_idle_pct", "pct"),
    "wait": Field("guest_cpu_iowait_pct", "pct"),
    "irq": Field("guest_cpu_irq_pct", "pct"),
    "softirq": Field("guest_cpu_softirq_pct", "pct"),
    "steal": Field("guest_cpu_steal_pct", "pct"),
}

META = ImporterMeta(
    tool="atop",
    layers=(Layer.GUEST,),
    fields=_CPU_FIELDS
    | {
        "load 1": Field("guest_load_1m", "count"),
        "load 5": Field("guest_load_5m", "count"),
        "load 15": Field("guest_load_15m", "count"),
        "context switches": Field("guest_context_switches_per_s", "per_s"),
        "interrupts": Field("guest_interrupts_per_s", "per_s"),
        "free": Field("guest_memory_free_mib", "bytes"),
        "cache": Field("guest_memory_cached_mib", "bytes"),
        "buffers": Field("guest_memory_buffers_mib", "bytes"),
        "dirty": Field("guest_memory_dirty_mib", "bytes"),
        "swap used": Field("guest_swap_used_mib", "bytes"),
        "swap in": Field("guest_swap_in_kib_per_s", "bytes_per_s"),
        "swap out": Field("guest_swap_out_kib_per_s", "bytes_per_s"),
        "CPU some": Field("guest_pressure_cpu_some_pct", "pct"),
        "memory some": Field("guest_pressure_memory_some_pct", "pct"),
        "memory full": Field("guest_pressure_memory_full_pct", "pct"),
        "I/O some": Field("guest_pressure_io_some_pct", "pct"),
        "I/O full": Field("guest_pressure_io_full_pct", "pct"),
        "busy": Field("guest_disk_util_pct", "pct"),
        "reads": Field("disk_reads_per_s", "per_s"),
        "writes": Field("disk_writes_per_s", "per_s"),
        "read sectors": Field("disk_read_mib_per_s", "sectors_per_s"),
        "written sectors": Field("disk_write_mib_per_s", "sectors_per_s"),
        "queue": Field("guest_disk_queue_count", "count"),
        "wait per request": Field("guest_disk_await_ms", "ms"),
        "received bytes": Field("net_rx_mbit_per_s", "bytes_per_s"),
        "sent bytes": Field("net_tx_mbit_per_s", "bytes_per_s"),
        "received packets": Field("net_rx_packets_per_s", "per_s"),
        "sent packets": Field("net_tx_packets_per_s", "per_s"),
        "sent segments": Field("net_tcp_segments_per_s", "per_s"),
        "retransmitted segments": Field("net_tcp_retransmits_per_s", "per_s"),
        "process user": Field("process_cpu_user_pct", "pct"),
        "process system": Field("process_cpu_system_pct", "pct"),
        "process read sectors": Field("process_read_kib_per_s", "sectors_per_s"),
        "process written sectors": Field("process_write_kib_per_s", "sectors_per_s"),
    },
    record="atop -r /var/log/atop/atop_$(date +%Y%m%d) -P ALL > atop.txt",
    marks=("linux", *(f"{label} " for label in "cpu cpl mem swp pag psi dsk lvm mdd net prc prd".split())),
)

NAN = float("nan")
_LINE = re.compile(r"([A-Za-z]{3}) (\S{1,255}) (\d{9,11}) \d{4}/\d\d/\d\d \d\d:\d\d:\d\d (\d{1,9}) (.+)")
_PROCESS = re.compile(r"(\d{1,10}) (\(.{0,64}?\)|\S{1,64}) ([A-Z]) (.+)")
_RAW_MAGIC = (b"\xef\xbe\xed\xfe", b"\xfe\xed\xbe\xef")
_LABELS = frozenset(
    "CPU cpu CPL GPU MEM SWP PAG PSI LVM MDD DSK NFM NFC NFS NET IFB LLC NUM NUC PRG PRC PRE PRM PRD PRN".split()
)
_KINDS = {"cpu": EntityKind.CPU, "NET": EntityKind.NIC, "PRC": EntityKind.PROCESS, "PRD": EntityKind.PROCESS}
_KINDS |= dict.fromkeys(("DSK", "LVM", "MDD"), EntityKind.BLOCK_DEVICE)
_LEVELS = ("load 1", "load 5", "load 15", "free", "cache", "buffers", "dirty", "swap used")
_SINCE_BOOT = frozenset(known.metric for name, known in META.fields.items() if name not in _LEVELS)
_SINCE_BOOT_DERIVED = _SINCE_BOOT | {"guest_cpu_busy_pct"}
_KEPT_MAX = 50  # Judgement: no more processes matter, and one that comes and goes has a series for each of its starts

Values = dict[str, float]


def sniff(source: Source) -> int:
    """Sure by the magic number of a raw file, or by lines that begin with a label, a host and a time."""
    if source.head.startswith(_RAW_MAGIC):
        return 95
    lines = [line for line in source.head_text.splitlines()[:40] if line.strip()]
    known = sum(1 for line in lines if (match := _LINE.fullmatch(line)) is not None and match[1] in _LABELS)
    others = sum(1 for line in lines if line in {"SEP", "RESET"})
    return 95 if known and (known + others) * 4 >= len(lines) * 3 else 0


def read(source: Source, request: Request) -> Capture:
    """The machine's series, with those of its CPUs, disks, interfaces and busiest processes.

    Raises:
        InputError: it is a raw file, or no line is sound.
    """
    if source.head.startswith(_RAW_MAGIC):
        raise InputError(
            source.name,
            found="a raw file of atop, which only the same version of atop reads",
            expected="its parseable text",
            advice="Convert it where it was recorded: atop -r FILE -P ALL > atop.txt",
        )
    builder = CaptureBuilder(source.name, "atop", META.tool)
    reading = _Reading(builder)
    text = source.text()
    reading.read(text.splitlines(), ends_whole=text.endswith(("\n", "\r")))
    if not reading.tables:
        raise InputError(
            source.name,
            found="no line with a label, a host, a time and numbers",
            expected="the text of atop -P",
            advice=f"Record it again: {META.record}",
        )
    reading.emit(Entity(EntityKind.GUEST, reading.host), request)
    return builder.build(host=reading.host, clock_known=True)


@dataclass(slots=True)
class _Reading:
    """State of reading line by line: a table for each label."""

    builder: CaptureBuilder
    host: str = ""
    tables: dict[str, SampleTable] = field(default_factory=dict)
    boot_labels: set[str] = field(default_factory=set)
    _since_boot: bool = False

    def read(self, lines: list[str], *, ends_whole: bool) -> None:
        """Take in all lines."""
        for index, line in enumerate(lines):
            if line == "RESET":
                self._since_boot = True
            elif line == "SEP":
                self._since_boot = False
            elif line.strip():
                if index == len(lines) - 1 and not ends_whole:
                    self.builder.warn("cut", "the last line has no end and was left out")
                else:
                    self._line(line)

    def _line(self, line: str) -> None:
        match = _LINE.fullmatch(line)
        if match is None or match[1] not in _LABELS or not EPOCH_S_MIN <= int(match[3]) < EPOCH_S_MAX:
            self.builder.warn("foreign", "lines that are none of atop's were left out")
            return
        label, host, epoch, interval, rest = match.groups()
        reader = _READERS.get(label)
        if reader is None:
            return
        try:
            row = reader(rest, float(interval) or NAN)
        except (ValueError, IndexError):
            self.builder.warn("damaged", "lines whose fields are no numbers were left out")
            return
        if row is None:
            return
        item, values = row
        self.host = self.host or host
        if host != self.host:
            self.builder.warn("other-host", f"lines of another machine than {self.host} were left out")
            return
        self._add(label, int(epoch) * 1_000_000_000, item, values)

    def _add(self, label: str, moment: int, item: str, values: Values) -> None:
        key = "upper" if label == "NET" and "sent segments" in values else label
        table = self.tables.get(key)
        if table is None:
            table = self.tables[key] = SampleTable(label, tuple(values))
        is_first = not table.moments or (len(table.moments) == 1 and table.moments[0] == moment)
        if self._since_boot and is_first:
            self.boot_labels.add(key)
        elif self._since_boot:  # the recorder began anew: what was before it is no interval of this recording
            values = {name: value if name in _LEVELS else NAN for name, value in values.items()}
        table.add(moment, item, [values.get(name, NAN) for name in table.columns])

    def emit(self, guest: Entity, request: Request) -> None:
        """Hand the tables to the capture."""
        for key, table in self.tables.items():
            kept = self._busiest(table) if key in {"PRC", "PRD"} else None

            def entity_of(group: str, item: str, kept: set[str] | None = kept) -> Entity | None:
                if kept is not None and item not in kept:
                    return None
                return Entity(_KINDS[group], item, guest) if item and group in _KINDS else guest

            derive = add_cpu_busy if key in {"CPU", "cpu"} else _derive_nothing
            scheme = TableScheme("atop", META.fields, entity_of, derive=derive, guest=guest)
            since_boot = _SINCE_BOOT_DERIVED if key in self.boot_labels else False
            times = np.array(table.moments, dtype=np.int64)
            emit(table, times, scheme, self.builder, _canonical_only(request), since_boot=since_boot)

    def _busiest(self, table: SampleTable) -> set[str]:
        """The processes of a table that did most, from its second sample on if the first is since boot."""
        row_item, row_moment, values = table.arrays()
        in_interval = row_moment > 0 if table.group in self.boot_labels else row_moment >= 0
        amounts = np.nan_to_num(values[in_interval]).sum(axis=1)
        totals: Counter[int] = Counter()
        for item, amount in zip(row_item[in_interval].tolist(), amounts.tolist(), strict=True):
            totals[item] += amount
        kept = {table.items[item] for item, amount in totals.most_common(_KEPT_MAX) if amount > 0}
        if len(totals) > len(kept):
            self.builder.warn("processes", "processes that did next to nothing were left out", len(totals) - len(kept))
        return kept


def _canonical_only(request: Request) -> Request:
    """The request without raw counters: every field that is read has a metric."""
    if request.metrics is not None:
        return request
    return replace(request, metrics=frozenset(known.metric for known in META.fields.values()) | {"guest_cpu_busy_pct"})


def _derive_nothing(columns: object) -> None:
    del columns


def _numbers(text: str, at_least: int) -> list[float]:
    """The numbers of a line.

    Raises:
        ValueError: a word is none, or there are too few.
    """
    numbers = [float(word) for word in text.split()]
    if len(numbers) < at_least or not all(abs(number) < 1e19 for number in numbers):
        raise ValueError(text)
    return numbers


def _cpu(text: str, interval_s: float) -> tuple[str, Values]:
    """Shares of all CPUs, or of one: the second number is how many, or which."""
    del interval_s
    numbers = _numbers(text, 10)
    ticks = numbers[2:10]
    total = sum(ticks)
    shares = [100.0 * tick / total if total > 0 else NAN for tick in ticks]
    return "", dict(zip(_CPU_FIELDS, shares, strict=True))


def _one_cpu(text: str, interval_s: float) -> tuple[str, Values]:
    return str(int(text.split()[1])), _cpu(text, interval_s)[1]


def _load(text: str, interval_s: float) -> tuple[str, Values]:
    numbers = _numbers(text, 6)
    rates = {"context switches": numbers[4] / interval_s, "interrupts": numbers[5] / interval_s}
    return "", dict(zip(("load 1", "load 5", "load 15"), numbers[1:4], strict=True)) | rates


def _memory(text: str, interval_s: float) -> tuple[str, Values]:
    del interval_s
    page, _, free, cache, buffers, *others = _numbers(text, 5)
    dirty = others[1] * page if len(others) > 1 else NAN
    return "", {"free": free * page, "cache": cache * page, "buffers": buffers * page, "dirty": dirty}


def _swap(text: str, interval_s: float) -> tuple[str, Values]:
    del interval_s
    page, total, free = _numbers(text, 3)[:3]
    return "", {"swap used": (total - free) * page}


def _paging(text: str, interval_s: float) -> tuple[str, Values]:
    numbers = _numbers(text, 6)
    page = numbers[0]
    return "", {"swap in": numbers[4] * page / interval_s, "swap out": numbers[5] * page / interval_s}


def _pressure(text: str, interval_s: float) -> tuple[str, Values] | None:
    present, _, rest = text.partition(" ")
    if present != "y":
        return None
    waited_us = _numbers(rest, 20)[3::4]
    names = ("CPU some", "memory some", "memory full", "I/O some", "I/O full")
    return "", {name: us / 1e4 / interval_s for name, us in zip(names, waited_us, strict=False)}


def _disk(text: str, interval_s: float) -> tuple[str, Values]:
    name, _, rest = text.partition(" ")
    busy_ms, reads, read_sectors, writes, written_sectors, *others = _numbers(rest, 5)
    values = {
        "busy": busy_ms / 10.0 / interval_s,
        "reads": reads / interval_s,
        "writes": writes / interval_s,
        "read sectors": read_sectors / interval_s,
        "written sectors": written_sectors / interval_s,
        "queue": NAN,
        "wait per request": NAN,
    }
    if len(others) >= 4:
        discards, _, _, queue_while_busy = others[:4]
        requests = reads + writes + max(discards, 0.0)
        values["queue"] = queue_while_busy * busy_ms / 1000.0 / interval_s
        values["wait per request"] = queue_while_busy * busy_ms / requests if requests > 0 else NAN
    return name, values


def _network(text: str, interval_s: float) -> tuple[str, Values] | None:
    name, _, rest = text.partition(" ")
    numbers = _numbers(rest, 4)
    if name == "upper":
        if len(numbers) < 16:
            return None
        names = {"sent segments": numbers[1], "retransmitted segments": numbers[13]}
        return "", {key: count / interval_s for key, count in names.items()}
    names = dict(zip(("received packets", "received bytes", "sent packets", "sent bytes"), numbers, strict=False))
    return name, {key: count / interval_s for key, count in names.items()}


def _process(text: str) -> tuple[str, list[str]]:
    """Name and number of a process, and the words after its state.

    Raises:
        ValueError: it is none.
    """
    match = _PROCESS.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return f"{match[2].strip('()')}[{match[1]}]", match[4].split()


def _process_cpu(text: str, interval_s: float) -> tuple[str, Values] | None:
    name, words = _process(text)
    if len(words) > 10 and words[10] == "n":  # a thread
        return None
    hertz, user, system = (float(word) for word in words[:3])
    return name, {
        "process user": 100.0 * user / hertz / interval_s if hertz > 0 else NAN,
        "process system": 100.0 * system / hertz / interval_s if hertz > 0 else NAN,
    }


def _process_disk(text: str, interval_s: float) -> tuple[str, Values] | None:
    name, words = _process(text)
    if len(words) > 9 and words[9] == "n":  # a thread
        return None
    if words[1] != "y":  # the kernel does not count it
        return None
    _, read, _, written = (float(word) for word in words[2:6])
    return name, {"process read sectors": read / interval_s, "process written sectors": written / interval_s}


_Reader = Callable[[str, float], tuple[str, Values] | None]
_READERS: dict[str, _Reader] = {
    "CPU": _cpu,
    "cpu": _one_cpu,
    "CPL": _load,
    "MEM": _memory,
    "SWP": _swap,
    "PAG": _paging,
    "PSI": _pressure,
    "DSK": _disk,
    "LVM": _disk,
    "MDD": _disk,
    "NET": _network,
    "PRC": _process_cpu,
    "PRD": _process_disk,
}
