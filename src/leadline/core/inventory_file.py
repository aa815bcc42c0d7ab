"""The inventory file: what the user knows about hosts, VMs, disks and databases, in YAML.

Every name is also the setting's name in the inventory; ``docs/guides/inventory.md`` shows a whole file.
"""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leadline.core.entities import Entity, Inventory
from leadline.core.errors import InputError
from leadline.core.vocabulary import EntityKind, Role


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="name as the tools print it")

    def settings(self) -> dict[str, Any]:
        """What is set, without the name and the parts that are entities of their own."""
        return {
            key: value.value if isinstance(value, Role) else value
            for key, value in self
            if key != "name" and not isinstance(value, list)
        }


class AdapterPart(_Part):
    """A virtual storage controller."""

    type: str | None = Field(None, description="pvscsi, lsilogic, lsilogicsas, buslogic, nvme, ahci, ide, virtio-scsi")


class DiskPart(_Part):
    """A virtual disk."""

    adapter: str | None = Field(None, description="the controller it hangs on")
    role: Role | None = Field(None, description="what the database keeps on it")
    size_gib: float | None = Field(None, gt=0)
    provisioning: str | None = Field(None, description="thin, thick-lazy, thick-eager")
    iops_limit: float | None = Field(None, gt=0, description="limit set on the disk, in operations per second")
    datastore: str | None = None
    file: str | None = Field(None, description="the disk's file, which a snapshot renames")
    device: str | None = Field(None, description="the LUN behind it, as the hypervisor names it")


class NicPart(_Part):
    """A virtual network adapter."""

    type: str | None = Field(None, description="vmxnet3, e1000, e1000e, virtio-net")
    connected: bool | None = None


class VirtualDevicePart(_Part):
    """Another virtual device: floppy, cdrom, serial, parallel, usb, sound."""

    type: str
    connected: bool | None = None


class VmPart(_Part):
    """A virtual machine."""

    guest: str | None = Field(None, description="host name inside, when it differs from the VM's name")
    vcpu_count: int | None = Field(None, gt=0)
    cores_per_socket: int | None = Field(None, gt=0)
    vnuma_node_count: int | None = Field(None, gt=0)
    memory_mib: float | None = Field(None, gt=0)
    cpu_limit_mhz: float | None = None
    cpu_reservation_mhz: float | None = None
    memory_limit_mib: float | None = None
    memory_reservation_mib: float | None = None
    hardware_version: int | None = None
    guest_os: str | None = None
    cpu_hot_add: bool | None = None
    memory_hot_add: bool | None = None
    cpu_affinity: str | None = None
    numa_node_affinity: str | None = None
    latency_sensitivity: str | None = None
    snapshot_count: int | None = Field(None, ge=0)
    snapshot_age_days: float | None = Field(None, ge=0)
    adapters: list[AdapterPart] = []
    disks: list[DiskPart] = []
    nics: list[NicPart] = []
    virtual_devices: list[VirtualDevicePart] | None = Field(None, description="an empty list says there are none")


class DevicePart(_Part):
    """A LUN or local disk as the hypervisor names it."""

    role: Role | None = None
    medium: str | None = Field(None, description="flash or hdd")


class HostPart(_Part):
    """A hypervisor host."""

    version: str | None = None
    socket_count: int | None = Field(None, gt=0)
    core_count: int | None = Field(None, gt=0)
    thread_count: int | None = Field(None, gt=0)
    numa_node_count: int | None = Field(None, gt=0)
    memory_mib: float | None = Field(None, gt=0)
    cpu_mhz: float | None = Field(None, gt=0)
    power_policy: str | None = None
    devices: list[DevicePart] = []
    vms: list[VmPart] = []


class BlockDevicePart(_Part):
    """A disk as the guest names it."""

    role: Role | None = None
    mount: str | None = None
    filesystem: str | None = None
    medium: str | None = Field(None, description="flash or hdd")
    virtual_disk: str | None = Field(None, description="the VM's disk it is")


class DatabasePart(_Part):
    """A database instance."""

    engine: str | None = Field(None, description="postgresql, sqlserver, oracle, iris")
    version: str | None = None
    data_device: str | None = None
    wal_device: str | None = None


class GuestPart(_Part):
    """An operating system as seen from inside."""

    cpu_count: int | None = Field(None, gt=0)
    memory_mib: float | None = Field(None, gt=0)
    guest_os: str | None = None
    devices: list[BlockDevicePart] = []
    databases: list[DatabasePart] = []


class InventoryFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid")

    leadline_inventory: int = Field(1, ge=1, le=1, description="version of this format")
    hosts: list[HostPart] = []
    vms: list[VmPart] = Field([], description="VMs whose host is not known")
    guests: list[GuestPart] = []


def parse_inventory(text: str, name: str) -> Inventory:
    """The inventory a YAML text describes.

    Raises:
        InputError: it is not YAML, or a key or value is not one of the format.
    """
    try:
        loaded = yaml.safe_load(text)
        document = InventoryFile.model_validate({} if loaded is None else loaded)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = name if mark is None else f"{name}:{mark.line + 1}"
        raise InputError(
            where,
            found=f"not YAML ({getattr(error, 'problem', None) or 'unreadable'})",
            expected="an inventory file",
            advice="See the guide on inventories for a whole example.",
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "top level"
        raise InputError(
            f"{name}: {place}",
            found=first["msg"].lower(),
            expected="a key and value of the inventory format",
            advice="See the guide on inventories for a whole example.",
        ) from error
    return _inventory_of(document, name)


def _inventory_of(document: InventoryFile, source: str) -> Inventory:
    inventory = Inventory()
    for host in document.hosts:
        entity = inventory.add(Entity(EntityKind.HOST, host.name), source, **host.settings())
        _add_parts(inventory, host.devices, EntityKind.DEVICE, entity, source)
        for vm in host.vms:
            _add_vm(inventory, vm, entity, source)
    for vm in document.vms:
        _add_vm(inventory, vm, None, source)
    for guest in document.guests:
        entity = inventory.add(Entity(EntityKind.GUEST, guest.name), source, **guest.settings())
        _add_parts(inventory, guest.devices, EntityKind.BLOCK_DEVICE, entity, source)
        _add_parts(inventory, guest.databases, EntityKind.DATABASE, entity, source)
        for database in guest.databases:
            for device, role in ((database.data_device, Role.DATA), (database.wal_device, Role.WAL)):
                if device is not None:
                    inventory.add(Entity(EntityKind.BLOCK_DEVICE, device, entity), source, role=role.value)
    return inventory


def _add_vm(inventory: Inventory, vm: VmPart, host: Entity | None, source: str) -> None:
    entity = inventory.add(Entity(EntityKind.VM, vm.name, host), source, **vm.settings())
    _add_parts(inventory, vm.adapters, EntityKind.ADAPTER, entity, source)
    _add_parts(inventory, vm.disks, EntityKind.VIRTUAL_DISK, entity, source)
    _add_parts(inventory, vm.nics, EntityKind.NIC, entity, source)
    if vm.virtual_devices is not None:
        devices = [part.model_dump() for part in vm.virtual_devices]
        inventory.add(entity, source, virtual_devices=devices)
    if vm.guest is not None:
        inventory.links[inventory.add(Entity(EntityKind.GUEST, vm.guest), source)] = entity


def _add_parts(inventory: Inventory, parts: list[Any], kind: EntityKind, parent: Entity, source: str) -> None:
    for part in parts:
        inventory.add(Entity(kind, part.name, parent), source, **part.settings())
