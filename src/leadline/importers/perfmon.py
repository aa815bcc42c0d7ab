r"""Windows Performance Monitor logs: disks, processors, memory and SQL Server of a Windows guest.

Reads:
    CSV and TSV as perfmon, ``logman`` (``-f csv``) and ``relog`` write them, English or Russian, UTF-8, UTF-16 or
    cp1251, with decimal points or commas; also re-saved by Excel.

Sample:
    ``"(PDH-CSV 4.0) (Russia TZ 2 Standard Time)(-180)","\\DB01\Физический диск(0 C:)\Среднее время чтения с диска
    (с)"``, then ``"09/16/2021 07:51:58.569"," "``: rates have no value in the first row.

Lost:
    Counters without a canonical name, unless everything is asked for; then ``raw.perfmon.…`` in English where the name
    is known. ``_Total`` of disks, which averages latencies over disks of different load.

Units:
    ``Avg. Disk sec/…`` are seconds and become milliseconds. Disk utilisation is 100 % less ``% Idle Time``, which
    ``% Disk Time`` is not (it exceeds 100 %). Zone offsets in the header are minutes west of UTC.

Sources:
    Microsoft Learn, "Windows Performance Monitor disk counters explained" (meaning of sec/Transfer, Idle Time).
    Counter names as used with logman and Get-Counter on English and Russian Windows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from leadline.core.capture import Capture, CaptureBuilder, SeriesGroup
from leadline.core.entities import Entity
from leadline.core.importer import Field, ImporterMeta, Request
from leadline.core.source import Source
from leadline.core.vocabulary import EntityKind, Layer
from leadline.formats.pdh import Chooser, PdhColumns, is_esxtop

if TYPE_CHECKING:
    from leadline.formats.pdh import Placer

_IDLE = "% Idle Time"
_DISK = {
    "Avg. Disk sec/Read": Field("guest_disk_await_ms_read", "s"),
    "Avg. Disk sec/Write": Field("guest_disk_await_ms_write", "s"),
    "Avg. Disk sec/Transfer": Field("guest_disk_await_ms", "s"),
    "Disk Reads/sec": Field("disk_reads_per_s", "per_s"),
    "Disk Writes/sec": Field("disk_writes_per_s", "per_s"),
    "Disk Transfers/sec": Field("disk_iops", "per_s"),
    "Disk Read Bytes/sec": Field("disk_read_mib_per_s", "bytes_per_s"),
    "Disk Write Bytes/sec": Field("disk_write_mib_per_s", "bytes_per_s"),
    "Avg. Disk Queue Length": Field("guest_disk_queue_count", "count"),
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
    },
    "Memory": {
        "Available MBytes": Field("guest_memory_available_mib", "mib"),
        "Available Bytes": Field("guest_memory_available_mib", "bytes"),
        "Pages/sec": Field("guest_pages_per_s", "per_s"),
        "% Committed Bytes In Use": Field("guest_memory_committed_pct", "pct"),
    },
    "Network Interface": {
        "Bytes Received/sec": Field("net_rx_bytes_per_s", "bytes_per_s"),
        "Bytes Sent/sec": Field("net_tx_bytes_per_s", "bytes_per_s"),
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
}
_FIELDS = {(name, counter): field for name, counters in _BY_OBJECT.items() for counter, field in counters.items()}

META = ImporterMeta(
    tool="perfmon",
    layers=(Layer.GUEST, Layer.DATABASE),
    fields={f"{name}\\{counter}": field for (name, counter), field in _FIELDS.items()},
    record='typeperf -f CSV -si 5 -sc 120 -o perfmon.csv "\\PhysicalDisk(*)\\*" "\\Processor(*)\\*" "\\System\\*"',
)

# Russian Windows, whose versions differ in wording: every wording seen -> the English name.
_RUSSIAN = {
    "физический диск": "PhysicalDisk",
    "логический диск": "LogicalDisk",
    "процессор": "Processor",
    "сведения о процессоре": "Processor Information",
    "система": "System",
    "память": "Memory",
    "сетевой интерфейс": "Network Interface",
    "сетевой адаптер": "Network Interface",
    "среднее время чтения с диска (с)": "Avg. Disk sec/Read",
    "среднее время чтения с диска (сек)": "Avg. Disk sec/Read",
    "среднее время записи на диск (с)": "Avg. Disk sec/Write",
    "среднее время записи на диск (сек)": "Avg. Disk sec/Write",
    "среднее время обращения к диску (с)": "Avg. Disk sec/Transfer",
    "среднее время обращения к диску (сек)": "Avg. Disk sec/Transfer",
    "обращений чтения с диска/с": "Disk Reads/sec",
    "операций чтения с диска в секунду": "Disk Reads/sec",
    "обращений записи на диск/с": "Disk Writes/sec",
    "операций записи на диск в секунду": "Disk Writes/sec",
    "обращений к диску/с": "Disk Transfers/sec",
    "обращений к диску в секунду": "Disk Transfers/sec",
    "байт чтения с диска/с": "Disk Read Bytes/sec",
    "скорость чтения с диска (байт/с)": "Disk Read Bytes/sec",
    "байт записи на диск/с": "Disk Write Bytes/sec",
    "скорость записи на диск (байт/с)": "Disk Write Bytes/sec",
    "средняя длина очереди диска": "Avg. Disk Queue Length",
    "% времени бездействия": _IDLE,
    "процент времени бездействия": _IDLE,
    "% загруженности процессора": "% Processor Time",
    "% работы в пользовательском режиме": "% User Time",
    "% работы в привилегированном режиме": "% Privileged Time",
    "% времени прерываний": "% Interrupt Time",
    "длина очереди процессора": "Processor Queue Length",
    "контекстных переключений/с": "Context Switches/sec",
    "доступно мб": "Available MBytes",
    "доступно байт": "Available Bytes",
    "обмен страниц/с": "Pages/sec",
    "обмен страниц в сек": "Pages/sec",
    "% использования выделенной памяти": "% Committed Bytes In Use",
    "байт получено/с": "Bytes Received/sec",
    "получено байт/с": "Bytes Received/sec",
    "байт послано/с": "Bytes Sent/sec",
    "отправлено байт/с": "Bytes Sent/sec",
}
_SIGNATURE = re.compile(r"\(PDH-[CT]SV")
_NAMED_INSTANCE = re.compile(r"^MSSQL\$[^:]+:")
_SQL_OBJECTS = tuple(name for name in _BY_OBJECT if name.startswith("SQLServer:"))
_NUMA_CPU = re.compile(r"^\d+,(\d+)$")  # Processor Information names processors "node,number"


def sniff(source: Source) -> int:
    """Sure by the PDH signature without an object that only esxtop has."""
    head = source.head_text
    if not _SIGNATURE.search(head[:4096]) or is_esxtop(head):
        return 0
    return 92


def read(source: Source, request: Request) -> Capture:
    """The capture; see the module's docstring for what is kept."""
    table = PdhColumns(source)
    table.counters = [(_sql_object(_english(name)), _english(counter)) for name, counter in table.counters]
    builder = CaptureBuilder(source.name, "perfmon", META.tool)
    chosen = Chooser(table, request, "perfmon").choose(_FIELDS, _placers(), _raw)
    groups = table.read(chosen, builder, sentinels=False, request=request)
    for part, group in zip(chosen, groups, strict=True):
        if part.counter == _IDLE and part.metric == "guest_disk_util_pct":
            group.values[:] = 100.0 - group.values
    _count_cpus(table, groups, builder)
    known = table.file.utc_offset_min is not None
    return builder.build(host=table.hosts[0] if table.hosts else None, clock_known=known)


