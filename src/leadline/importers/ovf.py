"""OVF descriptors and OVA packages: how virtual machines were exported, or will be deployed.

Reads:
    ``.ovf`` of VMware, vCloud Director and VirtualBox, also inside an ``.ova``: vCPUs, memory, limits and reservations,
    storage controllers, disks, network adapters, other devices, hardware version. Every machine of a collection. Of
    several deployment configurations the default one counts; ``${property}`` in a disk's size is its default.

Sample:
    .. code-block:: xml

        <Disk ovf:capacity="${data-gb}" ovf:capacityAllocationUnits="byte * 2^30" ovf:diskId="vmdisk2"/>
        <Item>
          <rasd:Address>1</rasd:Address>
          <rasd:ElementName>SCSI controller 1</rasd:ElementName>
          <rasd:InstanceID>4</rasd:InstanceID>
          <rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType>
          <rasd:ResourceType>6</rasd:ResourceType>
        </Item>

Lost:
    Where disks will lie and how they will be provisioned: that is chosen at deployment. Ranges of permitted sizes
    (``ovf:bound``), start order, vApp properties, the caps of ``sched.*`` extra settings.

Units:
    Allocation units are written per item: ``byte * 2^20``, ``hertz * 10^6``, ``MegaBytes``. Limits and reservations of
    CPUs are MHz, of memory in the item's own unit; a disk without a unit counts bytes.

Sources:
    DMTF DSP0243, Open Virtualization Format specification, 8 (virtual hardware), 9.1 (disks), 9.8 (configurations).
    DMTF CIM_ResourceAllocationSettingData (ResourceType). VMware: OVF resource subtypes (VirtualSCSI, VmxNet3).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import PurePosixPath
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="OVF",
    marks=("envelope",),
    layers=(Layer.VM,),
    record="ovftool --noDisks vi://VCENTER/DATACENTER/vm/VM vm.ovf",
)

_MARK = re.compile(r"<(?:\w+:)?Envelope\b[^>]*http://(?:schemas\.dmtf\.org/ovf|www\.vmware\.com/schema/ovf)")
_UNIT = re.compile(r"(byte|hertz)s?\s*(?:\*\s*(2|10)\s*\^\s*([0-9]{1,2}))?", re.IGNORECASE)
_OLD_UNITS = {"bytes": 0, "kilobytes": 10, "megabytes": 20, "gigabytes": 30, "mb": 20, "gb": 30}
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
_PROPERTY = re.compile(r"\$\{([^}]{1,200})\}")
_HARDWARE = re.compile(r"\bvmx-0*([0-9]{1,3})\b", re.IGNORECASE)

CPU, MEMORY, IDE, SCSI, ETHERNET, DISK, OTHER_STORAGE = 3, 4, 5, 6, 10, 17, 20
_DEVICES = {14: "floppy", 15: "cdrom", 16: "cdrom", 21: "serial", 22: "parallel", 23: "usb", 35: "sound"}
_STORAGE = (IDE, SCSI, OTHER_STORAGE)
_ADAPTER_TYPES = {
    "virtualscsi": "pvscsi",
    "lsilogic": "lsilogic",
    "lsilogicsas": "lsilogicsas",
    "buslogic": "buslogic",
    "vmware.sata.ahci": "ahci",
    "ahci": "ahci",
    "vmware.nvme.controller": "nvme",
    "virtio-scsi": "virtio-scsi",
}
_BUSES = {"ahci": "sata", "nvme": "nvme"}


def sniff(source: Source) -> int:
    """Sure by the namespace of the envelope."""
    return 95 if _MARK.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only.

    Raises:
        InputError: it is not whole XML, has a document type, or holds no virtual machine with hardware.
    """
    del request
    builder = CaptureBuilder(source.name, "ovf", META.tool)
    root = _parsed(source)
    disks = _Disks(root, builder)
    has_machine = False
    for system in root.iter():
        hardware = _child(system, "VirtualHardwareSection") if _tag(system) == "VirtualSystem" else None
        if hardware is not None:
            has_machine = True
            name = _text(system, "Name") or _attribute(system, "id") or PurePosixPath(source.name).stem
            _Machine(builder, Entity(EntityKind.VM, name), disks).add(system, hardware, _configuration(root))
    if not has_machine:
        raise InputError(
            source.name,
            found="no virtual machine with hardware",
            expected="a VirtualSystem with a VirtualHardwareSection",
            advice="Export the machine again with ovftool or the client.",
        )
    return builder.build()


def _parsed(source: Source) -> ET.Element:
    text = source.text()
    if "<!DOCTYPE" in text:  # entities defined in a file may grow without bound; OVF has none
        raise InputError(
            source.name,
            found="a document type declaration",
            expected="an OVF envelope, which has none",
            advice="Export the machine again with ovftool or the client.",
        )
    try:
        return ET.fromstring(text)
    except (ET.ParseError, ValueError, LookupError) as error:
        line = getattr(error, "position", (1, 0))[0]
        raise InputError(
            f"{source.name}:{line}",
            found=f"XML that breaks ({str(error)[:80]})",
            expected="a whole OVF envelope",
            advice="Export or copy it again.",
        ) from error


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _child(parent: ET.Element, name: str) -> ET.Element | None:
    return next((child for child in parent if _tag(child) == name), None)


