"""Counters of Linux' ``/proc`` copied word for word, sample after sample: disks, CPUs, paging, network interfaces.

Rates are differences of two copies by the time between them, with sysstat's formulas and names. Over an interval in
which a counter fell (a device came back, a counter wrapped) nothing is measured.

Source: Linux kernel documentation, admin-guide/iostats, filesystems/proc (1.8, 1.5 pagesize of vmstat counters);
sysstat, iostat.c (write_ext_stat), rd_stats.h.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from leadline.core.contracts.importer import Field
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.tables import SampleTable

Counters = dict[str, dict[str, float]]  # item -> counter -> value
NAN = float("nan")
KIB_PER_SECTOR = 0.5
_DISK = (
    *("reads", "read_merged", "read_sectors", "read_ms", "writes", "write_merged", "write_sectors", "write_ms"),
    *("inflight", "io_ms", "weighted_ms", "discards", "discard_merged", "discard_sectors", "discard_ms"),
    *("flushes", "flush_ms"),
)
_CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
_NET = (
    *("rx_bytes", "rx_packets", "rx_errs", "rx_drop", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast"),
    *("tx_bytes", "tx_packets", "tx_errs", "tx_drop", "tx_fifo", "tx_colls", "tx_carrier", "tx_compressed"),
)
_PAGING = ("pgpgin", "pgpgout", "pswpin", "pswpout", "pgmajfault")
PAGE_KIB = 4.0  # of x86; the copies do not say, other architectures may differ
# Not whole disks or not real ones: partitions are counted with their disk.
_PART_OF = re.compile(r"(?:(?:sd|vd|xvd|hd)[a-z]+\d+|(?:nvme\d+n\d+|mmcblk\d+|nbd\d+|loop\d+)p\d+|ram\d+|sr\d+|fd\d+)")

DISK_FIELDS = {
    "disk:r/s": Field("disk_reads_per_s", "per_s"),
    "disk:w/s": Field("disk_writes_per_s", "per_s"),
    "disk:d/s": Field("guest_disk_discards_per_s", "per_s"),
    "disk:f/s": Field("guest_disk_flushes_per_s", "per_s"),
    "disk:rkB/s": Field("disk_read_mib_per_s", "kib_per_s"),
    "disk:wkB/s": Field("disk_write_mib_per_s", "kib_per_s"),
    "disk:r_await": Field("guest_disk_await_ms_read", "ms"),
    "disk:w_await": Field("guest_disk_await_ms_write", "ms"),
    "disk:f_await": Field("guest_disk_flush_latency_ms", "ms"),
    "disk:aqu-sz": Field("guest_disk_queue_count", "count"),
    "disk:rareq-sz": Field("guest_disk_io_size_kib_read", "kib"),
    "disk:wareq-sz": Field("guest_disk_io_size_kib_write", "kib"),
    "disk:%util": Field("guest_disk_util_pct", "pct"),
}
CPU_FIELDS = {
    f"cpu:%{column}": Field(f"guest_cpu_{metric}_pct", "pct")
    for column, metric in (
        *(("usr", "user"), ("nice", "nice"), ("sys", "system"), ("iowait", "iowait"), ("irq", "irq")),
        *(("soft", "softirq"), ("steal", "steal"), ("guest", "guest"), ("idle", "idle")),
    )
}
GUEST_FIELDS = {
    "stat:cswch/s": Field("guest_context_switches_per_s", "per_s"),
    "stat:intr/s": Field("guest_interrupts_per_s", "per_s"),
    "stat:blocked": Field("guest_blocked_count", "count"),
    "vmstat:pgpgin/s": Field("guest_block_in_kib_per_s", "kib_per_s"),
    "vmstat:pgpgout/s": Field("guest_block_out_kib_per_s", "kib_per_s"),
    "vmstat:swpin/s": Field("guest_swap_in_kib_per_s", "kib_per_s"),
    "vmstat:swpout/s": Field("guest_swap_out_kib_per_s", "kib_per_s"),
}
NET_FIELDS = {
    "net:rxpck/s": Field("net_rx_packets_per_s", "per_s"),
    "net:txpck/s": Field("net_tx_packets_per_s", "per_s"),
    "net:rxkB/s": Field("net_rx_mbit_per_s", "kib_per_s"),
    "net:txkB/s": Field("net_tx_mbit_per_s", "kib_per_s"),
    "net:rxerr/s": Field("net_rx_errors_per_s", "per_s"),
    "net:txerr/s": Field("net_tx_errors_per_s", "per_s"),
    "net:rxdrop/s": Field("net_rx_dropped_per_s", "per_s"),
    "net:txdrop/s": Field("net_tx_dropped_per_s", "per_s"),
}
FIELDS = {**DISK_FIELDS, **CPU_FIELDS, **GUEST_FIELDS, **NET_FIELDS}


def _disks(lines: Iterable[str]) -> Counters:
    counters: Counters = {}
    for line in lines:
        words = line.split()
        if len(words) < 14:
            raise ValueError(line)
        if not _PART_OF.fullmatch(words[2]):
            counters[words[2]] = dict(zip(_DISK, map(float, words[3:20]), strict=False))
    return counters


def _stat(lines: Iterable[str]) -> Counters:
    counters: Counters = {}
    whole: dict[str, float] = {}
    for line in lines:
        words = line.split()
        if words[0].startswith("cpu"):
            counters[f"cpu {words[0][3:]}".strip()] = dict(zip(_CPU, map(float, words[1:11]), strict=False))
        elif words[0] in ("ctxt", "intr", "procs_blocked"):
            whole[words[0]] = float(words[1])
    counters["stat"] = whole
    return counters


def _vmstat(lines: Iterable[str]) -> Counters:
    values = (line.split() for line in lines)
    return {"vmstat": {words[0]: float(words[1]) for words in values if words[0] in _PAGING}}


def _net(lines: Iterable[str]) -> Counters:
    counters: Counters = {}
    for line in lines:
        name, colon, rest = line.partition(":")
        if colon:
            counters[name.strip()] = dict(zip(_NET, map(float, rest.split()), strict=True))
        elif "|" not in line:
            raise ValueError(line)
    return counters


_PARSERS: dict[str, Callable[[Iterable[str]], Counters]] = {
    "/proc/diskstats": _disks,
    "/proc/stat": _stat,
    "/proc/vmstat": _vmstat,
    "/proc/net/dev": _net,
}
PATHS = tuple(_PARSERS)


@dataclass(slots=True)
class CounterTables:
    """Copies as they come, rates as they leave."""

    _last: dict[str, tuple[int, Counters]] = field(default_factory=dict)
    _tables: dict[str, SampleTable] = field(default_factory=dict)

    def add(self, time_ns: int, path: str, lines: list[str]) -> None:
        """Take in a copy of one of `PATHS`.

        Raises:
            ValueError: it is not of the form the kernel writes.
        """
        try:
            now = _PARSERS[path](lines)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path}: {str(error)[:60]}") from None
        before = self._last.get(path)
        self._last[path] = (time_ns, now)
        if before is None or time_ns <= before[0]:
            return
        seconds = (time_ns - before[0]) / 1e9
        for group, item, rates in _rates(path, before[1], now, seconds):
            table = self._tables.setdefault(group, SampleTable(group, tuple(rates)))
            table.add(time_ns, item, [rates.get(name, NAN) for name in table.columns])

    def tables(self) -> list[SampleTable]:
        """A table per kind of item."""
        return list(self._tables.values())


def entity_in(guest: Entity, group: str, item: str) -> Entity:
    """The entity of a table's item."""
    if group == "disk":
        return Entity(EntityKind.BLOCK_DEVICE, item, guest)
    if group == "net":
        return Entity(EntityKind.NIC, item, guest)
    return Entity(EntityKind.CPU, item, guest) if group == "cpu" and item else guest


