"""Counters of Azure Monitor: virtual machines, managed disks, flexible servers of PostgreSQL and MySQL, Azure SQL.

Source: Microsoft Learn, "Supported metrics" of Microsoft.Compute/virtualMachines, Microsoft.Compute/disks,
Microsoft.DBforPostgreSQL/flexibleServers, Microsoft.DBforMySQL/flexibleServers, Microsoft.Sql/servers/databases;
"Disk performance metrics".
"""

from __future__ import annotations

from leadline.formats.clouds.counters import CloudCounter, CloudPlace, Way, levels

OS_DISK, DATA_DISKS, SERVER_DISK, LOG = "os-disk", "data-disks", "server-storage", "log"
_DISK, _MACHINE, _DATABASE = CloudPlace.DISK, CloudPlace.MACHINE, CloudPlace.DATABASE
_USED = {"IOPS": "limit_iops_used_pct", "Bandwidth": "limit_bandwidth_used_pct"}
_CREDITS = {"IO": "limit_iops_credits_pct", "BPS": "limit_bandwidth_credits_pct"}


def _of_disk(prefix: str, disk: str) -> dict[str, CloudCounter]:
    """The counters of the disks of a virtual machine; of the data disks together where the LUN is not named."""
    counters = levels(
        _DISK,
        {
            f"{prefix} Read Operations/Sec": ("disk_reads_per_s", "per_s"),
            f"{prefix} Write Operations/Sec": ("disk_writes_per_s", "per_s"),
            f"{prefix} Read Bytes/sec": ("disk_read_mib_per_s", "bytes_per_s"),
            f"{prefix} Write Bytes/sec": ("disk_write_mib_per_s", "bytes_per_s"),
            f"{prefix} Queue Depth": ("guest_disk_queue_count", "count"),
            f"{prefix} Latency": ("guest_disk_await_ms", "ms"),
        },
        disk,
    )
    counters |= {
        f"{prefix} {kind} Consumed Percentage": CloudCounter(metric, "pct", _DISK, disk=disk, peak=True)
        for kind, metric in _USED.items()
    }
    return counters | {
        f"{prefix} Used Burst {kind} Credits Percentage": CloudCounter(metric, "pct", _DISK, Way.REST, disk, peak=True)
        for kind, metric in _CREDITS.items()
    }


def _of_machine() -> dict[str, CloudCounter]:
    """The limits of a machine's size, for disks with the host's cache and without it."""
    counters = {
        f"VM {cache} {kind} Consumed Percentage": CloudCounter(metric, "pct", _MACHINE, peak=True)
        for cache in ("Cached", "Uncached")
        for kind, metric in _USED.items()
    }
    return counters | {
        f"VM Uncached Used Burst {kind} Credits Percentage": CloudCounter(metric, "pct", _MACHINE, Way.REST, peak=True)
        for kind, metric in _CREDITS.items()
    }


