"""A host as vCenter describes it: hardware, firmware, time, options, sensors, storage adapters, devices and paths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from leadline.collectors import _vcenter_vsan as vsan
from leadline.collectors._vcenter_estate import BYTES_PER_MIB, S_PER_DAY, VcenterInventory, word
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import kind, of

PROPERTIES = [
    *("name", "hardware.cpuInfo", "hardware.numaInfo", "hardware.memorySize", "hardware.biosInfo", "summary.hardware"),
    *("summary.currentEVCModeKey", "runtime.connectionState", "runtime.inMaintenanceMode"),
    *("runtime.healthSystemRuntime", "config.product", "config.powerSystemInfo", "config.hyperThread"),
    *("config.dateTimeInfo", "config.service", "config.option", "config.storageDevice.hostBusAdapter"),
    *("config.storageDevice.scsiLun", "config.storageDevice.multipathInfo", "configManager.certificateManager"),
    *("alarmActionsEnabled", "config.network.pnic", "config.network.vnic", "config.network.vswitch"),
    *("config.network.portgroup", "config.network.proxySwitch", "config.virtualNicManagerInfo"),
    *("hardware.cpuFeature", "capability.nestedHVSupported", "config.pciPassthruInfo", "config.vsanHostConfig"),
    *("configManager.vsanSystem", "configManager.vsanInternalSystem"),
]
# Of some thousand advanced options, the groups that bear on speed and that rules read.
_KEPT_OPTIONS = ("Disk.", "Mem.", "LPage.", "NFS.", "Net.Tcpip", "Numa.", "Power.", "VSAN.", "DataMover.", "VMFS3.")
_LOG_HOST = "Syslog.global.logHost"
_KERNEL, _KEPT_KERNEL = "VMkernel.Boot.", "VMkernel.Boot.hyperthreading"
_HV_ON = 3  # as esxcfg-info counts
_CPUID_FEATURES = 1
_AES_BIT = 25
_POWER_POLICIES = {"static": "high-performance", "dynamic": "balanced", "low": "low-power", "custom": "custom"}
_CONNECTION = {"notResponding": "not-responding"}
_PATH_POLICIES = {
    "VMW_PSP_RR": "round-robin",
    "VMW_PSP_FIXED": "fixed",
    "VMW_PSP_MRU": "most-recently-used",
}
_TRANSPORTS = {
    "FibreChannelTargetTransport": "fc",
    "FibreChannelOverEthernetTargetTransport": "fc",
    "InternetScsiTargetTransport": "iscsi",
    "SerialAttachedTargetTransport": "sas",
    "PcieTargetTransport": "nvme-pcie",
    "RdmaTargetTransport": "nvme-rdma",
    "TcpTargetTransport": "nvme-tcp",
}
_DIGESTS = {
    "digestProhibited": "prohibited",
    "digestDiscouraged": "discouraged",
    "digestPreferred": "preferred",
    "digestRequired": "required",
}
_RUNTIME_NAME = re.compile(r"vmhba[0-9]+:C[0-9]+:T[0-9]+:L[0-9]+")
_PTP = "ptp"


def add_host(estate: VcenterInventory, properties: dict[str, Any], key: str) -> Entity:
    """A host with its adapters and devices, from its properties; ``key`` is vCenter's id of it.

    Source: vSphere Web Services API reference, HostSystem, HostConfigInfo, HostHardwareInfo, HostStorageDeviceInfo.
    """
    cpu, memory, bios = (properties.get(f"hardware.{name}") for name in ("cpuInfo", "memorySize", "biosInfo"))
    hertz, released = of(cpu, "hz"), of(bios, "releaseDate")
    host = estate.add(
        Entity(EntityKind.HOST, properties["name"]),
        cluster=estate.cluster_of.get(key),
        version=of(properties.get("config.product"), "version"),
        build=of(properties.get("config.product"), "build"),
        socket_count=of(cpu, "numCpuPackages"),
        core_count=of(cpu, "numCpuCores"),
        thread_count=of(cpu, "numCpuThreads"),
        numa_node_count=of(properties.get("hardware.numaInfo"), "numNodes"),
        memory_mib=None if memory is None else memory / BYTES_PER_MIB,
        cpu_mhz=None if hertz is None else hertz / 1e6,
        cpu_model=of(properties.get("summary.hardware"), "cpuModel"),
        vendor=of(properties.get("summary.hardware"), "vendor"),
        model=of(properties.get("summary.hardware"), "model"),
        bios_version=of(bios, "biosVersion"),
        bios_date=None if released is None else released.date().isoformat(),
        power_policy=word(of(properties.get("config.powerSystemInfo"), "currentPolicy.shortName"), _POWER_POLICIES),
        evc_mode=properties.get("summary.currentEVCModeKey") or None,
        hyperthreading=of(properties.get("config.hyperThread"), "active"),
        hyperthreading_available=of(properties.get("config.hyperThread"), "available"),
        connection_state=word(properties.get("runtime.connectionState"), _CONNECTION),
        maintenance_mode=properties.get("runtime.inMaintenanceMode"),
        alarm_actions_enabled=properties.get("alarmActionsEnabled"),
        sensors=_sensors(properties.get("runtime.healthSystemRuntime")),
        **_processor(properties),
        **_passthrough(properties.get("config.pciPassthruInfo")),
        **_time(properties),
        **_options(properties.get("config.option")),
    )
    vsan.add_host(estate, host, properties.get("config.vsanHostConfig"))
    for adapter in properties.get("config.storageDevice.hostBusAdapter") or ():
        _add_adapter(estate, adapter, host)
    _add_devices(estate, properties, host)
    estate.hosts[key] = host
    return host


def add_certificate(estate: VcenterInventory, host: Entity, certificate: Any, now: datetime) -> None:  # noqa: ANN401
    """How long a host's certificate is still good, from what its certificate manager says."""
    expires = of(certificate, "notAfter")
    days = None if expires is None else (expires - now).total_seconds() / S_PER_DAY
    estate.add(host, certificate_days_left=days)