def _sql_object(name: str) -> str:
    """Counters of a named instance, ``MSSQL$NAME:Locks``, under the default instance's name."""
    return _NAMED_INSTANCE.sub("SQLServer:", name)


def _english(name: str) -> str:
    return _RUSSIAN.get(name.casefold().strip(), name)


def _guest(host: str) -> Entity:
    return Entity(EntityKind.GUEST, host)


def _itself(name: str | None, host: str) -> Entity | None:
    return _guest(host) if name is None else None


def _disk(name: str | None, host: str) -> Entity | None:
    return None if name is None or name == "_Total" else Entity(EntityKind.BLOCK_DEVICE, name, _guest(host))


def _cpu(name: str | None, host: str) -> Entity | None:
    if name == "_Total":
        return _guest(host)
    match = _NUMA_CPU.match(name or "")
    number = match[1] if match else name or ""
    return Entity(EntityKind.CPU, number, _guest(host)) if number.isdigit() else None


def _nic(name: str | None, host: str) -> Entity | None:
    return None if name is None else Entity(EntityKind.NIC, name, _guest(host))


def _database(name: str | None, host: str) -> Entity:
    return Entity(EntityKind.DATABASE, "sqlserver" if name in {None, "_Total"} else str(name), _guest(host))


def _placers() -> dict[str, Placer]:
    return {
        "PhysicalDisk": _disk,
        "LogicalDisk": _disk,
        "Processor": _cpu,
        "Processor Information": _cpu,
        "System": _itself,
        "Memory": _itself,
        "Network Interface": _nic,
        **dict.fromkeys(_SQL_OBJECTS, _database),
    }


def _raw(object_name: str) -> Placer:
    def place(name: str | None, host: str) -> Entity:
        owner = _guest(host)
        return owner if name is None else Entity(EntityKind.PROCESS, f"{object_name}({name})", owner)

    return place


def _count_cpus(table: PdhColumns, groups: list[SeriesGroup], builder: CaptureBuilder) -> None:
    """The number of processors is the number of their series; only told when the log has them one by one."""
    for group in groups:
        if group.metric == "guest_cpu_busy_pct":
            count = sum(1 for entity in group.entities if entity.kind is EntityKind.CPU)
            if count:
                owner = group.entities[0].ancestor(EntityKind.GUEST)
                if owner is not None:
                    builder.inventory.add(owner, table.source.name, cpu_count=count)