_LISTED: dict[str, CloudCounter] = {
    **_of_disk("Data Disk", DATA_DISKS),
    **_of_disk("OS Disk", OS_DISK),
    **_of_machine(),
    **levels(
        _DISK,
        {
            "Composite Disk Read Operations/sec": ("disk_reads_per_s", "per_s"),
            "Composite Disk Write Operations/sec": ("disk_writes_per_s", "per_s"),
            "Composite Disk Read Bytes/sec": ("disk_read_mib_per_s", "bytes_per_s"),
            "Composite Disk Write Bytes/sec": ("disk_write_mib_per_s", "bytes_per_s"),
        },
    ),
    **levels(
        _DISK,
        {
            "iops": ("disk_iops", "per_s"),
            "read_iops": ("disk_reads_per_s", "per_s"),
            "write_iops": ("disk_writes_per_s", "per_s"),
            "read_throughput": ("disk_read_mib_per_s", "bytes_per_s"),
            "write_throughput": ("disk_write_mib_per_s", "bytes_per_s"),
            "disk_queue_depth": ("guest_disk_queue_count", "count"),
        },
        SERVER_DISK,
    ),
    "storage_io_count": CloudCounter("disk_iops", "per_s", _DISK, Way.AMOUNT, SERVER_DISK),
    "disk_iops_consumed_percentage": CloudCounter("limit_iops_used_pct", "pct", disk=SERVER_DISK, peak=True),
    "io_consumption_percent": CloudCounter("limit_iops_used_pct", "pct", disk=SERVER_DISK, peak=True),
    "disk_bandwidth_consumed_percentage": CloudCounter("limit_bandwidth_used_pct", "pct", disk=SERVER_DISK, peak=True),
    "physical_data_read_percent": CloudCounter("limit_iops_used_pct", "pct", disk=SERVER_DISK, peak=True),
    "log_write_percent": CloudCounter("limit_bandwidth_used_pct", "pct", disk=LOG, peak=True),
    **levels(
        _MACHINE,
        {
            "Percentage CPU": ("guest_cpu_busy_pct", "pct"),
            "cpu_percent": ("guest_cpu_busy_pct", "pct"),
            "Available Memory Bytes": ("guest_memory_available_mib", "bytes"),
            "memory_percent": ("guest_memory_used_pct", "pct"),
        },
    ),
    "CPU Credits Remaining": CloudCounter("guest_cpu_credits_count", "count", _MACHINE, peak=True),
    "cpu_credits_remaining": CloudCounter("guest_cpu_credits_count", "count", _MACHINE, peak=True),
    "cpu_credit_remaining": CloudCounter("guest_cpu_credits_count", "count", _MACHINE, peak=True),
    **levels(
        _DATABASE,
        {
            "active_connections": ("db_sessions_count", "count"),
            "sessions_count": ("db_sessions_count", "count"),
            "tps": ("db_tps", "per_s"),
        },
    ),
    "Queries": CloudCounter("db_qps", "per_s", _DATABASE, Way.AMOUNT),
}
COUNTERS = {name.casefold(): counter for name, counter in _LISTED.items()}
# Names of the portal that are not those of the API.
_SHOWN = {
    "cpu percentage": "cpu_percent",
    "cpu percent": "cpu_percent",
    "memory percent": "memory_percent",
    "disk iops consumed percentage": "disk_iops_consumed_percentage",
    "disk bandwidth consumed percentage": "disk_bandwidth_consumed_percentage",
    "disk queue depth": "disk_queue_depth",
    "read iops": "read_iops",
    "write iops": "write_iops",
    "read throughput": "read_throughput",
    "write throughput": "write_throughput",
    "storage io percent": "io_consumption_percent",
    "storage io count": "storage_io_count",
    "data io percentage": "physical_data_read_percent",
    "log io percentage": "log_write_percent",
    "cpu credits remaining": "cpu credits remaining",
    "available memory bytes (preview)": "available memory bytes",
}

# Names that other tools have, too: they make no table one of Azure.
_COMMON = frozenset(
    {
        *("iops", "tps", "queries", "cpu_percent", "memory_percent", "cpu percent", "memory percent", "cpu percentage"),
        *("read_iops", "write_iops", "read_throughput", "write_throughput", "read iops", "write iops"),
        *("read throughput", "write throughput", "disk_queue_depth", "disk queue depth", "active_connections"),
        *("sessions_count", "cpu credits remaining", "available memory bytes"),
    }
)
HEADINGS = frozenset({*COUNTERS, *_SHOWN})
SURE_HEADINGS = HEADINGS - _COMMON


def counter_name(name: str) -> str:
    """The API's name of a counter in lower case, of a name of the API or of the portal.

    >>> counter_name("Data Disk Latency (Preview)"), counter_name("Log IO percentage")
    ('data disk latency', 'log_write_percent')
    """
    plain = " ".join(name.casefold().split())
    plain = _SHOWN.get(plain, plain)
    return plain.removesuffix("(preview)").rstrip()
