"""Where the load of fio runs: bound to processors or to a NUMA node, and the node the disk of a target hangs on.

A request that is issued on one node for a device of another crosses the link between them twice. Bind a load to the
node of its device to leave that out, to the other one to see what it costs.

Source: fio HOWTO, cpus_allowed, numa_cpu_nodes, numa_mem_policy; Linux, Documentation/ABI/testing/sysfs-bus-pci
(numa_node: -1 where the machine does not say).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.core.contracts.benchmark import Place
from leadline.core.model.errors import UsageError

if TYPE_CHECKING:
    from leadline.core.model.workload import IoSettings

_DEVICES, _NODES = Path("/sys/dev/block"), Path("/sys/devices/system/node")
_UNKNOWN = -1


def options_of(settings: IoSettings) -> dict[str, str]:
    """The options of fio that bind its jobs; none where nothing is bound."""
    options = {}
    if settings.cpus:
        options["cpus_allowed"] = settings.cpus
    if settings.numa_node is not None:
        options |= {"numa_cpu_nodes": str(settings.numa_node), "numa_mem_policy": f"bind:{settings.numa_node}"}
    return options


def require_processors(settings: IoSettings, nodes: Path = _NODES) -> None:
    """Refuse a binding to what is not there: fio would run, and say so only in its output.

    Raises:
        UsageError: a processor or node this process may not use.
    """
    wanted, there = processors(settings.cpus or ""), os.sched_getaffinity(0)
    if not wanted <= there:
        raise UsageError(
            "io_settings.cpus",
            found=f"{settings.cpus}, and this process may use {_ranges(there)}",
            expected="processors that are there",
            advice="Leave cpus out, or name some of these.",
        )
    if settings.numa_node is not None and not (nodes / f"node{settings.numa_node}").is_dir():
        count = len(list(nodes.glob("node[0-9]*")))
        raise UsageError(
            "io_settings.numa_node",
            found=f"{settings.numa_node} on a machine of {count or 'no'} node{'' if count == 1 else 's'}",
            expected=f"0 to {count - 1}" if count else "a machine that has nodes",
            advice="`lscpu` lists them.",
        )


def processors(text: str) -> set[int]:
    """The processors of a list as the kernel writes them.

    >>> sorted(processors("0-2,5"))
    [0, 1, 2, 5]
    """
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def _ranges(numbers: set[int]) -> str:
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def node_notes(settings: IoSettings, places: Iterable[Place], nodes: Path = _NODES) -> list[str]:
    """What is to be said of the nodes of the disks below the places, on a machine that has several."""
    if len(list(nodes.glob("node[0-9]*"))) < 2:
        return []
    return [
        f"{place.path} is on a disk at NUMA node {node}"
        + (f"; the load runs at node {settings.numa_node}" if settings.numa_node is not None else "")
        for place in places
        if (node := node_of(Path(place.path))) != _UNKNOWN
    ]


def node_of(path: Path, devices: Path = _DEVICES) -> int:
    """The NUMA node of the disk that a device is, or that a file or its folder lies on; -1 where nobody says."""
    existing = next((part for part in (path, *path.parents) if part.exists()), None)
    if existing is None:
        return _UNKNOWN
    state = existing.stat()
    is_mapped = existing.is_char_device()  # persistent memory
    number = state.st_rdev if existing.is_block_device() or is_mapped else state.st_dev
    folder = devices.with_name("char") if is_mapped else devices
    device = (folder / f"{os.major(number)}:{os.minor(number)}").resolve()
    for folder in (device, *device.parents):
        try:
            return int((folder / "numa_node").read_text())
        except (OSError, ValueError):
            continue
    return _UNKNOWN
