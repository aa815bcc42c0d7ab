"""What Linux' own commands list, as reports hold it: lscpu, cpuinfo, uname, sysctl, mount, df, /dev/mapper.

Lines that are not of the form the command prints are passed over: reports put headings and errors between them.

Source: lscpu(1), mount(8), df(1), sysctl(8), uname(1); proc(5) for cpuinfo.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from leadline.estate.derived.disks import whole_disk

# Kernel settings that rules look at or that explain a finding.
SYSCTL_NAMES = frozenset(
    """
    fs.aio-max-nr fs.file-max kernel.numa_balancing kernel.sched_autogroup_enabled kernel.sem kernel.shmall
    kernel.shmmax kernel.shmmni net.core.somaxconn net.ipv4.tcp_keepalive_time vm.dirty_background_bytes
    vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs
    vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.nr_hugepages vm.nr_overcommit_hugepages
    vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.swappiness vm.vfs_cache_pressure
    vm.zone_reclaim_mode
    """.split()
)
_HYPERVISORS = {"vmware": "vmware", "kvm": "kvm", "microsoft": "hyperv", "xen": "xen"}
_SYSCTL = re.compile(r"([a-z][\w.-]*) = (.{1,200})")
_UNAME = re.compile(r"Linux (\S+) (\d\S+) #")
_RELEASE = re.compile(r"Description:\s+(\S.{0,120})")
_MAPPER = re.compile(r"(?<!\S)(\S++) -> \.\./(dm-\d+)$")
_PARTITION = re.compile(r"\s*(\d+)\s+(\d+)\s+\d+\s+(\S+)")
_MOUNT = re.compile(r"(/dev/\S+) on (/.*?) type (\w+) \(([^()]*)\)")
_DF = re.compile(r"(\S+)\s+(\d{1,18})\s+(\d{1,18})\s+(-?\d{1,18})\s+\d{1,18}%\s+(/.*)")


@dataclass(frozen=True, slots=True)
class Filesystem:
    """A mounted filesystem: its device's name as iostat has it ("" for none: network, memory), what is known of it."""

    device: str
    point: str
    kind: str | None = None
    options: tuple[str, ...] | None = None
    free_pct: float | None = None


def cpu_facts(lines: Iterable[str]) -> dict[str, Any]:
    """Settings of a guest by lscpu, else by the processors cpuinfo lists; empty where neither is there."""
    pairs = [(name.strip(), value.strip()) for name, colon, value in (line.partition(":") for line in lines) if colon]
    values: dict[str, str] = {}
    for name, value in pairs:
        values.setdefault(name, value)
    listed = len({value for name, value in pairs if name == "processor" and value.isdigit()})
    return {
        name: value
        for name, value in {
            "cpu_count": _count(values.get("CPU(s)")) or listed or None,
            "numa_node_count": _count(values.get("NUMA node(s)")),
            "virtualisation": _hypervisor(values),
        }.items()
        if value is not None
    }


def system_facts(lines: Iterable[str]) -> dict[str, Any]:
    """Settings of a guest by ``uname -a`` and ``lsb_release -a``."""
    facts: dict[str, Any] = {}
    for line in lines:
        kernel, release = _UNAME.match(line.strip()), _RELEASE.fullmatch(line.strip())
        if kernel is not None:
            facts.setdefault("kernel_version", kernel[2])
        if release is not None:
            facts.setdefault("guest_os", release[1])
    return facts


def sysctl_facts(lines: Iterable[str]) -> dict[str, str | int]:
    """The kernel settings that are kept, by name, of ``sysctl -a``."""
    settings: dict[str, str | int] = {}
    for line in lines:
        match = _SYSCTL.fullmatch(line.strip())
        if match is not None and match[1] in SYSCTL_NAMES:
            text = " ".join(match[2].split())
            settings[match[1]] = int(text) if text.isascii() and text.isdigit() and len(text) < 21 else text
    return settings


