"""vCenter or a single ESXi host: clusters, hosts, VMs, disks and datastores as they are configured now.

Collects:
    Hosts (version, CPUs, NUMA nodes, memory, power policy), VMs (vCPUs, cores per socket, memory, limits, reservations,
    hot add, hardware version, snapshots, controllers, disks with provisioning and IOPS limit, NICs, other devices),
    datastores, clusters with DRS, HA and vSAN. Templates are left out.

Cost:
    Four property-collector queries, paged; read-only. About 5 ms of processor time per VM here, less on vCenter.

Late or missing data:
    The answer is of the moment of the query. What the account may not see is missing and not told by vCenter.

Sources:
    vSphere Web Services API reference: PropertyCollector, VirtualMachine, HostSystem, VirtualDevice.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from leadline.core.capture import Capture, CaptureBuilder
from leadline.core.collector import Access, CollectorMeta
from leadline.core.entities import Entity
from leadline.core.errors import ToolError
from leadline.core.vocabulary import EntityKind, Layer

if TYPE_CHECKING:
    from leadline.core.entities import Inventory

META = CollectorMeta(
    tool="vCenter",
    layers=(Layer.VM, Layer.HOST, Layer.DATASTORE),
    privilege="the Read-only role at the top of the inventory, propagated",
)

PAGE_SIZE = 500
KIB_PER_GIB = 1024.0**2
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
_DATASTORE_FILE = re.compile(r"^\[(.+?)\] (.+)$")
_VM_PROPERTIES = [
    *("name", "runtime.host", "config.template", "config.hardware", "config.version", "config.guestFullName"),
    *("config.cpuHotAddEnabled", "config.memoryHotAddEnabled", "config.latencySensitivity", "guest.hostName"),
    *("config.cpuAllocation", "config.memoryAllocation", "snapshot"),
]
_HOST_PROPERTIES = [
    *("name", "parent", "hardware.cpuInfo", "hardware.numaInfo", "hardware.memorySize"),
    *("config.product", "config.powerSystemInfo"),
]
_CLUSTER_PROPERTIES = ["name", "host", "configurationEx"]


def collect(access: Access, progress: Callable[[int, int], None] | None = None) -> Capture:
    """The inventory of a vCenter or ESXi host as a capture without series.

    Raises:
        ToolError: it cannot be reached, its certificate is not trusted, or it refuses the login.
    """
    from pyVmomi import vmodl  # noqa: PLC0415 - see _connect

    session = _connect(access)
    try:
        builder = CaptureBuilder(f"vcenter:{access.host}", "vcenter", META.tool)
        content = session.RetrieveContent()
        _fill(content, builder, progress)
        return builder.build(host=access.host, tool_version=content.about.version)
    except (vmodl.MethodFault, OSError, KeyError) as error:
        raise ToolError(
            access.host,
            found=f"an answer that broke off ({type(error).__name__})",
            expected="the properties of hosts and VMs",
            advice="Try again; look at the rights of the user.",
        ) from error
    finally:
        _disconnect(session)


def _connect(access: Access) -> Any:  # noqa: ANN401 - pyVmomi makes its types at run time
    from pyVim.connect import SmartConnect  # noqa: PLC0415 - 0.5 s that only this collector needs
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    try:
        return SmartConnect(
            host=access.host,
            port=access.port,
            user=access.user,
            pwd=access.password,
            # Given explicitly: without a context pyVmomi does not check the certificate.
            sslContext=_context(verify=access.verify),
            httpConnectionTimeout=access.timeout_s,
        )
    except vim.fault.InvalidLogin as error:
        raise ToolError(
            access.host,
            found=f"the login of {access.user} was refused",
            expected="a user with the Read-only role",
            advice="Check user and password; the password is read from LEADLINE_PASSWORD or asked for.",
        ) from error
    except ssl.SSLError as error:
        raise ToolError(
            access.host,
            found="a certificate this machine does not trust",
            expected="a trusted certificate",
            advice="Install the CA's certificate, or add --insecure when you know whom you talk to.",
        ) from error
    except (OSError, vmodl.MethodFault, ValueError) as error:
        raise ToolError(
            f"{access.host}:{access.port}",
            found=f"no answer of a vCenter ({type(error).__name__})",
            expected="a vCenter or ESXi host",
            advice="Check name, port and network.",
        ) from error


def _context(*, verify: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _disconnect(session: Any) -> None:  # noqa: ANN401 - see _connect
    from pyVim.connect import Disconnect  # noqa: PLC0415

    Disconnect(session)
    session._stub.DropConnections()  # Disconnect only logs out


def _fill(content: Any, builder: CaptureBuilder, progress: Callable[[int, int], None] | None) -> None:  # noqa: ANN401
    from pyVmomi import vim  # noqa: PLC0415

    inventory, source = builder.inventory, builder.info.name
    clusters: dict[str, str] = {}
    for _, own in _objects(content, vim.ClusterComputeResource, _CLUSTER_PROPERTIES):
        _add_cluster(inventory, own, clusters, source)
    hosts: dict[str, Entity] = {}
    for key, own in _objects(content, vim.HostSystem, _HOST_PROPERTIES):
        hosts[key] = _add_host(inventory, own, clusters.get(key), source)
    for _, own in _objects(content, vim.Datastore, ["name", "summary"]):
        _add_datastore(inventory, own, source)
    vms = list(_objects(content, vim.VirtualMachine, _VM_PROPERTIES))
    for done, (_, own) in enumerate(vms, start=1):
        if not own.get("config.template"):
            _add_vm(inventory, own, hosts, source)
        if progress is not None and done % 100 == 0:
            progress(done, len(vms))


def _objects(content: Any, kind: Any, properties: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401
    """Id and properties of every object of a kind, in pages."""
    from pyVmomi import vmodl  # noqa: PLC0415

    query = vmodl.query.PropertyCollector
    view = content.viewManager.CreateContainerView(content.rootFolder, [kind], recursive=True)
    try:
        walk = query.TraversalSpec(name="view", path="view", skip=False, type=type(view))
        spec = query.FilterSpec(
            objectSet=[query.ObjectSpec(obj=view, skip=True, selectSet=[walk])],
            propSet=[query.PropertySpec(type=kind, pathSet=properties, all=False)],
        )
        collector = content.propertyCollector
        page = collector.RetrievePropertiesEx([spec], query.RetrieveOptions(maxObjects=PAGE_SIZE))
        while page is not None:
            for found in page.objects:
                yield str(found.obj._GetMoId()), {p.name: p.val for p in found.propSet}
            page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None
    finally:
        view.Destroy()


def _add_cluster(inventory: Inventory, own: dict[str, Any], clusters: dict[str, str], source: str) -> None:
    settings = own.get("configurationEx")
    hosts = own.get("host") or []
    inventory.add(
        Entity(EntityKind.CLUSTER, own["name"]),
        source,
        host_count=len(hosts),
        drs_enabled=_of(settings, "drsConfig.enabled"),
        ha_enabled=_of(settings, "dasConfig.enabled"),
        vsan_enabled=_of(settings, "vsanConfigInfo.enabled"),
    )
    clusters.update({str(host._GetMoId()): own["name"] for host in hosts})


def _add_host(inventory: Inventory, own: dict[str, Any], cluster: str | None, source: str) -> Entity:
    cpu, memory = own.get("hardware.cpuInfo"), own.get("hardware.memorySize")
    hertz = _of(cpu, "hz")
    return inventory.add(
        Entity(EntityKind.HOST, own["name"]),
        source,
        cluster=cluster,
        version=_of(own.get("config.product"), "version"),
        socket_count=_of(cpu, "numCpuPackages"),
        core_count=_of(cpu, "numCpuCores"),
        thread_count=_of(cpu, "numCpuThreads"),
        numa_node_count=_of(own.get("hardware.numaInfo"), "numNodes"),
        memory_mib=None if memory is None else memory / 1024.0**2,
        cpu_mhz=None if hertz is None else hertz / 1e6,
        power_policy=_power_policy(_of(own.get("config.powerSystemInfo"), "currentPolicy.shortName")),
    )


def _power_policy(short: str | None) -> str | None:
    """The policy vSphere calls ``static``, ``dynamic``, ``low`` or ``custom``, in the words of its own pages."""
    names = {"static": "high-performance", "dynamic": "balanced", "low": "low-power", "custom": "custom"}
    return None if short is None else names.get(short, short)


def _add_datastore(inventory: Inventory, own: dict[str, Any], source: str) -> None:
    inventory.add(Entity(EntityKind.DATASTORE, own["name"]), source)


def _add_vm(inventory: Inventory, own: dict[str, Any], hosts: dict[str, Entity], source: str) -> None:
    runs_on = own.get("runtime.host")
    host = None if runs_on is None else hosts.get(str(runs_on._GetMoId()))
    vm = Entity(EntityKind.VM, own["name"], host)
    hardware = own.get("config.hardware")
    created = sorted(_snapshots(own.get("snapshot")))
    version = re.search(r"\d+", own.get("config.version") or "")
    devices = list(_of(hardware, "device") or [])
    inventory.add(
        vm,
        source,
        vcpu_count=_of(hardware, "numCPU"),
        cores_per_socket=_of(hardware, "numCoresPerSocket"),
        memory_mib=_of(hardware, "memoryMB"),
        hardware_version=int(version[0]) if version else None,
        guest_os=own.get("config.guestFullName"),
        cpu_hot_add=own.get("config.cpuHotAddEnabled"),
        memory_hot_add=own.get("config.memoryHotAddEnabled"),
        latency_sensitivity=_of(own.get("config.latencySensitivity"), "level"),
        cpu_limit_mhz=_limit(own.get("config.cpuAllocation")),
        cpu_reservation_mhz=_of(own.get("config.cpuAllocation"), "reservation"),
        memory_limit_mib=_limit(own.get("config.memoryAllocation")),
        memory_reservation_mib=_of(own.get("config.memoryAllocation"), "reservation"),
        snapshot_count=len(created),
        snapshot_age_days=(datetime.now(UTC) - created[0]).total_seconds() / 86400.0 if created else None,
        virtual_devices=[_other(device) for device in devices if _kind(device) in _OTHERS],
    )
    hostname = own.get("guest.hostName")
    if hostname:
        inventory.links[inventory.add(Entity(EntityKind.GUEST, hostname), source)] = vm
    _add_devices(inventory, devices, vm, source)


def _add_devices(inventory: Inventory, devices: list[Any], vm: Entity, source: str) -> None:
    names: dict[int, str] = {}
    for device in devices:
        if _kind(device) in _CONTROLLERS:
            type_name, bus = _CONTROLLERS[_kind(device)]
            names[device.key] = f"{bus}{device.busNumber}"
            inventory.add(Entity(EntityKind.ADAPTER, names[device.key], vm), source, type=type_name)
    for device in devices:
        kind = _kind(device)
        if kind in _NICS:
            connected = _of(device, "connectable.connected")
            label = _of(device, "deviceInfo.label") or f"nic{device.key}"
            inventory.add(Entity(EntityKind.NIC, label, vm), source, type=_NICS[kind], connected=connected)
        elif kind == "VirtualDisk":
            _add_disk(inventory, device, names.get(device.controllerKey), vm, source)


def _add_disk(inventory: Inventory, disk: Any, adapter: str | None, vm: Entity, source: str) -> None:  # noqa: ANN401
    place = _DATASTORE_FILE.match(_of(disk, "backing.fileName") or "")
    limit = _of(disk, "storageIOAllocation.limit")
    thin, eager = _of(disk, "backing.thinProvisioned"), _of(disk, "backing.eagerlyScrub")
    provisioning = "thin" if thin else "thick-eager" if eager else None if thin is None else "thick-lazy"
    name = f"{adapter}:{disk.unitNumber}" if adapter is not None else f"disk{disk.key}"
    inventory.add(
        Entity(EntityKind.VIRTUAL_DISK, name, vm),
        source,
        adapter=adapter,
        size_gib=None if disk.capacityInKB is None else disk.capacityInKB / KIB_PER_GIB,
        provisioning=provisioning,
        iops_limit=None if limit is None or limit < 0 else float(limit),
        datastore=place[1] if place else None,
        file=place[2] if place else None,
    )


def _other(device: Any) -> dict[str, Any]:  # noqa: ANN401
    label = _of(device, "deviceInfo.label") or _OTHERS[_kind(device)]
    return {"name": label, "type": _OTHERS[_kind(device)], "connected": _of(device, "connectable.connected")}


def _snapshots(info: Any) -> Iterator[datetime]:  # noqa: ANN401
    waiting = list(_of(info, "rootSnapshotList") or [])
    while waiting:
        snapshot = waiting.pop()
        yield snapshot.createTime
        waiting.extend(snapshot.childSnapshotList or [])


def _limit(allocation: Any) -> float | None:  # noqa: ANN401
    """A limit, or None: -1 is vSphere's "unlimited"."""
    limit = _of(allocation, "limit")
    return None if limit is None or limit < 0 else float(limit)


def _kind(device: Any) -> str:  # noqa: ANN401
    return type(device).__name__.rpartition(".")[2]


def _of(value: Any, path: str) -> Any:  # noqa: ANN401
    """An attribute of an attribute, None as soon as one is missing."""
    for name in path.split("."):
        value = getattr(value, name, None)
        if value is None:
            return None
    return value