def _text(parent: ET.Element, name: str) -> str | None:
    child = _child(parent, name)
    return (child.text or "").strip() or None if child is not None else None


def _attribute(element: ET.Element, name: str) -> str | None:
    """An attribute by its name without namespace."""
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), None)


def _configuration(root: ET.Element) -> str | None:
    """The deployment configuration that is used unless another is chosen: the default one, else the first."""
    options = [element for element in root.iter() if _tag(element) == "Configuration" and _attribute(element, "id")]
    default = next((o for o in options if _attribute(o, "default") == "true"), options[0] if options else None)
    return None if default is None else _attribute(default, "id")


def _scale(unit: str | None) -> float | None:
    """Bytes or Hz of one unit; None where the unit is not known."""
    if unit is None:
        return 1.0
    old = _OLD_UNITS.get(unit.strip().casefold())
    match = _UNIT.fullmatch(unit.strip())
    if old is not None:
        return 2.0**old
    if match is None:
        return None
    return float(match[2]) ** int(match[3]) if match[2] else 1.0


@dataclass(frozen=True, slots=True)
class _Disk:
    size_gib: float | None
    file: str | None


class _Disks:
    """The disks of the envelope by their id, their sizes with properties filled in."""

    def __init__(self, root: ET.Element, builder: CaptureBuilder) -> None:
        self.by_id: dict[str, _Disk] = {}
        elements = list(root.iter())
        defaults = {_attribute(e, "key"): _attribute(e, "value") or "" for e in elements if _tag(e) == "Property"}
        files = {_attribute(e, "id"): _attribute(e, "href") for e in elements if _tag(e) == "File"}
        for element in elements:
            name = _attribute(element, "diskId") if _tag(element) == "Disk" else None
            if name is not None:
                capacity = _attribute(element, "capacity") or ""
                capacity = _PROPERTY.sub(lambda match: str(defaults.get(match[1], match[0])), capacity)
                scale = _scale(_attribute(element, "capacityAllocationUnits"))
                size = _number(capacity)
                if size is None or scale is None:
                    builder.warn("disk-size", "sizes of disks that are no numbers with a known unit were left out")
                gib = None if size is None or scale is None else size * scale / 2**30
                self.by_id[name] = _Disk(gib, files.get(_attribute(element, "fileRef")))

    def of(self, item: ET.Element) -> _Disk:
        """The disk an item stands for: ``ovf:/disk/ID``, or ``/disk/ID`` of old files."""
        resource = _text(item, "HostResource") or ""
        return self.by_id.get(resource.rpartition("/disk/")[2], _Disk(None, None))


def _number(text: str | None) -> float | None:
    match = _NUMBER.fullmatch((text or "").strip())
    value = float(match[0]) if match is not None else float("nan")
    return value if isfinite(value) else None


def _count(item: ET.Element, name: str) -> int | None:
    number = _number(_text(item, name))
    return int(number) if number is not None and number.is_integer() and number < 1e6 else None


