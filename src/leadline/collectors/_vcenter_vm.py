"""A VM as vCenter describes it: its own settings, controllers, disks, network adapters and other devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from math import ceil
from typing import Any

from leadline.collectors._vcenter_estate import KIB_PER_GIB, S_PER_DAY, VcenterInventory, limit_of, word
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import id_of, kind, of

PROPERTIES = [
    *("name", "runtime.host", "runtime.powerState", "runtime.bootTime", "runtime.consolidationNeeded"),
    *("runtime.minRequiredEVCModeKey", "snapshot", "config.template", "config.hardware", "config.version"),
    *("config.guestFullName", "config.cpuHotAddEnabled", "config.memoryHotAddEnabled", "config.latencySensitivity"),
    *("config.cpuAllocation", "config.memoryAllocation", "config.memoryReservationLockedToMax", "config.cpuAffinity"),
    *("config.extraConfig", "config.numaInfo", "config.flags", "config.firmware", "config.tools.syncTimeWithHost"),
    *("config.changeTrackingEnabled", "config.swapPlacement", "config.files.vmPathName", "config.instanceUuid"),
    *("guest.hostName", "guest.guestFullName", "guest.toolsVersion", "guest.toolsRunningStatus"),
    *("guest.toolsVersionStatus", "guest.toolsVersionStatus2"),
]
_CONTROLLERS = {
    "ParaVirtualSCSIController": ("pvscsi", "scsi"),
    "VirtualLsiLogicController": ("lsilogic", "scsi"),
    "VirtualLsiLogicSASController": ("lsilogicsas", "scsi"),
    "VirtualBusLogicController": ("buslogic", "scsi"),
    "VirtualNVMEController": ("nvme", "nvme"),
    "VirtualAHCIController": ("ahci", "sata"),
    "VirtualIDEController": ("ide", "ide"),
}
_NICS = {
    "VirtualVmxnet3": "vmxnet3",
    "VirtualVmxnet3Vrdma": "vmxnet3",
    "VirtualVmxnet2": "vmxnet2",
    "VirtualE1000": "e1000",
    "VirtualE1000e": "e1000e",
    "VirtualPCNet32": "pcnet32",
    "VirtualSriovEthernetCard": "sriov",
}
_OTHERS = {
    "VirtualFloppy": "floppy",
    "VirtualCdrom": "cdrom",
    "VirtualSerialPort": "serial",
    "VirtualParallelPort": "parallel",
    "VirtualUSBController": "usb",
    "VirtualUSBXHCIController": "usb",
    "VirtualHdAudioCard": "sound",
    "VirtualEnsoniq1371": "sound",
    "VirtualSoundBlaster16": "sound",
}
_PHYSICAL = frozenset({"VirtualPCIPassthrough", "VirtualSriovEthernetCard"})
_POWER = {"poweredOn": "on", "poweredOff": "off"}
_SWAP = {"vmDirectory": "vm-directory", "hostLocal": "host-local"}
_SHARING = {"sharingNone": "none", "sharingMultiWriter": "multi-writer"}
_BUS_SHARING = {"noSharing": "none", "virtualSharing": "virtual", "physicalSharing": "physical"}
_EXEC = {"hvAuto": "automatic", "hvOn": "hardware", "hvOff": "software"}
_MMU = {"on": "hardware", "off": "software"}
# Of the hundred lines a .vmx file may hold, those that change how the VM is scheduled and virtualised.
_KEPT_OPTIONS = ("numa.", "sched.", "monitor.", "cpuid.numsmt")
_WIDTHS = ("numa.vcpu.maxpervirtualnode", "numa.autosize.vcpu.maxpervirtualnode")
_DATASTORE_FILE = re.compile(r"^\[(.+?)\] (.+)$")
# The files a snapshot makes: deltas of disks, and the state and memory of the VM.
_SNAPSHOT_FILE = re.compile(r"-[0-9]{6}(?:-delta|-sesparse)?\.vmdk$|\.vmsn$|-Snapshot[0-9]+\.vmem$", re.IGNORECASE)


def add_vm(estate: VcenterInventory, properties: dict[str, Any], now: datetime) -> Entity:
    """A VM with all its parts, from its properties; ages are counted to ``now`` (with a time zone).

    Source: vSphere Web Services API reference, VirtualMachineConfigInfo, VirtualMachineRuntimeInfo, GuestInfo.
    """
    runs_on = properties.get("runtime.host")
    vm = Entity(EntityKind.VM, properties["name"], None if runs_on is None else estate.hosts.get(id_of(runs_on)))
    hardware = properties.get("config.hardware")
    devices = list(of(hardware, "device") or [])
    estate.add(vm, **_settings_of(properties, hardware), **_state(properties, now))
    _add_options(estate, vm, properties)
    _add_snapshots(estate, vm, properties.get("snapshot"), now)
    _add_devices(estate, devices, vm)
    hostname = properties.get("guest.hostName")
    if hostname:
        estate.inventory.links[estate.add(Entity(EntityKind.GUEST, hostname))] = vm
    return vm


def add_snapshot_size(estate: VcenterInventory, vm: Entity, files: Any) -> None:  # noqa: ANN401
    """How large the files of a VM's snapshots are, from ``layoutEx.file``.

    Source: vSphere Web Services API reference, VirtualMachineFileLayoutExFileInfo (``size`` in bytes).
    """
    sizes = [file.size for file in files or () if _SNAPSHOT_FILE.search(file.name or "") and file.size is not None]
    estate.add(vm, snapshot_size_gib=sum(sizes) / 1024.0**3 if sizes else None)


def _settings_of(properties: dict[str, Any], hardware: Any) -> dict[str, Any]:  # noqa: ANN401
    cpu, memory = properties.get("config.cpuAllocation"), properties.get("config.memoryAllocation")
    flags = properties.get("config.flags")
    version = re.search(r"\d+", properties.get("config.version") or "")
    vcpus, per_socket = of(hardware, "numCPU"), of(hardware, "numCoresPerSocket")
    place = _DATASTORE_FILE.match(properties.get("config.files.vmPathName") or "")
    pinned = of(properties.get("config.cpuAffinity"), "affinitySet")
    return {
        "vcpu_count": vcpus,
        "cores_per_socket": per_socket,
        "cores_per_socket_automatic": of(hardware, "autoCoresPerSocket"),
        "socket_count": ceil(vcpus / per_socket) if vcpus and per_socket else None,
        "memory_mib": of(hardware, "memoryMB"),
        "hardware_version": int(version[0]) if version else None,
        "guest_os": properties.get("config.guestFullName"),
        "cpu_hot_add": properties.get("config.cpuHotAddEnabled"),
        "memory_hot_add": properties.get("config.memoryHotAddEnabled"),
        "latency_sensitivity": of(properties.get("config.latencySensitivity"), "level"),
        "cpu_limit_mhz": limit_of(cpu),
        "cpu_reservation_mhz": of(cpu, "reservation"),
        "cpu_shares": of(cpu, "shares.shares"),
        "memory_limit_mib": limit_of(memory),
        "memory_reservation_mib": of(memory, "reservation"),
        "memory_shares": of(memory, "shares.shares"),
        "memory_reservation_locked": properties.get("config.memoryReservationLockedToMax"),
        "cpu_affinity": ",".join(str(cpu) for cpu in pinned) if pinned else None,
        "firmware": properties.get("config.firmware"),
        "uuid": properties.get("config.instanceUuid") or None,
        "changed_block_tracking": properties.get("config.changeTrackingEnabled"),
        "swap_placement": word(properties.get("config.swapPlacement"), _SWAP),
        "config_datastore": place[1] if place else None,
        "cpu_virtualisation": word(of(flags, "virtualExecUsage"), _EXEC),
        "mmu_virtualisation": word(of(flags, "virtualMmuUsage"), _MMU),
        "vnuma_with_hot_add": of(properties.get("config.numaInfo"), "vnumaOnCpuHotaddExposed"),
        "tools_sync_time": properties.get("config.tools.syncTimeWithHost"),
    }


def _state(properties: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return the settings that change while the VM runs."""
    power, booted = word(properties.get("runtime.powerState"), _POWER), properties.get("runtime.bootTime")
    tools = properties.get("guest.toolsVersion")
    return {
        "power_state": power,
        # Of a VM that is off vCenter may still tell when it was last started.
        "uptime_days": (now - booted).total_seconds() / S_PER_DAY if booted is not None and power == "on" else None,
        "disk_consolidation_needed": properties.get("runtime.consolidationNeeded"),
        "evc_mode": properties.get("runtime.minRequiredEVCModeKey") or None,
        "guest_os_reported": properties.get("guest.guestFullName") or None,
        "tools_version": None if tools in (None, "", "0") else tools,
        "tools_running_status": properties.get("guest.toolsRunningStatus"),
        # The second tells old from too old and is there since vSphere 5.0.
        "tools_version_status": properties.get("guest.toolsVersionStatus2")
        or properties.get("guest.toolsVersionStatus"),
    }