def _rates(path: str, before: Counters, now: Counters, seconds: float) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Group, item and own names with values, for every item both copies have."""
    for item, values in now.items():
        old = before.get(item)
        if old is None:
            continue
        grown = {name: value - old.get(name, NAN) for name, value in values.items()}
        if any(step < 0 for name, step in grown.items() if name not in ("inflight", "procs_blocked")):
            continue
        if path == "/proc/diskstats":
            if any(values.values()):  # a device that never did anything says nothing
                yield "disk", item, _disk_rates(grown, seconds)
        elif path == "/proc/net/dev":
            if item != "lo":
                yield "net", item, _net_rates(grown, seconds)
        elif item.startswith("cpu"):
            yield "cpu", item[3:].strip(), _cpu_shares(grown)
        elif item == "stat":
            rates = {"stat:cswch/s": grown.get("ctxt", NAN) / seconds, "stat:intr/s": grown.get("intr", NAN) / seconds}
            yield "stat", "", {**rates, "stat:blocked": values.get("procs_blocked", NAN)}
        else:
            yield "vmstat", "", _paging_rates(grown, seconds)


def _disk_rates(grown: dict[str, float], seconds: float) -> dict[str, float]:
    def per(amount: str, count: str, scale: float = 1.0) -> float:
        return grown[amount] * scale / grown[count] if grown.get(count, NAN) > 0 else NAN

    return {
        "disk:r/s": grown["reads"] / seconds,
        "disk:w/s": grown["writes"] / seconds,
        "disk:d/s": grown.get("discards", NAN) / seconds,
        "disk:f/s": grown.get("flushes", NAN) / seconds,
        "disk:rkB/s": grown["read_sectors"] * KIB_PER_SECTOR / seconds,
        "disk:wkB/s": grown["write_sectors"] * KIB_PER_SECTOR / seconds,
        "disk:r_await": per("read_ms", "reads"),
        "disk:w_await": per("write_ms", "writes"),
        "disk:f_await": per("flush_ms", "flushes"),
        "disk:aqu-sz": grown["weighted_ms"] / 1000.0 / seconds,
        "disk:rareq-sz": per("read_sectors", "reads", KIB_PER_SECTOR),
        "disk:wareq-sz": per("write_sectors", "writes", KIB_PER_SECTOR),
        "disk:%util": grown["io_ms"] / 10.0 / seconds,
    }


def _cpu_shares(grown: dict[str, float]) -> dict[str, float]:
    # Time of virtual machines is counted twice, as guest and as user.
    user = grown["user"] - grown.get("guest", 0.0)
    nice = grown["nice"] - grown.get("guest_nice", 0.0)
    parts = {"usr": user, "nice": nice, "sys": grown["system"], "iowait": grown["iowait"], "irq": grown["irq"]}
    parts |= {"soft": grown["softirq"], "steal": grown.get("steal", 0.0), "idle": grown["idle"]}
    parts["guest"] = grown.get("guest", 0.0) + grown.get("guest_nice", 0.0)
    total = sum(parts.values())
    return {f"cpu:%{name}": 100.0 * value / total if total > 0 else NAN for name, value in parts.items()}


def _paging_rates(grown: dict[str, float], seconds: float) -> dict[str, float]:
    return {
        "vmstat:pgpgin/s": grown.get("pgpgin", NAN) / seconds,
        "vmstat:pgpgout/s": grown.get("pgpgout", NAN) / seconds,
        "vmstat:swpin/s": grown.get("pswpin", NAN) * PAGE_KIB / seconds,
        "vmstat:swpout/s": grown.get("pswpout", NAN) * PAGE_KIB / seconds,
    }


def _net_rates(grown: dict[str, float], seconds: float) -> dict[str, float]:
    rates = {}
    for way in ("rx", "tx"):
        rates[f"net:{way}pck/s"] = grown[f"{way}_packets"] / seconds
        rates[f"net:{way}kB/s"] = grown[f"{way}_bytes"] / 1024.0 / seconds
        rates[f"net:{way}err/s"] = grown[f"{way}_errs"] / seconds
        rates[f"net:{way}drop/s"] = grown[f"{way}_drop"] / seconds
    return rates
