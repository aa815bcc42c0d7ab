"""Disks, what lies on them and what is mounted where, as several commands say it together.

What is on a disk follows `leadline facts`: a disk with one file system on it carries its mount point; where there are
several, each partition or mapped device does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from leadline.core.contracts.importer import UNNAMED_GUEST
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

_PARTITION = re.compile(r"((?:sd|vd|xvd|hd)[a-z]{1,3})\d{1,3}|((?:nvme\d{1,3}n|mmcblk|md)\d{1,4})p\d{1,3}")
_NOT_DISKS = re.compile(r"(?:loop|ram|zram|fd|sr)\d+$")
_SD_MAJOR, _SD_PARTITIONS = 8, 16
_MAPPED_MAJORS = range(252, 255)
DEPTH_MAX = 16  # devices on devices; deeper is a loop


@dataclass(slots=True)
class Device:
    """A disk, partition or mapped device.

    Attributes:
        facts: its settings, as settings.csv names them.
        below: names of what it lies on.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    below: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """All devices by the name the kernel has for them, and the other names of mapped ones."""

    devices: dict[str, Device] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def device(self, name: str) -> Device:
        """The device with a name, new where there is none yet."""
        return self.devices.setdefault(self.kernel_name(name), Device())

    def kernel_name(self, path: str) -> str:
        """``dm-0`` of ``/dev/mapper/vg-root`` or ``/dev/vg/root`` where that is known, else the path's end."""
        name = path.removeprefix("/dev/").removeprefix("mapper/")
        if name.count("/") == 1 and not name.startswith("disk/"):
            group, _, volume = name.partition("/")
            name = mapper_name(group, volume)
        return self.aliases.get(name, name)

    def rename(self, alias: str, name: str) -> None:
        """Say that a mapped device has another name, and move what is known of it there."""
        self.aliases[alias] = name
        moved = self.devices.pop(alias, None)
        if moved is not None:
            device = self.device(name)
            device.facts = moved.facts | device.facts
            device.below += moved.below
        for device in self.devices.values():
            device.below = [name if below == alias else below for below in device.below]

    def into(self, builder: CaptureBuilder) -> None:
        """Add the facts of all disks to a capture."""
        mounted = [name for name, device in self.devices.items() if "mount" in device.facts]
        on_disk: dict[str, list[str]] = {}
        for name in mounted:
            for disk in self._disks(name):
                on_disk.setdefault(disk, []).append(name)
        for disk, names in on_disk.items():
            if len(names) == 1 and names[0] != disk:
                facts = self.devices[names[0]].facts
                is_part = _disk_of(names[0]) == disk
                kept = facts if is_part else {"mount": facts["mount"]}
                self.device(disk).facts |= {name: value for name, value in kept.items() if name != "size_gib"}
        alone = {names[0] for disk, names in on_disk.items() if len(names) == 1 and _disk_of(names[0]) == disk}
        for name, device in self.devices.items():
            if device.facts and name not in alone and not _NOT_DISKS.fullmatch(name):
                entity = Entity(EntityKind.BLOCK_DEVICE, name, UNNAMED_GUEST)
                builder.inventory.add(entity, builder.info.name, **device.facts)

    def _disks(self, name: str) -> set[str]:
        """The disks that a device lies on, through all levels."""
        reached: set[str] = set()
        waiting = [(name, 0)]
        while waiting:
            current, depth = waiting.pop()
            device = self.devices.get(current)
            below = [*(device.below if device is not None else []), *([_disk_of(current)] if _disk_of(current) else [])]
            if not below or depth > DEPTH_MAX:
                reached.add(current)
            waiting += [(lower, depth + 1) for lower in dict.fromkeys(below)]
        return reached


def mapper_name(group: str, volume: str) -> str:
    """The name device mapper gives a logical volume: dashes in its parts are doubled.

    >>> mapper_name("vg-data", "root")
    'vg--data-root'
    """
    return f"{group.replace('-', '--')}-{volume.replace('-', '--')}"


def device_numbered(number: str, alias: str = "") -> str | None:
    """The kernel's name of a device by ``major:minor``; None where that does not say it.

    >>> device_numbered("8:17"), device_numbered("253:4", "vg-root"), device_numbered("259:0")
    ('sdb1', 'dm-4', None)
    """
    major, _, minor = number.partition(":")
    if not (major.isdigit() and minor.isdigit()) or len(number) > 12:
        return None
    if int(major) == _SD_MAJOR:
        letter, part = chr(ord("a") + int(minor) // _SD_PARTITIONS), int(minor) % _SD_PARTITIONS
        return f"sd{letter}{part or ''}" if letter.isalpha() else None
    return f"dm-{minor}" if alias and int(major) in _MAPPED_MAJORS else None


def _disk_of(name: str) -> str:
    """The disk of a partition; "" for another device."""
    match = _PARTITION.fullmatch(name)
    return (match[1] or match[2]) if match else ""