def _add_options(estate: VcenterInventory, vm: Entity, properties: dict[str, Any]) -> None:
    """Advanced settings, and the virtual NUMA nodes that follow from them."""
    options = properties.get("config.extraConfig")
    if options is None:
        return
    kept = {str(o.key): str(o.value) for o in options if str(o.key).casefold().startswith(_KEPT_OPTIONS)}
    lower = {key.casefold(): value.strip() for key, value in kept.items()}
    estate.add(vm, extra_config=kept, numa_node_affinity=lower.get("numa.nodeaffinity") or None)
    vcpus = of(properties.get("config.hardware"), "numCPU")
    width = of(properties.get("config.numaInfo"), "coresPerNumaNode")
    if width and vcpus:
        estate.add(vm, vnuma_node_count=ceil(vcpus / width))
        return
    written = next((lower[key] for key in _WIDTHS if lower.get(key, "").isdecimal() and int(lower[key]) > 0), None)
    if written and vcpus:
        # As it was found at the last power-on; the host may be another one now.
        guessed = not lower.get(_WIDTHS[0])
        estate.add(vm, guessed=guessed, vnuma_node_count=ceil(vcpus / int(written)))


def _add_snapshots(estate: VcenterInventory, vm: Entity, info: Any, now: datetime) -> None:  # noqa: ANN401
    snapshots = list(_snapshots(of(info, "rootSnapshotList") or [], 1))
    ages: dict[str, float] = {}
    for number, (snapshot, _) in enumerate(snapshots, 1):
        name = snapshot.name or f"snapshot {number}"
        age = (now - snapshot.createTime).total_seconds() / S_PER_DAY
        ages[name if name not in ages else f"{name} ({number})"] = max(age, 0.0)
    estate.add(
        vm,
        snapshot_count=len(snapshots),
        snapshot_chain_count=max((depth for _, depth in snapshots), default=0),
        snapshot_ages_days=ages or None,
        snapshot_age_days=max(ages.values(), default=None),
    )


