"""A guest's virtual hardware as QEMU's options: block chains with their limits, adapters, network cards, NUMA nodes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.lab import persistent_memory
from leadline.lab.specification import Adapter, DiskLimits, Guest, LabDisk

ROOT = "root"
BALLOON = "balloon"
# Adapter type -> QEMU's device and, where disks are devices on its bus, what they are called there.
_DEVICES: dict[str, tuple[str, str]] = {
    "pvscsi": ("pvscsi", "scsi-hd"),
    "lsi": ("lsi53c895a", "scsi-hd"),
    "lsi-sas": ("mptsas1068", "scsi-hd"),
    "megasas": ("megasas-gen2", "scsi-hd"),
    "virtio-scsi": ("virtio-scsi-pci", "scsi-hd"),
    "virtio-blk": ("virtio-blk-pci", ""),
    "nvme": ("nvme", ""),
}
DRIVERS = {
    "pvscsi": "vmw_pvscsi",
    "lsi": "sym53c8xx",
    "lsi-sas": "mptsas",
    "megasas": "megaraid_sas",
    "virtio-scsi": "virtio_scsi",
    "virtio-blk": "virtio_blk",
    "nvme": "nvme",
}
_NICS = {"vmxnet3": "vmxnet3", "e1000": "e1000", "e1000e": "e1000e", "virtio": "virtio-net-pci"}
_MULTICAST = "230.0.0.{}:{}"
PORTS_ADDRESS = "10.0.2.15"  # Source: QEMU, -netdev user: the address that forwarded ports lead to
HERE_ADDRESS = "10.0.2.2"  # this machine, as the guest sees it


@dataclass(frozen=True, slots=True)
class Files:
    """Where a guest's files are: its folder, its disks' images by name, the shared root."""

    folder: Path
    images: Mapping[str, Path]
    root: Path

    @property
    def channel(self) -> Path:
        """The socket of the agent's channel."""
        return self.folder / "channel"

    @property
    def terminal(self) -> Path:
        """The socket of the channel for a person."""
        return self.folder / "terminal"

    @property
    def monitor(self) -> Path:
        """The QMP socket that belongs to whoever runs the guest."""
        return self.folder / "monitor"

    @property
    def counters(self) -> Path:
        """The QMP socket that belongs to who records."""
        return self.folder / "counters"

    @property
    def console(self) -> Path:
        """What the guest's kernel and agent print."""
        return self.folder / "console.log"


def module_options(guest: Guest) -> dict[str, str]:
    """Options of drivers in the guest, by module."""
    return {DRIVERS[a.type]: a.module_options for a in guest.adapters if a.module_options}