class _Machine:
    """Adds one virtual machine to the inventory."""

    def __init__(self, builder: CaptureBuilder, vm: Entity, disks: _Disks) -> None:
        self.builder = builder
        self.vm = vm
        self.disks = disks

    def put(self, entity: Entity, **settings: Any) -> None:  # noqa: ANN401 - settings of any type
        self.builder.inventory.add(entity, self.builder.info.name, **settings)

    def add(self, system: ET.Element, hardware: ET.Element, configuration: str | None) -> None:
        items = list(_items(hardware, configuration))
        kind = _child(hardware, "System")
        match = _HARDWARE.search(_text(kind, "VirtualSystemType") or "") if kind is not None else None
        version = None if match is None else int(match[1])
        guest = _child(system, "OperatingSystemSection")
        os_name = None if guest is None else _attribute(guest, "osType") or _text(guest, "Description")
        self.put(self.vm, hardware_version=version, guest_os=os_name, **_options(hardware))
        adapters = self.add_adapters(items)
        for item in items:
            resource = _count(item, "ResourceType")
            if resource == CPU:
                self.add_cpus(item)
            elif resource == MEMORY:
                self.add_memory(item)
            elif resource == DISK:
                self.add_disk(item, adapters)
            elif resource == ETHERNET:
                self.add_nic(item)
        self.put(self.vm, virtual_devices=list(_devices(items)))

    def add_cpus(self, item: ET.Element) -> None:
        mhz = (_scale(_text(item, "AllocationUnits")) or 1e6) / 1e6
        limit, reservation = _number(_text(item, "Limit")), _number(_text(item, "Reservation"))
        self.put(
            self.vm,
            vcpu_count=_count(item, "VirtualQuantity"),
            cores_per_socket=_count(item, "CoresPerSocket") or None,
            cpu_limit_mhz=None if limit is None else limit * mhz,
            cpu_reservation_mhz=None if reservation is None else reservation * mhz,
            cpu_shares=_number(_text(item, "Weight")),
        )

    def add_memory(self, item: ET.Element) -> None:
        unit = _text(item, "AllocationUnits")
        scale = None if unit is None else _scale(unit)
        if scale is None:
            self.builder.warn("memory-unit", "memory without a known unit was left out")
            return
        sizes = {
            "memory_mib": _number(_text(item, "VirtualQuantity")),
            "memory_limit_mib": _number(_text(item, "Limit")),
            "memory_reservation_mib": _number(_text(item, "Reservation")),
        }
        facts = {name: None if size is None else size * scale / 2**20 for name, size in sizes.items()}
        self.put(self.vm, memory_shares=_number(_text(item, "Weight")), **facts)

    def add_adapters(self, items: list[ET.Element]) -> dict[str, str]:
        """Storage controllers; their names by the ids disks refer to."""
        names: dict[str, str] = {}
        for item in items:
            resource, instance_id = _count(item, "ResourceType"), _text(item, "InstanceID")
            if resource in _STORAGE and instance_id is not None:
                written = (_text(item, "ResourceSubType") or "").casefold().split()
                known = next((_ADAPTER_TYPES[word] for word in written if word in _ADAPTER_TYPES), None)
                if resource == IDE:
                    bus, known = "ide", "ide"
                else:
                    bus = _BUSES.get(known or "", "scsi" if resource == SCSI else "storage")
                if known is None:
                    self.builder.warn("no-type", "the type of a storage controller is not in the file")
                number = _count(item, "Address")
                if number is None:
                    number = sum(name.startswith(bus) for name in names.values())
                names[instance_id] = f"{bus}{number}"
                self.put(Entity(EntityKind.ADAPTER, names[instance_id], self.vm), type=known)
        return names

    def add_disk(self, item: ET.Element, adapters: dict[str, str]) -> None:
        adapter, unit = adapters.get(_text(item, "Parent") or ""), _text(item, "AddressOnParent")
        label = _text(item, "ElementName") or _text(item, "Caption")
        name = label if adapter is None or unit is None else f"{adapter}:{unit}"
        if name is not None:
            disk = self.disks.of(item)
            entity = Entity(EntityKind.VIRTUAL_DISK, name, self.vm)
            self.put(entity, label=label, adapter=adapter, size_gib=disk.size_gib, file=disk.file)

    def add_nic(self, item: ET.Element) -> None:
        name = _text(item, "ElementName") or f"Network adapter {_text(item, 'InstanceID')}"
        kind = _text(item, "ResourceSubType")
        if kind is None:
            self.builder.warn("no-type", "the type of a network adapter is not in the file")
        self.put(
            Entity(EntityKind.NIC, name, self.vm),
            type=None if kind is None else kind.casefold().split()[0],
            connected=_flag(_text(item, "AutomaticAllocation")),
            network=_text(item, "Connection"),
        )


def _items(hardware: ET.Element, configuration: str | None) -> Iterator[ET.Element]:
    """The items of the default configuration; one of a configuration replaces the general one of the same id."""
    kept: dict[str, ET.Element] = {}
    for index, item in enumerate(hardware):
        chosen = (_attribute(item, "configuration") or "").split()
        if _tag(item) not in {"Item", "StorageItem", "EthernetPortItem"} or _attribute(item, "bound") is not None:
            continue
        if not chosen or configuration in chosen:
            kept[_text(item, "InstanceID") or f"item {index}"] = item
    yield from kept.values()


def _options(hardware: ET.Element) -> dict[str, Any]:
    """Settings VMware writes beside the items."""
    written: dict[str, str] = {}
    for element in hardware:
        if _tag(element) in {"Config", "ExtraConfig"}:
            written[_attribute(element, "key") or ""] = _attribute(element, "value") or ""
    return {
        "cpu_hot_add": _flag(written.get("cpuHotAddEnabled")),
        "memory_hot_add": _flag(written.get("memoryHotAddEnabled")),
        "firmware": written.get("firmware") or None,
        "tools_sync_time": _flag(written.get("tools.syncTimeWithHost")),
        "latency_sensitivity": written.get("sched.cpu.latencySensitivity") or None,
    }


def _flag(text: str | None) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get((text or "").strip().casefold())


def _devices(items: list[ET.Element]) -> Iterator[dict[str, Any]]:
    """Devices a server does not need, as the inventory file writes them; connected as far as the file says."""
    for item in items:
        kind = _DEVICES.get(_count(item, "ResourceType") or 0)
        if kind is not None:
            name = _text(item, "ElementName") or f"{kind} {_text(item, 'InstanceID')}"
            yield {"name": name, "type": kind, "connected": _flag(_text(item, "AutomaticAllocation"))}
