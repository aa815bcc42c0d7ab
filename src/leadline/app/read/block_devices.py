"""Block devices of a machine as its /sys and /proc show them: queues, drivers, partitions, what is mounted where."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.app.read.machine_files import Tree, whole_number

_SECTOR_BYTES = 512  # the unit of /sys/block/*/size and start, whatever the device's own sectors are
_GIB_BYTES = 1024**3
_NOT_DISKS = re.compile(r"(?:loop|ram|zram|fd|sr)\d+$")
_OCTAL = re.compile(r"\\([0-7]{3})")
_HOST = re.compile(r"/host(\d+)/")

FreeShare = Callable[[str], float | None]


@dataclass(frozen=True, slots=True)
class Mount:
    """A filesystem of a block device: where, of what type, with which options."""

    number: str  # major:minor of the device
    source: str
    point: str
    filesystem: str
    options: tuple[str, ...]


def free_share_pct(point: str) -> float | None:
    """Share of a mounted filesystem that ordinary users may still fill, in percent; None when it cannot be asked."""
    try:
        filesystem = os.statvfs(point)
    except (OSError, AttributeError):  # Windows has no such call
        return None
    usable = filesystem.f_blocks - filesystem.f_bfree + filesystem.f_bavail
    return None if usable <= 0 else round(100.0 * filesystem.f_bavail / usable, 2)


def mounts(tree: Tree) -> list[Mount]:
    """Return the filesystems on block devices, each once, with the mount point of its root.

    Source: proc(5), /proc/pid/mountinfo.
    """
    by_source: dict[str, Mount] = {}
    for line in tree.lines("/proc/self/mountinfo"):
        left, dash, right = line.partition(" - ")
        fields, of_filesystem = left.split(" "), right.split(" ")
        if not dash or len(fields) < 6 or len(of_filesystem) < 2 or fields[3] != "/":
            continue
        filesystem, source = of_filesystem[:2]
        options = [*fields[5].split(","), *(of_filesystem[2].split(",") if len(of_filesystem) > 2 else [])]
        mount = Mount(fields[2], _plain(source), _plain(fields[4]), filesystem, tuple(dict.fromkeys(options)))
        if mount.source.startswith("/dev/") or not mount.number.startswith("0:"):
            by_source.setdefault(mount.source, mount)
    return list(by_source.values())


def block_devices(tree: Tree, mounted: list[Mount], free_share: FreeShare | None) -> list[dict[str, Any]]:
    """Settings of every disk, and of partitions that share a disk with other filesystems.

    Args:
        tree: of the machine.
        mounted: from `mounts`.
        free_share: asks how much of a mounted filesystem is free, percent; None when that cannot be asked.
    """
    disks = [name for name in tree.names("/sys/block") if not _NOT_DISKS.match(name) and _size(tree, name)]
    above = _stacked(tree, disks)
    devices = []
    for disk in disks:
        on_disk = [mount for mount in mounted if mount.number in _numbers(tree, disk)]
        over_all = [m for name in above.get(disk, []) for m in mounted if m.number in _numbers(tree, name)]
        device = {"name": disk, **_queue(tree, disk)}
        parts = []
        if len(on_disk) == 1 and not over_all:
            device |= _mounted(on_disk[0], free_share)
        elif len(over_all) == 1 and not on_disk:
            device["mount"] = over_all[0].point
        else:
            parts = [_part(tree, disk, mount) | _mounted(mount, free_share) for mount in on_disk]
        devices += [device, *(part for part in parts if part["name"] != disk)]
    return devices


def device_of(tree: Tree, mounted: list[Mount], path: str) -> str | None:
    """The disk (whole, or the mapper's) that holds a path, by the longest mount point above it."""
    holding = [m for m in mounted if path == m.point or path.startswith(m.point.rstrip("/") + "/")]
    if not holding:
        return None
    number = max(holding, key=lambda mount: len(mount.point)).number
    return next((name for name in tree.names("/sys/block") if number in _numbers(tree, name)), None)


def _queue(tree: Tree, disk: str) -> dict[str, Any]:
    base = f"/sys/block/{disk}"
    rotational = tree.number(f"{base}/queue/rotational")
    settings: dict[str, Any] = {
        "driver": _driver(tree, disk),
        "size_gib": round((_size(tree, disk) or 0) * _SECTOR_BYTES / _GIB_BYTES, 3),
        "scheduler": tree.chosen(f"{base}/queue/scheduler"),
        "read_ahead_kib": tree.number(f"{base}/queue/read_ahead_kb"),
        "nr_requests_count": tree.number(f"{base}/queue/nr_requests"),
        "queue_depth_count": tree.number(f"{base}/device/queue_depth"),
        "rotational": None if rotational is None else rotational != 0,
        "timeout_s": tree.number(f"{base}/device/timeout"),
    }
    starts = {name: tree.number(f"{base}/{name}/start") for name in _partitions(tree, disk)}
    settings["partition_starts_bytes"] = {
        name: start * _SECTOR_BYTES for name, start in starts.items() if start is not None
    } or None
    return {name: value for name, value in settings.items() if value is not None}


def _mounted(mount: Mount, free_share: FreeShare | None) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "mount": mount.point,
        "filesystem": mount.filesystem,
        "mount_options": list(mount.options),
    }
    free = None if free_share is None else free_share(mount.point)
    return settings if free is None else {**settings, "filesystem_free_pct": free}


