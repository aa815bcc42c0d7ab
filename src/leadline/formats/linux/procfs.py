"""Files of Linux' ``/proc`` that recordings copy word for word: pressure, load average, memory."""

from __future__ import annotations

import re
from collections.abc import Iterable

from leadline.core.contracts.importer import Field

PRESSURE_FIELDS = {
    f"{resource}.{share}.avg10": Field(f"guest_pressure_{resource}_{share}_pct", "pct")
    for resource in ("cpu", "io", "memory")
    for share in ("some", "full")
}
LOAD_FIELDS = {
    "loadavg.1m": Field("guest_load_1m", "count"),
    "loadavg.5m": Field("guest_load_5m", "count"),
    "loadavg.15m": Field("guest_load_15m", "count"),
    "loadavg.running": Field("guest_run_queue_count", "count"),
    "loadavg.tasks": Field("guest_task_count", "count"),
}
MEMORY_FIELDS = {
    "MemFree": Field("guest_memory_free_mib", "kib"),
    "MemAvailable": Field("guest_memory_available_mib", "kib"),
    "Buffers": Field("guest_memory_buffers_mib", "kib"),
    "Cached": Field("guest_memory_cached_mib", "kib"),
    "Active": Field("guest_memory_active_mib", "kib"),
    "Inactive": Field("guest_memory_inactive_mib", "kib"),
    "Dirty": Field("guest_memory_dirty_mib", "kib"),
    "SwapUsed": Field("guest_swap_used_mib", "kib"),
}

_PRESSURE = re.compile(r"(some|full) avg10=(\d+\.\d+) avg60=(\d+\.\d+) avg300=(\d+\.\d+) total=(\d+)", re.ASCII)
_LOAD = re.compile(r"(\d+\.\d+) (\d+\.\d+) (\d+\.\d+) (\d+)/(\d+) \d+", re.ASCII)
_MEMORY = re.compile(r"([A-Za-z][\w()]*):\s+(\d+)(?: kB)?", re.ASCII)


def parse_pressure(resource: str, lines: Iterable[str]) -> dict[str, float]:
    """Own names and values of a pressure file: averages in percent, ``total`` in microseconds since boot.

    Source: Linux kernel documentation, accounting/psi.

    Raises:
        ValueError: a line is not of the form the kernel writes.
    """
    values: dict[str, float] = {}
    for line in lines:
        match = _PRESSURE.fullmatch(line.strip())
        if match is None:
            raise ValueError(line)
        numbers = dict(zip(("avg10", "avg60", "avg300", "total"), match.groups()[1:], strict=True))
        values |= {f"{resource}.{match[1]}.{name}": float(value) for name, value in numbers.items()}
    return values


def parse_load(line: str) -> dict[str, float]:
    """Own names and values of ``/proc/loadavg``: three averages, tasks now runnable, all tasks.

    Source: proc_loadavg(5).

    Raises:
        ValueError: the line is not of the form the kernel writes.
    """
    match = _LOAD.fullmatch(line.strip())
    if match is None:
        raise ValueError(line)
    return dict(zip(LOAD_FIELDS, map(float, match.groups()), strict=True))


def parse_memory(lines: Iterable[str]) -> dict[str, float]:
    """Own names and values of ``/proc/meminfo``, KiB, with swap in use.

    Source: proc_meminfo(5).

    Raises:
        ValueError: a line is not of the form the kernel writes.
    """
    values: dict[str, float] = {}
    for line in lines:
        match = _MEMORY.fullmatch(line.strip())
        if match is None:
            raise ValueError(line)
        values[match[1]] = float(match[2])
    return with_swap_used(values)


def with_swap_used(values: dict[str, float]) -> dict[str, float]:
    """The same memory values with swap in use, which the kernel leaves to its readers."""
    if "SwapTotal" in values and "SwapFree" in values:
        values["SwapUsed"] = values["SwapTotal"] - values["SwapFree"]
    return values
