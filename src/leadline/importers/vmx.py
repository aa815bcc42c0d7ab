"""VMware's .vmx file: how a virtual machine is configured.

Reads:
    ``.vmx`` and ``.vmtx`` of ESXi, Workstation and Fusion: vCPUs, memory, limits and reservations, controllers, disks,
    network adapters, other virtual devices, PCI passthrough, NUMA and other advanced settings, changed block tracking,
    how instructions and page tables are virtualised. Names in any encoding the file declares. Keys are not case
    sensitive; of a key that is there twice the last counts.

Sample:
    .. code-block:: text

        .encoding = "windows-1251"
        scsi0:0.fileName = "/vmfs/volumes/ssd-wal/db01/db01_1-000002.vmdk"
        sched.scsi0:0.throughputCap = "1500"
        annotation = "two lines|0Aand a quote |22"
        floppy0.startConnected = "FALSE"

Lost:
    Sizes and provisioning of disks (they are in the .vmdk), limits of resource pools, the guest's host name. Types that
    are not written (VMware then chooses by guest system) stay unknown. A bandwidth cap in bytes is no IOPS limit. How
    many snapshots there are is not in the file: a disk file named ``-000002.vmdk`` only tells that there is at least
    one. A floppy drive is there unless ``floppy0.present`` is FALSE, which is VMware's default; it is only believed
    where the file mentions the drive.

Units:
    ``memsize`` and ``sched.mem.*`` are MiB, ``sched.cpu.min`` and ``max`` MHz, ``throughputCap`` operations per second.

Sources:
    libvirt, documentation of the ESX driver and of its VMX format (keys, defaults, encodings, escapes by ``|XX``).
    VMware ESX Server administration guide, resource management (sched.*). VMware KB 1038241 (throughputCap).
    Frank Denneman, NUMA deep dive (numa.autosize.*). VMware KB 1034165 (multi-writer), KB 1031873 (ctkEnabled).
    vSphere Virtual Machine Administration, CPU and MMU virtualisation (monitor.virtual_exec, monitor.virtual_mmu).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import PurePosixPath
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.estate.knowledge.virtual_disks import DELTA_FILE

META = ImporterMeta(
    tool="VMware .vmx",
    marks=("virtualhw.version", "config.version", "numvcpus", "memsize", "scsi0.present"),
    layers=(Layer.VM,),
    record="scp root@ESXI-HOST:/vmfs/volumes/DATASTORE/VM/VM.vmx .",
)

_MARK = re.compile(r'^[ \t]*(?:virtualHW\.version|config\.version)[ \t]*=[ \t]*"?\d', re.MULTILINE | re.IGNORECASE)
_LIKELY = re.compile(r'^[ \t]*(?:numvcpus|memsize|scsi0\.present)[ \t]*=[ \t]*"', re.MULTILINE | re.IGNORECASE)
_SETTING = re.compile(r'\s*([^\s="#][^\s="]*)\s*=\s*(?:"([^"]*)"|([^\s"#]+))\s*(?:#.*)?')
_ESCAPED = re.compile(r"(?:\|[0-9A-Fa-f]{2})+")
_ENCODING = re.compile(rb'^[ \t]*\.encoding[ \t]*=[ \t]*"([^"\r\n]*)"', re.MULTILINE | re.IGNORECASE)
# Text encodings only: Python's codecs also hold compressors and such.
_TEXT_CODEC = re.compile(r"(?:utf-?8|windows-\d+|cp\d+|iso-?8859-\d+|gb\w+|big5\w*|shift_jis|euc-\w+|us-ascii)", re.I)
_NUMBER = re.compile(r"-?[0-9]{1,15}")
_ANY_OF = ("numvcpus", "memsize", "guestos", "displayname", "virtualhw.version")

_BUS = r"(?:scsi|sata|nvme|ide)[0-9]{1,3}"
_CONTROLLER = re.compile(rf"({_BUS})\.present")
_UNIT = re.compile(rf"({_BUS}):([0-9]{{1,3}})\.present")
_NIC = re.compile(r"(ethernet\d+)\.present")
_PASSED = re.compile(r"(pcipassthru\d+)\.present")
_PORT = re.compile(r"((serial|parallel)\d+)\.present")
_FLOPPY = re.compile(r"(floppy\d+)\.\w+")
_CAP = re.compile(r"(\d{1,12})\s*+(k|m|g)?\s*+(?:iops)?", re.IGNORECASE)
_CAP_FACTOR = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}

# What the inventory calls the types VMware writes.
_TYPES = {"lsisas1068": "lsilogicsas"}
_BUS_TYPES = {"sata": "ahci", "nvme": "nvme", "ide": "ide"}
# Advanced settings that change how the VM is scheduled and virtualised.
_KEPT_OPTIONS = ("numa.", "sched.", "monitor.")
_SHARING = {"multiwriter": "multi-writer", "sharingmultiwriter": "multi-writer", "sharingnone": "none"}
_USB_CONTROLLERS = ("usb", "ehci", "usb_xhci")
_USB_BUILT_IN = frozenset({"hid", "hub"})  # VMware's own mouse and hub, not something plugged in


def sniff(source: Source) -> int:
    """Sure by the version keys only VMware writes; by shape where the name says .vmx."""
    text = source.head_text
    if _MARK.search(text):
        return 95
    if _LIKELY.search(text):
        return 80 if source.name.lower().endswith((".vmx", ".vmtx")) else 50
    return 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only.

    Raises:
        InputError: a line is not ``key = "value"``, a number is none, or there is nothing of a VM in the file.
    """
    builder = CaptureBuilder(source.name, "vmx", META.tool)
    settings = _Settings(source.name, _parsed(source, request, builder))
    if not any(key in settings.values for key in _ANY_OF):
        raise InputError(
            source.name,
            found="no setting of a virtual machine",
            expected="a .vmx file with memsize, guestOS or displayName",
            advice="Copy the file again from the VM's folder.",
        )
    name = settings.text("displayname") or PurePosixPath(source.name.replace("!", "/").replace("\\", "/")).stem
    vm = Entity(EntityKind.VM, name)
    _add_machine(settings, vm, builder)
    _add_storage(settings, vm, builder)
    _add_nics(settings, vm, builder)
    _add_passed(settings, vm, builder)
    builder.inventory.add(vm, source.name, virtual_devices=list(_virtual_devices(settings)))
    return builder.build()