def _snapshots(trees: Any, depth: int) -> Iterator[tuple[Any, int]]:  # noqa: ANN401
    """Every snapshot with how many are on top of each other down to it; not recursive, chains can be long."""
    waiting = [(tree, depth) for tree in trees]
    while waiting:
        snapshot, depth = waiting.pop()
        yield snapshot, depth
        waiting.extend((child, depth + 1) for child in snapshot.childSnapshotList or [])


def _add_devices(estate: VcenterInventory, devices: list[Any], vm: Entity) -> None:
    names: dict[int, str] = {}
    for device in devices:
        if kind(device) in _CONTROLLERS:
            type_name, bus = _CONTROLLERS[kind(device)]
            names[device.key] = f"{bus}{device.busNumber}"
            adapter = Entity(EntityKind.ADAPTER, names[device.key], vm)
            estate.add(adapter, type=type_name, bus_sharing=word(of(device, "sharedBus"), _BUS_SHARING))
    for device in devices:
        if kind(device) in _NICS:
            _add_nic(estate, device, vm)
        elif kind(device) == "VirtualDisk":
            _add_disk(estate, device, names.get(device.controllerKey), vm)
    cards = [device for device in devices if kind(device) in _PHYSICAL]
    profiles = [profile for device in cards if (profile := of(device, "backing.vgpu"))]
    estate.add(
        vm,
        virtual_devices=[_other(device) for device in devices if kind(device) in _OTHERS],
        # A vGPU is a share of a card, not the card; SR-IOV adapters are among the network adapters too.
        passthrough_devices=[_label(device) for device in cards if not of(device, "backing.vgpu")],
        vgpu_profile=profiles[0] if profiles else None,
    )