def _processor(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the features the processors show to be on; one that is off looks like one that is not there.

    Source: vSphere Web Services API reference, HostCpuIdInfo (registers as texts of bits, the highest first; "-" and
    others are no bits), HostCapability. Intel 64 and IA-32 Architectures Software Developer's Manual, CPUID.01H:ECX.25.
    """
    features = next((f for f in properties.get("hardware.cpuFeature") or () if f.level == _CPUID_FEATURES), None)
    bits = (of(features, "ecx") or "").replace(":", "")
    aes = bits[-1 - _AES_BIT] if len(bits) == 32 else None
    return {
        "aes_ni": {"1": True, "0": False}.get(str(aes)),
        # Virtual machines can only be given hardware virtualisation where the host has it itself.
        "hv_support": _HV_ON if properties.get("capability.nestedHVSupported") else None,
    }


def _passthrough(devices: Any) -> dict[str, Any]:  # noqa: ANN401
    """Whether devices may be given to VMs, which needs the IOMMU, and whether any is set aside for it.

    Source: vSphere Web Services API reference, HostPciPassthruInfo, HostSriovInfo.
    """
    if not devices:
        return {}
    ways = ("passthruEnabled", "sriovEnabled")
    return {
        "iommu": True if any(of(device, "passthruCapable") for device in devices) else None,
        "passthrough_planned": any(of(device, way) for device in devices for way in ways),
    }


def _time(properties: dict[str, Any]) -> dict[str, Any]:
    """Time servers and service; a host that follows PTP needs no NTP server and none is told of it."""
    clock, services = properties.get("config.dateTimeInfo"), of(properties.get("config.service"), "service")
    if clock is None or of(clock, "systemClockProtocol") == _PTP:
        return {}
    running = next((service.running for service in services or () if service.key == "ntpd"), None)
    return {"ntp_servers": list(of(clock, "ntpConfig.server") or []), "ntp_running": running}


def _options(options: Any) -> dict[str, Any]:  # noqa: ANN401
    if options is None:
        return {}
    known = {str(option.key): option.value for option in options}
    kept = {key: value for key, value in known.items() if key.startswith(_KEPT_OPTIONS)}
    log_host = known.get(_LOG_HOST)
    plain = {key: value if isinstance(value, int | float) else str(value) for key, value in kept.items()}
    boot = {key.removeprefix(_KERNEL): str(known[key]).upper() for key in known if key.startswith(_KEPT_KERNEL)}
    return {
        "advanced_options": plain or None,
        "kernel_settings": boot or None,
        "syslog_target": None if log_host is None else str(log_host),
    }


def _sensors(health: Any) -> dict[str, str] | None:  # noqa: ANN401
    """State of every sensor by its name; None where the host has no sensors or does not tell."""
    sensors = of(health, "systemHealthInfo.numericSensorInfo") or ()
    states = {sensor.name: str(sensor.healthState.key) for sensor in sensors if _has_state(sensor)}
    hardware = of(health, "hardwareStatusInfo")
    for part in ("memoryStatusInfo", "cpuStatusInfo", "storageStatusInfo"):
        states |= {e.name: str(e.status.key) for e in of(hardware, part) or () if of(e, "status.key") is not None}
    return {str(name): state.casefold() for name, state in states.items()} or None


def _has_state(sensor: Any) -> bool:  # noqa: ANN401
    return of(sensor, "healthState.key") is not None


def _add_adapter(estate: VcenterInventory, hba: Any, host: Entity) -> None:  # noqa: ANN401
    delayed = next((o.value for o in of(hba, "advancedOptions") or () if o.key == "DelayedAck"), None)
    digests = {of(hba, f"digestProperties.{part}DigestType") for part in ("header", "data")} - {None}
    # The stricter of the two costs the processor time; the words are in rising order.
    strictest = max(digests, key=list(_DIGESTS).index) if digests and digests <= set(_DIGESTS) else None
    estate.add(
        Entity(EntityKind.ADAPTER, hba.device, host),
        type=hba.driver or None,
        model=(hba.model or "").strip() or None,
        status=hba.status or None,
        driver_version=of(hba, "driverVersion"),
        firmware=of(hba, "firmwareVersion"),
        delayed_ack=delayed if isinstance(delayed, bool) else None,
        iscsi_digest=word(strictest, _DIGESTS),
    )


def _add_devices(estate: VcenterInventory, properties: dict[str, Any], host: Entity) -> None:
    """Disks and LUNs with their paths; CD drives and enclosures are left out."""
    paths = {unit.lun: unit for unit in of(properties.get("config.storageDevice.multipathInfo"), "lun") or ()}
    for lun in properties.get("config.storageDevice.scsiLun") or ():
        if kind(lun) != "ScsiDisk" and lun.lunType != "disk":
            continue
        ssd, local, states = of(lun, "ssd"), of(lun, "localDisk"), of(lun, "operationalState")
        uuid = of(lun, "vsanDiskInfo.vsanUuid") or None
        if uuid is not None:
            _add_vsan_adapters(estate, paths.get(lun.key), properties, host)
        estate.add(
            Entity(EntityKind.DEVICE, str(lun.canonicalName), host),
            vendor=(lun.vendor or "").strip() or None,
            model=(lun.model or "").strip() or None,
            uuid=uuid,
            size_gib=vsan.size_gib(lun),
            # An array's LUN is "not SSD" unless somebody marked it; of a local disk the host knows.
            medium="flash" if ssd else "hdd" if local and ssd is False else None,
            local=local,
            queue_depth_count=of(lun, "queueDepth"),
            state=str(states[0]).casefold() if states else None,
            **_multipath(paths.get(lun.key)),
        )


def _add_vsan_adapters(estate: VcenterInventory, unit: Any, properties: dict[str, Any], host: Entity) -> None:  # noqa: ANN401
    """Mark the adapters a disk of vSAN hangs on; paths name them by their key."""
    keys = {path.adapter for path in of(unit, "path") or ()}
    for hba in properties.get("config.storageDevice.hostBusAdapter") or ():
        if hba.key in keys:
            estate.add(Entity(EntityKind.ADAPTER, hba.device, host), serves_vsan=True)


def _multipath(unit: Any) -> dict[str, Any]:  # noqa: ANN401
    if unit is None:
        return {}
    paths = list(unit.path or [])
    states = Counter(str(of(path, "state") or of(path, "pathState")).casefold() for path in paths)
    policy = of(unit, "policy.policy")
    names = [str(path.name) for path in paths]
    return {
        "path_policy": word(policy, _PATH_POLICIES),
        "path_plugin": "NMP" if str(policy).startswith("VMW_PSP_") else None,
        "array_plugin": of(unit, "storageArrayTypePolicy.policy"),
        "path_count": len(paths),
        "path_active_count": states["active"],
        "path_dead_count": states["dead"],
        # Some answers name paths by their ends (iqn...-naa...); esxtop and the inventory go by the runtime name.
        "paths": names if names and all(_RUNTIME_NAME.fullmatch(name) for name in names) else None,
        "transport": next(_transports(paths), None),
    }


def _transports(paths: list[Any]) -> Iterator[str]:
    for path in paths:
        transport = _TRANSPORTS.get(kind(path.transport))
        if transport is not None:
            yield transport