def _part(tree: Tree, disk: str, mount: Mount) -> dict[str, Any]:
    numbers = {name: tree.text(f"/sys/block/{disk}/{name}/dev") for name in _partitions(tree, disk)}
    return {"name": next((name for name, number in numbers.items() if number == mount.number), disk)}


def _partitions(tree: Tree, disk: str) -> Iterator[str]:
    base = f"/sys/block/{disk}"
    return (name for name in tree.names(base) if name.startswith(disk) and tree.has(f"{base}/{name}/partition"))


def _numbers(tree: Tree, disk: str) -> set[str]:
    """Device numbers of a disk and its partitions, major:minor."""
    base = f"/sys/block/{disk}"
    numbers = [tree.text(f"{base}/dev"), *(tree.text(f"{base}/{name}/dev") for name in _partitions(tree, disk))]
    return {number for number in numbers if number}


def _stacked(tree: Tree, disks: list[str]) -> dict[str, list[str]]:
    """Disk -> the mapped devices and arrays that lie on it or its partitions, through all levels."""
    below = {name: _whole(tree, disks, tree.names(f"/sys/block/{name}/slaves")) for name in disks}
    above: dict[str, list[str]] = {}
    for name in disks:
        reached, waiting = set[str](), list(below[name])
        while waiting:
            disk = waiting.pop()
            if disk not in reached:
                reached.add(disk)
                waiting += below.get(disk, [])
        for disk in reached - {name}:
            above.setdefault(disk, []).append(name)
    return above


def _whole(tree: Tree, disks: list[str], names: list[str]) -> list[str]:
    return [disk for disk in disks for name in names if name == disk or tree.has(f"/sys/block/{disk}/{name}/partition")]


def _driver(tree: Tree, disk: str) -> str | None:
    """The driver of the disk's controller: of its SCSI host where it has one, else of the device itself."""
    path = tree.target(f"/sys/block/{disk}/device")
    host = None if path is None else _HOST.search(path + "/")
    if host is not None:
        return tree.text(f"/sys/class/scsi_host/host{host[1]}/proc_name")
    for link in (f"/sys/block/{disk}/device/driver", f"/sys/block/{disk}/device/device/driver"):
        driver = tree.target(link)
        if driver is not None:
            return Path(driver).name
    return None


def _size(tree: Tree, disk: str) -> int | None:
    return whole_number(tree.text(f"/sys/block/{disk}/size"))


def _plain(text: str) -> str:
    """A field of mountinfo with its octal escapes undone: a space is a backslash and 040."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