def options(guest: Guest, files: Files, *, direct: bool, networks: Mapping[str, int]) -> list[str]:
    """QEMU's options for a guest, without accelerator and kernel.

    Args:
        guest: what it is.
        files: where its sockets and images are.
        direct: the images' file system can bypass the page cache.
        networks: port of each network on this machine.
    """
    words = ["-name", guest.name, "-M", "q35", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    words += ["-m", str(guest.memory // 2**20), "-smp", str(guest.vcpus), *_numa(guest)]
    words += persistent_memory.options(guest, files.folder)
    words += ["-chardev", f"file,id=console,path={files.console}", "-serial", "chardev:console"]
    words += ["-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={files.channel},server=on,wait=off"]
    words += ["-device", "virtserialport,chardev=agent,name=leadline", "-device", "virtio-rng-pci"]
    words += ["-device", f"virtio-balloon-pci,id={BALLOON}"]  # empty until somebody asks for memory
    words += ["-chardev", f"socket,id=person,path={files.terminal},server=on,wait=off"]
    words += ["-device", "virtserialport,chardev=person,name=leadline-console"]
    for path in (files.monitor, files.counters):
        words += ["-qmp", f"unix:{path},server=on,wait=off"]
    root = {"driver": "raw", "node-name": ROOT, "read-only": True, "file": _file(files.root, "unsafe", direct=False)}
    words += ["-blockdev", json.dumps(root), "-device", f"virtio-blk-pci,drive={ROOT},id={ROOT}"]
    for group, limits in _groups(guest).items():
        words += ["-object", json.dumps({"qom-type": "throttle-group", "id": group, "limits": _limits(limits)})]
    for adapter in guest.adapters:
        words += _adapter(adapter)
    for disk in guest.disks:
        words += ["-blockdev", json.dumps(chain(disk, files.images[disk.name], direct=direct))]
    # Devices come after what they stand on.
    words += [word for disk in guest.disks for word in _disk(disk, guest)]
    if guest.host_queue_depth is not None:
        words += ["-object", f"main-loop,id=loop,thread-pool-max={guest.host_queue_depth}"]
    for number, nic in enumerate(guest.nics):
        port = networks[nic.network]
        words += ["-netdev", f"socket,id=net{number},mcast={_MULTICAST.format(1, port)},localaddr=127.0.0.1"]
        words += ["-device", f"{_NICS[nic.type]},netdev=net{number},mac={_mac(guest.name, number)}"]
    if guest.ports:
        ways = "".join(f",hostfwd=tcp:127.0.0.1:{here}-:{there}" for there, here in sorted(guest.ports.items()))
        words += ["-netdev", f"user,id=ports,restrict=on{ways}"]
        words += ["-device", f"virtio-net-pci,netdev=ports,mac={_mac(guest.name, len(guest.nics))}"]
    return words


def _numa(guest: Guest) -> list[str]:
    if guest.numa_nodes == 1:
        return []
    words = []
    each, memory = guest.vcpus // guest.numa_nodes, guest.memory // 2**20 // guest.numa_nodes
    for node in range(guest.numa_nodes):
        words += ["-object", f"memory-backend-ram,id=ram{node},size={memory}M"]
        first = node * each
        words += ["-numa", f"node,nodeid={node},cpus={first}-{first + each - 1},memdev=ram{node}"]
    return words


def chain(disk: LabDisk, image: Path, *, direct: bool) -> dict[str, Any]:
    """The block nodes of a disk, from its limit down to its file."""
    node = layer(disk, layer_image(disk, 0, image.parent), 0, direct=direct)
    for number in range(1, disk.overlays + 1):
        overlay = layer(disk, layer_image(disk, number, image.parent), number, direct=direct)
        node = {**overlay, "backing": {**node, "read-only": True}}
    if disk.limits is not None:
        node = {"driver": "throttle", "throttle-group": limit_group(disk), "node-name": limit_node(disk), "file": node}
    return node


def layer(disk: LabDisk, image: Path, number: int, *, direct: bool) -> dict[str, Any]:
    """The block nodes of one file of a disk: 0 is its base, higher ones its snapshots; all are on the same storage."""
    file = _store(disk, image, direct=direct)
    if disk.storage_latency is not None:
        file = {"driver": "nbd", "server": {"type": "unix", "path": str(storage_socket(disk, image.parent))}}
    if disk.storage is not None:
        file = {"driver": "throttle", "throttle-group": f"storage-{disk.name}", "file": file}
    if disk.sector is not None:
        file = {"driver": "blkdebug", "align": disk.sector, "image": file}
    return {
        "driver": "qcow2" if number else disk.format,
        "node-name": layer_node(disk, number),
        "file": file,
        "cache": _cache(disk.cache, direct=direct),
        "discard": "unmap",
    }


def layer_image(disk: LabDisk, number: int, folder: Path) -> Path:
    """Where a file of a disk is; snapshots are numbered as vSphere numbers theirs."""
    return folder / (f"{disk.name}-{number:06d}.qcow2" if number else f"{disk.name}.{disk.format}")


def storage_socket(disk: LabDisk, folder: Path) -> Path:
    """Where storage with a latency of its own is served; a short name, as sockets must have one."""
    return folder / f"nbd-{zlib.crc32(disk.name.encode()) & 0xFFFF:04x}"


def layer_node(disk: LabDisk, number: int) -> str:
    """The block node of a file of a disk."""
    return f"{disk.name[:20]}-{number:06d}"  # node names have 31 characters at most


def limit_node(disk: LabDisk) -> str:
    """The block node of a disk's limit."""
    return f"{disk.name[:20]}-limit"


def top_node(disk: LabDisk) -> str:
    """The block node a disk's device stands on when its guest starts."""
    return limit_node(disk) if disk.limits is not None else layer_node(disk, disk.overlays)


def _store(disk: LabDisk, image: Path, *, direct: bool) -> dict[str, Any]:
    if disk.null_latency is None:
        return _file(image, disk.cache, direct=direct, aio=disk.aio)
    return {"driver": "null-co", "size": disk.size, "latency-ns": round(disk.null_latency * 1e9), "read-zeroes": True}


def _file(image: Path, cache: str, *, direct: bool, aio: str = "threads") -> dict[str, Any]:
    return {"driver": "file", "filename": str(image), "aio": aio, "cache": _cache(cache, direct=direct)}


def _cache(mode: str, *, direct: bool) -> dict[str, bool]:
    return {"direct": direct and mode in ("none", "directsync"), "no-flush": mode == "unsafe"}


def limit_group(disk: LabDisk) -> str:
    """The throttle group of a disk's limit."""
    return f"limit-{disk.shared_limit or disk.name}"


def _groups(guest: Guest) -> dict[str, DiskLimits]:
    above = {limit_group(disk): disk.limits for disk in guest.disks if disk.limits is not None}
    return above | {f"storage-{disk.name}": disk.storage for disk in guest.disks if disk.storage is not None}


def _limits(limits: DiskLimits) -> dict[str, int]:
    given = {
        "iops-total": limits.iops,
        "iops-read": limits.iops_read,
        "iops-write": limits.iops_write,
        "bps-total": limits.bytes_per_s,
        "iops-size": limits.iops_size,
    }
    return {name: value for name, value in given.items() if value is not None}


def _adapter(adapter: Adapter) -> list[str]:
    device, on_bus = _DEVICES[adapter.type]
    return ["-device", f"{device},id={adapter.name}"] if on_bus else []


def _disk(disk: LabDisk, guest: Guest) -> list[str]:
    adapter = next(adapter for adapter in guest.adapters if adapter.name == disk.adapter)
    device, on_bus = _DEVICES[adapter.type]
    properties: dict[str, Any] = {"drive": top_node(disk), "id": disk.name, "serial": disk.name[:20]}
    if on_bus:
        # One target each: guests find them in this order.
        number = [one.name for one in guest.disks if one.adapter == disk.adapter].index(disk.name)
        properties |= {"driver": on_bus, "bus": f"{adapter.name}.0", "scsi-id": number}
    else:
        properties |= {"driver": device}
    if disk.sector is not None and adapter.type != "nvme":
        properties |= {"logical_block_size": 512, "physical_block_size": max(disk.sector, 512)}
    if disk.cache in ("writeback", "unsafe"):
        properties["write-cache"] = "on"
    return ["-device", json.dumps(properties)]


def _mac(guest: str, number: int) -> str:
    """An address made of the guest's name: the same in every run."""
    value = zlib.crc32(f"{guest}/{number}".encode())
    return "52:54:00:" + ":".join(f"{value >> shift & 255:02x}" for shift in (16, 8, 0))