def _add_nic(estate: VcenterInventory, device: Any, vm: Entity) -> None:  # noqa: ANN401
    group = of(device, "backing.port.portgroupKey")
    estate.add(
        Entity(EntityKind.NIC, of(device, "deviceInfo.label") or f"nic{device.key}", vm),
        type=_NICS[kind(device)],
        connected=of(device, "connectable.connected"),
        network=of(device, "backing.deviceName") if group is None else estate.port_groups.get(group),
        limit_mbit_per_s=limit_of(of(device, "resourceAllocation")),
    )


def _add_disk(estate: VcenterInventory, disk: Any, adapter: str | None, vm: Entity) -> None:  # noqa: ANN401
    place = _DATASTORE_FILE.match(of(disk, "backing.fileName") or "")
    iops = limit_of(of(disk, "storageIOAllocation"))
    thin, eager = of(disk, "backing.thinProvisioned"), of(disk, "backing.eagerlyScrub")
    provisioning = "thin" if thin else "thick-eager" if eager else None if thin is None else "thick-lazy"
    raw = "RawDiskMapping" in kind(disk.backing)
    name = f"{adapter}:{disk.unitNumber}" if adapter else f"disk{disk.key}"
    entity = estate.disks.setdefault(vm, {})[disk.key] = estate.add(
        Entity(EntityKind.VIRTUAL_DISK, name, vm),
        adapter=adapter,
        label=of(disk, "deviceInfo.label"),
        size_gib=None if disk.capacityInKB is None else disk.capacityInKB / KIB_PER_GIB,
        provisioning=provisioning,
        mode=of(disk, "backing.diskMode") or None,
        raw_device=raw if disk.backing is not None else None,
        sharing=word(of(disk, "backing.sharing"), _SHARING),
        shares=of(disk, "storageIOAllocation.shares.shares"),
        iops_limit=iops,
        read_cache_mib=of(disk, "vFlashCacheConfigInfo.reservationInMB"),
        datastore=place[1] if place else None,
        file=place[2] if place else None,
        # The mapping file of a raw device lies on a datastore, its blocks do not.
        device=estate.luns.get(place[1]) if place and not raw else None,
    )
    objects = [str(one) for backing in _backings(disk) if (one := of(backing, "backingObjectId"))]
    if objects:
        estate.objects[entity] = objects


def _backings(disk: Any) -> Iterator[Any]:  # noqa: ANN401
    """What a disk writes to now, then what it wrote to before each of its snapshots, the last first."""
    backing = disk.backing
    while backing is not None:
        yield backing
        backing = of(backing, "parent")


def _label(device: Any) -> str:  # noqa: ANN401
    return str(of(device, "deviceInfo.label") or f"device {device.key}")


def _other(device: Any) -> dict[str, Any]:  # noqa: ANN401
    label = of(device, "deviceInfo.label") or _OTHERS[kind(device)]
    return {"name": label, "type": _OTHERS[kind(device)], "connected": of(device, "connectable.connected")}


def now_utc() -> datetime:
    """The clock ages are counted to."""
    return datetime.now(UTC)
