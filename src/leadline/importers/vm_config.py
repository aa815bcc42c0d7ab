"""The configuration of virtual machines as vCenter's API prints it in JSON.

Reads:
    JSON of the vSphere API's ``VirtualMachineConfigInfo`` with type names: one such object, a list of them, an object
    with ``config``, or the ``virtualMachines`` of ``govc vm.info -json``.

Sample:
    .. code-block:: json

        {"_typeName": "VirtualMachineConfigInfo", "name": "db01", "version": "vmx-20",
         "hardware": {"numCPU": 8, "numCoresPerSocket": 4, "memoryMB": 32768, "device": [
           {"_typeName": "ParaVirtualSCSIController", "key": 1001, "busNumber": 1},
           {"_typeName": "VirtualDisk", "key": 2016, "controllerKey": 1001, "unitNumber": 0,
            "capacityInBytes": 107374182400, "backing": {"fileName": "[ds1] db01/db01-000002.vmdk",
            "thinProvisioned": false, "eagerlyScrub": true}}]},
         "cpuAllocation": {"limit": -1, "reservation": 0, "shares": {"shares": 8000, "level": "normal"}}}

Lost:
    What the machine is doing (power state, tools status, snapshots are not part of its configuration): a disk file
    named ``-000002.vmdk`` only tells that there is at least one snapshot. Extra settings.

Units:
    ``memoryMB`` and memory limits are MiB, CPU limits MHz, a disk's ``limit`` operations per second; -1 is no limit.

Sources:
    VMware vSphere Web Services API reference: VirtualMachineConfigInfo, VirtualHardware, VirtualDevice,
    ResourceAllocationInfo, StorageIOAllocationInfo, VirtualDiskFlatVer2BackingInfo.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.estate.knowledge.virtual_disks import DELTA_FILE

META = ImporterMeta(
    tool="vSphere VM configuration",
    marks=('"_typename"',),
    layers=(Layer.VM,),
    record="govc vm.info -json VM > vm.json",
)

_MARK = re.compile(r'"_typeName"\s*:\s*"(?:VirtualMachineConfigInfo|VirtualHardware)"')
_HARDWARE = re.compile(r"vmx-0*([0-9]{1,3})")
_CONTROLLERS = {
    "ParaVirtualSCSIController": ("scsi", "pvscsi"),
    "VirtualLsiLogicController": ("scsi", "lsilogic"),
    "VirtualLsiLogicSASController": ("scsi", "lsilogicsas"),
    "VirtualBusLogicController": ("scsi", "buslogic"),
    "VirtualAHCIController": ("sata", "ahci"),
    "VirtualNVMEController": ("nvme", "nvme"),
    "VirtualIDEController": ("ide", "ide"),
}
_NICS = {
    "VirtualVmxnet3": "vmxnet3",
    "VirtualVmxnet2": "vmxnet2",
    "VirtualE1000": "e1000",
    "VirtualE1000e": "e1000e",
    "VirtualPCNet32": "pcnet32",
    "VirtualSriovEthernetCard": "sriov",
}
_DEVICES = {
    "VirtualFloppy": "floppy",
    "VirtualCdrom": "cdrom",
    "VirtualSerialPort": "serial",
    "VirtualParallelPort": "parallel",
    "VirtualUSBController": "usb",
    "VirtualUSBXHCIController": "usb",
}
_SHARING = {"sharingNone": "none", "sharingMultiWriter": "multi-writer"}


def sniff(source: Source) -> int:
    """Sure by the API's type names in JSON."""
    text = source.head_text
    return 95 if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and _MARK.search(text) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only.

    Raises:
        InputError: it is not whole JSON, or holds no configuration of a machine.
    """
    del request
    builder = CaptureBuilder(source.name, "vm-config", META.tool)
    has_machine = False
    for config in _configurations(_document(source)):
        has_machine = True
        _add(config, builder)
    if not has_machine:
        raise InputError(
            source.name,
            found="no configuration of a named machine",
            expected="VirtualMachineConfigInfo with name and hardware",
            advice="Record it again with `govc vm.info -json VM`.",
        )
    return builder.build()


def _document(source: Source) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(source.text().lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{source.name}:{getattr(error, 'lineno', 1)}",
            found=f"JSON that breaks ({str(error)[:80]})",
            expected="a whole JSON document",
            advice="Record or copy it again.",
        ) from error


def _configurations(document: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    for item in document if isinstance(document, list) else [document]:
        fields = _map(item)
        if isinstance(fields.get("hardware"), dict) and isinstance(fields.get("name"), str) and fields["name"]:
            yield fields
        elif "config" in fields:
            yield from _configurations(fields["config"])
        elif isinstance(fields.get("virtualMachines"), list):
            yield from _configurations(fields["virtualMachines"])


def _map(value: Any) -> dict[str, Any]:  # noqa: ANN401
    return value if isinstance(value, dict) else {}


def _number(value: Any, least: float = 0.0) -> float | None:  # noqa: ANN401
    """A number of at least ``least``; None otherwise, which is how the API says "no limit" (-1)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1e18 and isfinite(value) and value >= least else None


def _count(value: Any, least: int = 0) -> int | None:  # noqa: ANN401
    number = _number(value, least)
    return int(number) if number is not None and float(number).is_integer() else None