def mapper_names(lines: Iterable[str]) -> dict[str, str]:
    """What ``ls -l /dev/mapper`` calls a mapped device, and its name: ``vg-data`` is ``dm-2``."""
    matches = (_MAPPER.search(line.rstrip()) for line in lines)
    return {match[1]: match[2] for match in matches if match is not None}


def partition_names(lines: Iterable[str]) -> dict[str, str]:
    """What sar calls a device it does not know by name, and its name, of ``/proc/partitions``: dev8-0 is sda."""
    matches = (_PARTITION.fullmatch(line.rstrip()) for line in lines)
    return {f"dev{match[1]}-{match[2]}": match[3] for match in matches if match is not None}


def filesystems(mounts: Iterable[str], sizes: Iterable[str], mapped: dict[str, str]) -> list[Filesystem]:
    """Filesystems, each device's where it was mounted first; those of no block device only as far as df lists them.

    Args:
        mounts: lines of ``mount``; options of network filesystems may hold secrets and are not looked at.
        sizes: lines of ``df``, in any unit; a long device's name may stand on a line of its own.
        mapped: from `mapper_names`.
    """
    by_source: dict[str, Filesystem] = {}
    for line in mounts:
        match = _MOUNT.fullmatch(line.strip())
        if match is not None:
            device = _device(match[1], mapped)
            by_source.setdefault(match[1], Filesystem(device, match[2], match[3], tuple(match[4].split(","))))
    for line in _joined(sizes):
        match = _DF.fullmatch(line)
        if match is None:
            continue
        used, free = int(match[3]), max(int(match[4]), 0)
        share = round(100.0 * free / (used + free), 2) if used + free else None
        local = match[1].startswith("/dev/")
        key = match[1] if local else match[5]
        known = by_source.get(key)
        if known is None and not local:
            by_source[key] = Filesystem("", match[5])
        elif known is None:
            by_source[key] = Filesystem(_device(match[1], mapped), match[5], free_pct=share)
        elif known.point == match[5]:
            by_source[key] = Filesystem(known.device, known.point, known.kind, known.options, share)
    return list(by_source.values())


def by_disk(mounted: Iterable[Filesystem]) -> Iterator[tuple[str, Filesystem]]:
    """Yield each filesystem with its disk, or with its partition where the disk has several filesystems.

    The boot partition stays one: the rest of its disk is often a volume group, which these lists do not show.
    """
    disks: dict[str, list[Filesystem]] = {}
    for filesystem in (fs for fs in mounted if fs.device):
        disks.setdefault(whole_disk(filesystem.device), []).append(filesystem)
    for disk, on_disk in disks.items():
        for filesystem in on_disk:
            whole = len(on_disk) == 1 and not filesystem.point.startswith("/boot")
            yield disk if whole else filesystem.device, filesystem


def holder(mounted: Iterable[Filesystem], path: str) -> Filesystem | None:
    """The filesystem of a block device a folder is on: the one with the longest mount point above it, if it is one."""
    above = [fs for fs in mounted if f"{path.rstrip('/')}/".startswith(f"{fs.point.rstrip('/')}/")]
    nearest = max(above, key=lambda fs: len(fs.point), default=None)
    return nearest if nearest is not None and nearest.device else None


def _device(source: str, mapped: dict[str, str]) -> str:
    name = source.removeprefix("/dev/").removeprefix("mapper/")
    return mapped.get(name, name.rpartition("/")[2])


def _joined(lines: Iterable[str]) -> Iterator[str]:
    waiting = ""
    for line in lines:
        text = f"{waiting} {line.strip()}".strip()
        waiting = text if "/" in text and len(text.split()) == 1 else ""
        if not waiting:
            yield text


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and 0 < len(text) < 7 and int(text) else None


def _hypervisor(values: dict[str, str]) -> str | None:
    vendor = values.get("Hypervisor vendor")
    if vendor:
        return next((kind for word, kind in _HYPERVISORS.items() if word in vendor.casefold()), "other")
    flags = values.get("Flags") or values.get("flags")
    if flags is None:
        return None
    return "other" if "hypervisor" in flags.split() else "none"
