"""What Hyper-V's performance counters mean: processors, memory and disks of the VMs of a Windows host."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from leadline.core.contracts.importer import Field
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from leadline.formats.windows.pdh import Placer

TOTAL_RUN, GUEST_RUN = "% Total Run Time", "% Guest Run Time"
_VIRTUAL_CPU = "Hyper-V Hypervisor Virtual Processor"
_LOGICAL_CPU = "Hyper-V Hypervisor Logical Processor"
_MEMORY = "Hyper-V Dynamic Memory VM"
_DISK = "Hyper-V Virtual Storage Device"
# The latency of a virtual disk is recorded in seconds; there are no latencies of reads and writes alone whose unit
# Microsoft states, so counters of that name stay raw.
BY_OBJECT = {
    _VIRTUAL_CPU: {
        TOTAL_RUN: Field("cpu_run_pct", "pct"),
        GUEST_RUN: Field("cpu_run_pct", "pct"),
        "CPU Wait Time Per Dispatch": Field("cpu_dispatch_wait_us", "ns"),
    },
    _LOGICAL_CPU: {TOTAL_RUN: Field("host_cpu_util_pct", "pct")},
    _MEMORY: {"Average Pressure": Field("memory_pressure_pct", "pct")},
    _DISK: {
        "Latency": Field("virtual_disk_latency_ms", "s"),
        "Queue Length": Field("virtual_disk_outstanding_count", "count"),
        "Error Count": Field("virtual_disk_errors_count", "count"),
        "Read Operations/Sec": Field("disk_reads_per_s", "per_s"),
        "Write Operations/Sec": Field("disk_writes_per_s", "per_s"),
        "Read Bytes/sec": Field("disk_read_mib_per_s", "bytes_per_s"),
        "Write Bytes/sec": Field("disk_write_mib_per_s", "bytes_per_s"),
    },
}
_VIRTUAL_CPU_NAME = re.compile(r"^(.+):\s*Hv VP (\d+)$", re.IGNORECASE)
_LOGICAL_CPU_NAME = re.compile(r"^Hv LP (\d+)$", re.IGNORECASE)


def _host(name: str) -> Entity:
    return Entity(EntityKind.HOST, name)


def _virtual_cpu(name: str | None, host: str) -> Entity | None:
    match = _VIRTUAL_CPU_NAME.match(name or "")
    return None if match is None else Entity(EntityKind.VCPU, match[2], Entity(EntityKind.VM, match[1], _host(host)))


def _logical_cpu(name: str | None, host: str) -> Entity | None:
    if name == "_Total":
        return _host(host)
    match = _LOGICAL_CPU_NAME.match(name or "")
    return None if match is None else Entity(EntityKind.PCPU, match[1], _host(host))


def _memory(name: str | None, host: str) -> Entity | None:
    return None if name is None or name == "_Total" else Entity(EntityKind.VM, name, _host(host))


def _disk(name: str | None, host: str) -> Entity | None:
    return None if name is None or name == "_Total" else Entity(EntityKind.VIRTUAL_DISK, name, _host(host))


PLACERS: dict[str, Placer] = {
    _VIRTUAL_CPU: _virtual_cpu,
    _LOGICAL_CPU: _logical_cpu,
    _MEMORY: _memory,
    _DISK: _disk,
}