def _flag(value: Any) -> bool | None:  # noqa: ANN401
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str | None:  # noqa: ANN401
    return value if isinstance(value, str) and value else None


def _add(config: dict[str, Any], builder: CaptureBuilder) -> None:
    hardware = config["hardware"]
    cpu, memory = _map(config.get("cpuAllocation")), _map(config.get("memoryAllocation"))
    version = _HARDWARE.fullmatch(_text(config.get("version")) or "")
    vm = Entity(EntityKind.VM, config["name"])
    builder.inventory.add(
        vm,
        builder.info.name,
        vcpu_count=_count(hardware.get("numCPU"), 1),
        cores_per_socket=_count(hardware.get("numCoresPerSocket"), 1),
        memory_mib=_number(hardware.get("memoryMB")),
        hardware_version=None if version is None else int(version[1]),
        guest_os=_text(config.get("guestId")),
        template=_flag(config.get("template")),
        firmware=_text(config.get("firmware")),
        cpu_hot_add=_flag(config.get("cpuHotAddEnabled")),
        memory_hot_add=_flag(config.get("memoryHotAddEnabled")),
        cpu_limit_mhz=_number(cpu.get("limit")),
        cpu_reservation_mhz=_number(cpu.get("reservation")),
        cpu_shares=_number(_map(cpu.get("shares")).get("shares")),
        memory_limit_mib=_number(memory.get("limit")),
        memory_reservation_mib=_number(memory.get("reservation")),
        memory_shares=_number(_map(memory.get("shares")).get("shares")),
        memory_reservation_locked=_flag(config.get("memoryReservationLockedToMax")),
        latency_sensitivity=_text(_map(config.get("latencySensitivity")).get("level")),
        tools_sync_time=_flag(_map(config.get("tools")).get("syncTimeWithHost")),
    )
    devices = hardware.get("device")
    _add_devices(vm, [d for d in devices if isinstance(d, dict)] if isinstance(devices, list) else [], builder)


def _add_devices(vm: Entity, devices: list[dict[str, Any]], builder: CaptureBuilder) -> None:
    """Controllers, disks, network adapters and the rest; whether a disk runs on a snapshot's delta file."""
    adapters: dict[int, str] = {}
    for device in devices:
        known = _CONTROLLERS.get(str(device.get("_typeName")))
        bus, key = _count(device.get("busNumber")), _count(device.get("key"))
        if known is not None and bus is not None and key is not None:
            adapters[key] = f"{known[0]}{bus}"
            builder.inventory.add(Entity(EntityKind.ADAPTER, adapters[key], vm), builder.info.name, type=known[1])
    files = []
    others = []
    for device in devices:
        kind = str(device.get("_typeName"))
        label = _text(_map(device.get("deviceInfo")).get("label"))
        connection = _map(device.get("connectable"))
        if kind == "VirtualDisk":
            files.append(_add_disk(vm, device, adapters, builder))
        elif kind in _NICS:
            builder.inventory.add(
                Entity(EntityKind.NIC, label or f"{kind} {device.get('key')}", vm),
                builder.info.name,
                type=_NICS[kind],
                connected=_flag(connection.get("startConnected")),
                network=_text(_map(device.get("backing")).get("deviceName")),
            )
        elif kind in _DEVICES:
            connected = _flag(connection.get("startConnected"))
            others.append({"name": label or kind, "type": _DEVICES[kind], "connected": connected})
    builder.inventory.add(vm, builder.info.name, virtual_devices=others)
    if files:
        delta = any(file is not None and DELTA_FILE.search(file) for file in files)
        builder.inventory.add(vm, builder.info.name, guessed=True, snapshot_count=int(delta))


def _add_disk(vm: Entity, device: dict[str, Any], adapters: dict[int, str], builder: CaptureBuilder) -> str | None:
    """Add a disk; returns its file."""
    backing, allocation = _map(device.get("backing")), _map(device.get("storageIOAllocation"))
    label = _text(_map(device.get("deviceInfo")).get("label"))
    adapter, unit = adapters.get(_count(device.get("controllerKey")) or -1), _count(device.get("unitNumber"))
    name = label if adapter is None or unit is None else f"{adapter}:{unit}"
    file = _text(backing.get("fileName"))
    size, size_kib = _number(device.get("capacityInBytes")), _number(device.get("capacityInKB"))
    size = size_kib * 1024 if size is None and size_kib is not None else size
    thin, scrubbed = _flag(backing.get("thinProvisioned")), _flag(backing.get("eagerlyScrub"))
    thick = None if thin is None or scrubbed is None else ("thick-eager" if scrubbed else "thick-lazy")
    builder.inventory.add(
        Entity(EntityKind.VIRTUAL_DISK, name or f"disk {device.get('key')}", vm),
        builder.info.name,
        label=label,
        adapter=adapter,
        size_gib=None if size is None else size / 2**30,
        provisioning="thin" if thin else thick,
        mode=_text(backing.get("diskMode")),
        raw_device="lunUuid" in backing,
        sharing=_SHARING.get(str(backing.get("sharing"))),
        iops_limit=_number(allocation.get("limit"), 1),
        shares=_number(_map(allocation.get("shares")).get("shares")),
        file=file,
        datastore=file[1:].partition("]")[0] if file is not None and file.startswith("[") else None,
    )
    return file
