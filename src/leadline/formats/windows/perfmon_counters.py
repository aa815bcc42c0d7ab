"""What Windows' performance counters mean: shared by logs of perfmon and reports that hold one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import Field, Request
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.windows import hyper_v
from leadline.formats.windows.code_pages import open_log
from leadline.formats.windows.console import copied
from leadline.formats.windows.pdh import Changes, Chooser, Chosen
from leadline.formats.windows.strange_names import warn_of_strange_names

if TYPE_CHECKING:
    from leadline.core.io.source import Source
    from leadline.core.model.capture import CaptureBuilder, SeriesGroup
    from leadline.formats.windows.pdh import PdhColumns, Placer

_IDLE = "% Idle Time"
_QUEUE, _QUEUE_NOW = "Avg. Disk Queue Length", "Current Disk Queue Length"
_DISK = {
    "Avg. Disk sec/Read": Field("guest_disk_await_ms_read", "s"),
    "Avg. Disk sec/Write": Field("guest_disk_await_ms_write", "s"),
    "Avg. Disk sec/Transfer": Field("guest_disk_await_ms", "s"),
    "Disk Reads/sec": Field("disk_reads_per_s", "per_s"),
    "Disk Writes/sec": Field("disk_writes_per_s", "per_s"),
    "Disk Transfers/sec": Field("disk_iops", "per_s"),
    "Disk Read Bytes/sec": Field("disk_read_mib_per_s", "bytes_per_s"),
    "Disk Write Bytes/sec": Field("disk_write_mib_per_s", "bytes_per_s"),
    _QUEUE: Field("guest_disk_queue_count", "count"),
    _QUEUE_NOW: Field("guest_disk_queue_count", "count"),
    _IDLE: Field("guest_disk_util_pct", "pct"),
}
_CPU = {
    "% Processor Time": Field("guest_cpu_busy_pct", "pct"),
    "% User Time": Field("guest_cpu_user_pct", "pct"),
    "% Privileged Time": Field("guest_cpu_system_pct", "pct"),
    "% Interrupt Time": Field("guest_cpu_irq_pct", "pct"),
}
_BY_OBJECT = {
    "PhysicalDisk": _DISK,
    "LogicalDisk": _DISK,
    "Processor": _CPU,
    "Processor Information": _CPU,
    "System": {
        "Processor Queue Length": Field("guest_processor_queue_count", "count"),
        "Context Switches/sec": Field("guest_context_switches_per_s", "per_s"),
        "System Calls/sec": Field("guest_system_calls_per_s", "per_s"),
    },
    "Memory": {
        "Available MBytes": Field("guest_memory_available_mib", "mib"),
        "Available Bytes": Field("guest_memory_available_mib", "bytes"),
        "Pages/sec": Field("guest_pages_per_s", "per_s"),
        "% Committed Bytes In Use": Field("guest_memory_committed_pct", "pct"),
    },
    "Network Interface": {
        "Bytes Received/sec": Field("net_rx_mbit_per_s", "bytes_per_s"),
        "Bytes Sent/sec": Field("net_tx_mbit_per_s", "bytes_per_s"),
        "Packets Received/sec": Field("net_rx_packets_per_s", "per_s"),
        "Packets Sent/sec": Field("net_tx_packets_per_s", "per_s"),
    },
    "SQLServer:Buffer Manager": {
        "Page life expectancy": Field("db_page_life_expectancy_s", "s"),
        "Buffer cache hit ratio": Field("db_buffer_hit_pct", "pct"),
        "Lazy writes/sec": Field("db_lazy_writes_per_s", "per_s"),
        "Checkpoint pages/sec": Field("db_checkpoint_pages_per_s", "per_s"),
        "Page reads/sec": Field("db_page_reads_per_s", "per_s"),
        "Page writes/sec": Field("db_page_writes_per_s", "per_s"),
    },
    "SQLServer:Databases": {
        "Transactions/sec": Field("db_tps", "per_s"),
        "Log Flush Wait Time": Field("db_log_flush_wait_ms", "ms"),
        "Log Flushes/sec": Field("db_log_flushes_per_s", "per_s"),
        "Log Bytes Flushed/sec": Field("db_log_bytes_per_s", "bytes_per_s"),
    },
    "SQLServer:SQL Statistics": {"Batch Requests/sec": Field("db_qps", "per_s")},
    "SQLServer:Memory Manager": {"Memory Grants Pending": Field("db_memory_grants_pending_count", "count")},
    "SQLServer:Locks": {"Average Wait Time (ms)": Field("db_lock_wait_ms", "ms")},
    **hyper_v.BY_OBJECT,
}
FIELDS = {(name, counter): field for name, counters in _BY_OBJECT.items() for counter, field in counters.items()}
KNOWN = frozenset(FIELDS)
# The queue at the moment of a sample for its average, the guest's share of a vCPU's time for all of it.
_STANDS_FOR = {_QUEUE_NOW: _QUEUE, hyper_v.GUEST_RUN: hyper_v.TOTAL_RUN}

_SQL_OBJECTS = tuple(name for name in _BY_OBJECT if name.startswith("SQLServer:"))
_NUMA_CPU = re.compile(r"^\d+,(\d+)$")  # Processor Information names processors "node,number"


def read_log(source: Source, request: Request, builder: CaptureBuilder, guest: Entity | None = None) -> PdhColumns:
    """Add the series of a log of perfmon and what they tell of the machine.

    Args:
        source: the log.
        request: which metrics are wanted.
        builder: takes the series.
        guest: whose log it is, where that is known by another name than the log's own.

    Raises:
        InputError: it is damaged.
    """
    mended = copied(source)
    if mended is not None:
        builder.warn("console-text", mended[1])
    table, translation = open_log(source, KNOWN, None if mended is None else mended[0])
    warn_of_strange_names(table, translation, KNOWN, builder)
    table.counters = translation.counters
    places = _Places(guest)
    chosen = Chooser(table, request, "perfmon").choose(_fields_of(table), places.of_objects(), places.raw)
    groups = table.read(chosen, builder, sentinels=False, request=request, changes=_busy_from_idle)
    _count_cpus(groups, builder)
    return table


def _fields_of(table: PdhColumns) -> dict[tuple[str, str], Field]:
    """The fields of a log, without the counters that only stand in for another, where the other was recorded."""
    recorded = set(table.counters)
    return {
        (name, of): field for (name, of), field in FIELDS.items() if (name, _STANDS_FOR.get(of, "")) not in recorded
    }


def _busy_from_idle(part: Chosen) -> Changes:
    is_idle = part.counter == _IDLE and part.metric == "guest_disk_util_pct"
    return ((np.multiply, -1.0), (np.add, 100.0)) if is_idle else ()


@dataclass(frozen=True, slots=True)
class _Places:
    """Where instances of a log belong; ``guest`` is whose log it is where that is known by another name."""

    guest: Entity | None

    def owner(self, host: str) -> Entity:
        return self.guest or Entity(EntityKind.GUEST, host)

    def itself(self, name: str | None, host: str) -> Entity | None:
        return self.owner(host) if name is None else None

    def disk(self, name: str | None, host: str) -> Entity | None:
        return None if name is None or name == "_Total" else Entity(EntityKind.BLOCK_DEVICE, name, self.owner(host))

    def cpu(self, name: str | None, host: str) -> Entity | None:
        if name == "_Total":
            return self.owner(host)
        match = _NUMA_CPU.match(name or "")
        number = match[1] if match else name or ""
        return Entity(EntityKind.CPU, number, self.owner(host)) if number.isdigit() else None

    def nic(self, name: str | None, host: str) -> Entity | None:
        return None if name is None else Entity(EntityKind.NIC, name, self.owner(host))

    def database(self, name: str | None, host: str) -> Entity:
        instance = "sqlserver" if name in {None, "_Total"} else str(name)
        return Entity(EntityKind.DATABASE, instance, self.owner(host))

    def of_objects(self) -> dict[str, Placer]:
        """By the name of the object."""
        return {
            "PhysicalDisk": self.disk,
            "LogicalDisk": self.disk,
            "Processor": self.cpu,
            "Processor Information": self.cpu,
            "System": self.itself,
            "Memory": self.itself,
            "Network Interface": self.nic,
            **dict.fromkeys(_SQL_OBJECTS, self.database),
            **hyper_v.PLACERS,
        }

    def raw(self, object_name: str) -> Placer:
        """Of an object without canonical names."""

        def place(name: str | None, host: str) -> Entity:
            owner = self.owner(host)
            return owner if name is None else Entity(EntityKind.PROCESS, f"{object_name}({name})", owner)

        return place


def _count_cpus(groups: list[SeriesGroup], builder: CaptureBuilder) -> None:
    """The number of processors is the number of their series; only told when the log has them one by one."""
    for group in groups:
        if group.metric == "guest_cpu_busy_pct":
            count = sum(1 for entity in group.entities if entity.kind is EntityKind.CPU)
            if count:
                owner = group.entities[0].ancestor(EntityKind.GUEST)
                if owner is not None:
                    builder.inventory.add(owner, builder.info.name, cpu_count=count)