@dataclass(frozen=True, slots=True)
class _Settings:
    """Keys in lower case with their values and line numbers."""

    name: str
    values: dict[str, tuple[str, int]]

    def text(self, key: str) -> str | None:
        """The value, or None when it is missing or empty."""
        value = self.values.get(key, ("", 0))[0].strip()
        return value or None

    def flag(self, key: str, *, default: bool = False) -> bool:
        """TRUE or FALSE in any case; a value that is neither is the default, as for VMware."""
        return {"true": True, "false": False}.get((self.text(key) or "").casefold(), default)

    def number(self, key: str, least: int = 0) -> int | None:
        """A whole number of at least ``least``; None when missing, or a word for "no limit"."""
        text = self.text(key)
        if text is None or text.casefold() in {"unlimited", "off", "none", "-1"}:
            return None
        if _NUMBER.fullmatch(text) is None or int(text) < least:
            raise InputError(
                f"{self.name}:{self.values[key][1]}",
                found=f"{key} = {text[:40]!r}",
                expected=f"a whole number of at least {least}",
                advice="Put the value right in the file; VMware shows the right one in the VM's settings.",
            )
        return int(text)

    def matches(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Keys that match a pattern, in the order of the file."""
        return (match for key in self.values if (match := pattern.fullmatch(key)))


def _parsed(source: Source, request: Request, builder: CaptureBuilder) -> dict[str, tuple[str, int]]:
    text, encoding = _decoded(source, builder)
    lines = re.split(r"\r\n|\r|\n", text)  # str.splitlines would also split at characters that names may hold
    is_cut = bool(lines[-1].strip())  # VMware ends the last line
    while lines and not lines[-1].strip():
        lines.pop()
    values: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _SETTING.fullmatch(line)
        if match is None:
            if number == len(lines) and number > 1 and (is_cut or request.truncate_last):
                builder.warn("cut", f"line {number} is cut and was dropped: {line[:40]!r}")
                break
            raise InputError(
                f"{source.name}:{number}",
                found=repr(line[:60]),
                expected='key = "value"',
                advice="Copy the file again from the VM's folder, or put a # before the line.",
            )
        key = match[1].casefold()
        if key in values:
            builder.warn("twice", f"{match[1]} is set twice; the last one counts")
        values[key] = (_unescaped(match[2] if match[2] is not None else match[3], encoding), number)
    return values


def _decoded(source: Source, builder: CaptureBuilder) -> tuple[str, str]:
    """The text by the encoding the file declares, and that encoding; bytes that do not fit it are said."""
    raw = source.content()
    declared = _ENCODING.search(raw)
    name = declared[1].decode("ascii", errors="replace").strip() if declared else ""
    if not name or raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return source.text(), "utf-8"
    if _TEXT_CODEC.fullmatch(name):
        try:
            text = raw.removeprefix(b"\xef\xbb\xbf").decode(name, errors="replace")
        except LookupError:
            pass
        else:
            if "\ufffd" in text:
                builder.warn("encoding", f"some characters are not {name}; they are shown as \ufffd")
            return text, name
    builder.warn("encoding", f"the encoding {name[:40]!r} is not known; UTF-8 or Windows-1251 was assumed")
    return source.text(), "utf-8"


def _unescaped(value: str, encoding: str) -> str:
    """VMware writes quotes, pipes and control characters as ``|`` and two hexadecimal digits per byte."""

    def characters(escape: re.Match[str]) -> str:
        return bytes.fromhex(escape[0].replace("|", "")).decode(encoding, errors="replace")

    return _ESCAPED.sub(characters, value)


def _add_machine(settings: _Settings, vm: Entity, builder: CaptureBuilder) -> None:
    """vCPUs, memory, limits, reservations and scheduling of the VM itself."""
    vcpus = settings.number("numvcpus", 1) or 1  # not written where it is one
    memory = settings.number("memsize", 1)
    pinned = settings.flag("sched.mem.pin")
    facts: dict[str, Any] = {
        "vcpu_count": vcpus,
        "cores_per_socket": settings.number("cpuid.corespersocket") or None,  # 0: chosen at power-on
        "memory_mib": memory,
        "memory_limit_mib": settings.number("sched.mem.max"),
        "memory_reservation_mib": memory if pinned and memory else settings.number("sched.mem.min"),
        "memory_hot_add": settings.flag("mem.hotadd"),
        "hardware_version": settings.number("virtualhw.version"),
        "guest_os": settings.text("guestos"),
        "cpu_hot_add": settings.flag("vcpu.hotadd"),
        "latency_sensitivity": settings.text("sched.cpu.latencysensitivity"),
        "numa_node_affinity": settings.text("numa.nodeaffinity"),
        "cores_per_socket_automatic": True if settings.number("cpuid.corespersocket") == 0 else None,
        "changed_block_tracking": settings.flag("ctkenabled"),
        "cpu_virtualisation": _lower(settings.text("monitor.virtual_exec")),
        "mmu_virtualisation": _lower(settings.text("monitor.virtual_mmu")),
        "extra_config": {k: v[0] for k, v in settings.values.items() if k.startswith(_KEPT_OPTIONS)},
        "firmware": _lower(settings.text("firmware")),
        "memory_reservation_locked": pinned or None,
        "tools_sync_time": settings.flag("tools.synctime") if settings.text("tools.synctime") else None,
    }
    unit = (settings.text("sched.cpu.units") or "mhz").casefold()
    if unit == "mhz":
        facts["cpu_limit_mhz"] = settings.number("sched.cpu.max") or None  # 0 and "unlimited" are no limit
        facts["cpu_reservation_mhz"] = settings.number("sched.cpu.min")
    else:
        builder.warn("cpu-units", f"CPU limit and reservation are in {unit[:20]!r}, not MHz, and were left out")
    affinity = settings.text("sched.cpu.affinity")
    facts["cpu_affinity"] = None if affinity is None or affinity.casefold() in {"all", "default"} else affinity
    builder.inventory.add(vm, settings.name, **facts)
    _add_vnuma(settings, vm, vcpus, builder)


def _lower(text: str | None) -> str | None:
    return None if text is None else text.casefold()


def _add_passed(settings: _Settings, vm: Entity, builder: CaptureBuilder) -> None:
    """Physical devices given to the VM, and the vGPU profile: a share of a card, which is no card."""
    present = [match[1] for match in settings.matches(_PASSED) if settings.flag(match[0])]
    profiles = {name: profile for name in present if (profile := settings.text(f"{name}.vgpu")) is not None}
    builder.inventory.add(
        vm,
        settings.name,
        passthrough_devices=[name for name in present if name not in profiles],
        vgpu_profile=next(iter(profiles.values()), None),
    )


def _add_vnuma(settings: _Settings, vm: Entity, vcpus: int, builder: CaptureBuilder) -> None:
    chosen = settings.number("numa.vcpu.maxpervirtualnode", 1)
    sized = settings.number("numa.autosize.vcpu.maxpervirtualnode", 1)  # as found on the host of the last power-on
    width = chosen or sized
    if width:
        nodes = ceil(vcpus / width)
        builder.inventory.add(vm, settings.name, guessed=chosen is None, vnuma_node_count=nodes)


def _add_storage(settings: _Settings, vm: Entity, builder: CaptureBuilder) -> None:
    """Controllers and disks; whether a disk runs on a snapshot's delta file."""
    for match in settings.matches(_CONTROLLER):
        if settings.flag(match[0]):
            _add_adapter(settings, vm, match[1], builder)
    delta_count = disk_count = 0
    for adapter, unit in _units(settings):
        name = f"{adapter}:{unit}"
        file = settings.text(f"{name}.filename")
        if _is_cdrom(settings, name):
            continue
        disk_count += 1
        delta_count += bool(file and DELTA_FILE.search(file))
        _add_adapter(settings, vm, adapter, builder)
        builder.inventory.add(
            Entity(EntityKind.VIRTUAL_DISK, name, vm),
            settings.name,
            adapter=adapter,
            file=file,
            datastore=_datastore(file),
            mode=_lower(settings.text(f"{name}.mode")),
            sharing=_sharing(settings, name),
            iops_limit=_iops_limit(settings, name, builder),
        )
    if disk_count:
        builder.inventory.add(vm, settings.name, guessed=True, snapshot_count=int(delta_count > 0))


def _add_adapter(settings: _Settings, vm: Entity, name: str, builder: CaptureBuilder) -> None:
    kind = (settings.text(f"{name}.virtualdev") or "").casefold()
    bus = name.rstrip("0123456789")
    known = _TYPES.get(kind, kind) or _BUS_TYPES.get(bus)
    if known is None:
        builder.warn("no-type", f"the type of {name} is not in the file; VMware chooses it by guest system")
    builder.inventory.add(Entity(EntityKind.ADAPTER, name, vm), settings.name, type=known)
    if bus == "scsi":
        shared = _lower(settings.text(f"{name}.sharedbus"))
        builder.inventory.add(Entity(EntityKind.ADAPTER, name, vm), settings.name, bus_sharing=shared)


def _sharing(settings: _Settings, name: str) -> str | None:
    """Whether several VMs may write to a disk, by VMware's words for it; None where the file does not say."""
    text = _lower(settings.text(f"{name}.sharing"))
    return None if text is None else _SHARING.get(text, text)


def _units(settings: _Settings) -> Iterator[tuple[str, int]]:
    """Yield the devices of the storage controllers: (controller, unit number)."""
    for match in settings.matches(_UNIT):
        if settings.flag(match[0]) and settings.flag(f"{match[1]}.present", default=True):
            yield match[1], int(match[2])


def _is_cdrom(settings: _Settings, name: str) -> bool:
    kind = (settings.text(f"{name}.devicetype") or "").casefold()
    file = (settings.text(f"{name}.filename") or "").casefold()
    return "cdrom" in kind or (not kind and file.endswith(".iso"))


def _datastore(file: str | None) -> str | None:
    """The datastore in a path of ESXi; a bare file name lies in the VM's own folder, which the file does not name."""
    parts = PurePosixPath(file or "").parts
    return parts[3] if len(parts) > 4 and parts[:3] == ("/", "vmfs", "volumes") else None


def _iops_limit(settings: _Settings, name: str, builder: CaptureBuilder) -> float | None:
    text = settings.text(f"sched.{name}.throughputcap")
    if text is None or text.casefold() in {"off", "unlimited", "-1", "0"}:
        return None
    match = _CAP.fullmatch(text)
    if match is None:
        builder.warn("throughput-cap", f"the cap {text[:40]!r} of {name} is not in operations per second; left out")
        return None
    return float(int(match[1]) * _CAP_FACTOR[(match[2] or "").casefold()]) or None


def _add_nics(settings: _Settings, vm: Entity, builder: CaptureBuilder) -> None:
    for match in settings.matches(_NIC):
        if settings.flag(match[0]):
            kind = settings.text(f"{match[1]}.virtualdev")
            if kind is None:
                builder.warn("no-type", f"the type of {match[1]} is not in the file; VMware chooses it by guest system")
            builder.inventory.add(
                Entity(EntityKind.NIC, match[1], vm),
                settings.name,
                type=None if kind is None else kind.casefold(),
                connected=settings.flag(f"{match[1]}.startconnected", default=True),
                network=settings.text(f"{match[1]}.networkname"),
            )


def _virtual_devices(settings: _Settings) -> Iterator[dict[str, Any]]:
    """Devices a server does not need, as the inventory file writes them."""
    for floppy in dict.fromkeys(match[1] for match in settings.matches(_FLOPPY)):
        # Only the first drive is there by default.
        if settings.flag(f"{floppy}.present", default=floppy == "floppy0"):
            yield _device(settings, floppy, "floppy")
    for adapter, unit in _units(settings):
        if _is_cdrom(settings, f"{adapter}:{unit}"):
            yield _device(settings, f"{adapter}:{unit}", "cdrom")
    for match in settings.matches(_PORT):
        if settings.flag(match[0]):
            yield _device(settings, match[1], match[2])
    if settings.flag("sound.present"):
        yield _device(settings, "sound", "sound")
    for name in _USB_CONTROLLERS:
        if settings.flag(f"{name}.present"):
            yield {"name": name, "type": "usb", "connected": _has_usb_device(settings, name)}


def _device(settings: _Settings, name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "connected": settings.flag(f"{name}.startconnected", default=True)}


def _has_usb_device(settings: _Settings, controller: str) -> bool:
    plugged = re.compile(rf"({re.escape(controller)}:\d+)\.present")
    return any(
        settings.flag(match[0]) and (settings.text(f"{match[1]}.devicetype") or "").casefold() not in _USB_BUILT_IN
        for match in settings.matches(plugged)
    )
