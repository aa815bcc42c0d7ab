"""What the vCenter collector makes of single objects, for what the simulator does not have: plain pyVmomi data."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pyVmomi

from leadline.collectors import _vcenter_cluster as clusters
from leadline.collectors import _vcenter_host as hosts
from leadline.collectors import _vcenter_network as networks
from leadline.collectors import _vcenter_vm as machines
from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge import vcenter_session
from tests.collectors.conftest import HOST, VM, facts

vim: Any = pyVmomi.vim  # made at run time: no types to check against
vmodl: Any = pyVmomi.vmodl
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def options(**values: object) -> list[Any]:
    return [vim.option.OptionValue(key=key.replace("__", "."), value=value) for key, value in values.items()]


def vm(estate: VcenterInventory, **own: Any) -> dict[str, Any]:
    known = {"name": "db01", "runtime.host": vim.HostSystem("host-1")}
    machines.add_vm(estate, known | {key.replace("__", "."): value for key, value in own.items()}, NOW)
    return facts(estate, VM)


def test_a_vm_of_which_nothing_is_told_is_only_there(estate: VcenterInventory) -> None:
    empty = {"virtual_devices": [], "passthrough_devices": [], "snapshot_count": 0, "snapshot_chain_count": 0}
    assert vm(estate) == empty


@pytest.mark.parametrize(
    ("key", "value", "setting", "expected"),
    [
        ("runtime__powerState", "poweredOn", "power_state", "on"),
        ("runtime__powerState", "poweredOff", "power_state", "off"),
        ("runtime__powerState", "suspended", "power_state", "suspended"),
        ("runtime__consolidationNeeded", True, "disk_consolidation_needed", True),
        ("runtime__minRequiredEVCModeKey", "intel-skylake", "evc_mode", "intel-skylake"),
        ("config__swapPlacement", "hostLocal", "swap_placement", "host-local"),
        ("config__swapPlacement", "vmDirectory", "swap_placement", "vm-directory"),
        ("config__swapPlacement", "inherit", "swap_placement", "inherit"),
        ("config__changeTrackingEnabled", False, "changed_block_tracking", False),
        ("config__files__vmPathName", "[ssd 1] db01/db01.vmx", "config_datastore", "ssd 1"),
        ("config__files__vmPathName", "", "config_datastore", None),
        ("config__tools__syncTimeWithHost", True, "tools_sync_time", True),
        ("config__memoryReservationLockedToMax", True, "memory_reservation_locked", True),
        ("config__cpuAffinity", vim.vm.AffinityInfo(affinitySet=[2, 3]), "cpu_affinity", "2,3"),
        ("config__cpuAffinity", vim.vm.AffinityInfo(affinitySet=[]), "cpu_affinity", None),
        ("config__flags", vim.vm.FlagInfo(virtualMmuUsage="off"), "mmu_virtualisation", "software"),
        ("config__flags", vim.vm.FlagInfo(virtualMmuUsage="automatic"), "mmu_virtualisation", "automatic"),
        ("config__flags", vim.vm.FlagInfo(virtualExecUsage="hvOff"), "cpu_virtualisation", "software"),
        ("config__flags", vim.vm.FlagInfo(virtualExecUsage="hvOn"), "cpu_virtualisation", "hardware"),
        ("guest__toolsRunningStatus", "guestToolsRunning", "tools_running_status", "guestToolsRunning"),
        ("guest__toolsVersion", "12352", "tools_version", "12352"),
        ("guest__toolsVersion", "0", "tools_version", None),
        ("guest__guestFullName", "Debian GNU/Linux 12 (64-bit)", "guest_os_reported", "Debian GNU/Linux 12 (64-bit)"),
    ],
)
def test_one_setting_of_a_vm(estate: VcenterInventory, key: str, value: Any, setting: str, expected: object) -> None:
    assert vm(estate, **{key: value}).get(setting) == expected


def test_the_finer_status_of_tools_wins(estate: VcenterInventory) -> None:
    both = {"guest__toolsVersionStatus": "guestToolsNeedUpgrade", "guest__toolsVersionStatus2": "guestToolsTooOld"}
    assert vm(estate, **both)["tools_version_status"] == "guestToolsTooOld"


@pytest.mark.parametrize(("power", "expected"), [("poweredOn", 2.0), ("poweredOff", None)])
def test_uptime_is_of_a_vm_that_runs(estate: VcenterInventory, power: str, expected: float | None) -> None:
    known = vm(estate, runtime__powerState=power, runtime__bootTime=NOW - timedelta(days=2))
    assert known.get("uptime_days") == expected


def test_advanced_settings_that_bear_on_speed_are_kept(estate: VcenterInventory) -> None:
    written = options(numa__nodeAffinity="0,1", sched__cpu__vsmpConsolidate="true", guestinfo__secret="x")
    known = vm(estate, config__extraConfig=written)
    assert known["extra_config"] == {"numa.nodeAffinity": "0,1", "sched.cpu.vsmpConsolidate": "true"}
    assert known["numa_node_affinity"] == "0,1"


@pytest.mark.parametrize(
    ("key", "numa", "nodes", "guessed"),
    [
        ("numa__vcpu__maxPerVirtualNode", None, 3, False),
        ("numa__autosize__vcpu__maxPerVirtualNode", None, 3, True),
        ("numa__autosize__vcpu__maxPerVirtualNode", vim.vm.VirtualNumaInfo(coresPerNumaNode=6), 2, False),
        ("numa__unrelated", None, None, None),
    ],
)
def test_virtual_numa_nodes(
    estate: VcenterInventory, key: str, numa: Any, nodes: int | None, guessed: bool | None
) -> None:
    hardware = vim.vm.VirtualHardware(numCPU=12, numCoresPerSocket=6, memoryMB=1024)
    vm(estate, config__hardware=hardware, config__extraConfig=options(**{key: "4"}), config__numaInfo=numa)
    fact = estate.inventory.fact(VM, "vnuma_node_count")
    assert (None if fact is None else fact.value, None if fact is None else fact.guessed) == (nodes, guessed)
    assert estate.inventory.get(VM, "socket_count") == 2


def test_snapshots_by_name_and_the_longest_chain(estate: VcenterInventory) -> None:
    def tree(name: str, days: int, *children: Any) -> Any:
        taken = NOW - timedelta(days=days)
        return vim.vm.SnapshotTree(name=name, createTime=taken, childSnapshotList=list(children))

    roots = [tree("a", 9, tree("b", 5, tree("a", 1)), tree("c", 4))]
    known = vm(estate, snapshot=vim.vm.SnapshotInfo(rootSnapshotList=roots))
    assert (known["snapshot_count"], known["snapshot_chain_count"], known["snapshot_age_days"]) == (4, 3, 9.0)
    assert sorted(known["snapshot_ages_days"].values()) == [1.0, 4.0, 5.0, 9.0]


def test_the_files_of_snapshots_are_summed(estate: VcenterInventory) -> None:
    sizes = {
        "[ds] db01/db01.vmdk": 100,
        "[ds] db01/db01-flat.vmdk": 2**40,
        "[ds] db01/db01-000001-sesparse.vmdk": 2**31,
        "[ds] db01/db01-000001.vmdk": 0,
        "[ds] db01/db01-Snapshot1.vmsn": 2**30,
        "[ds] db01/db01-Snapshot1.vmem": 2**30,
    }
    files = [vim.vm.FileLayoutEx.FileInfo(name=name, size=size) for name, size in sizes.items()]
    machines.add_snapshot_size(estate, VM, files)
    assert facts(estate, VM) == {"snapshot_size_gib": 4.0}


def devices() -> list[Any]:
    device = vim.vm.device
    bus = device.ParaVirtualSCSIController(key=1000, busNumber=1, sharedBus="physicalSharing")
    flat = device.VirtualDisk.FlatVer2BackingInfo(
        fileName="[ssd] db01/a.vmdk", diskMode="independent_persistent", sharing="sharingMultiWriter"
    )
    raw = device.VirtualDisk.RawDiskMappingVer1BackingInfo(fileName="[ssd] db01/b.vmdk", diskMode="persistent")
    shares = vim.StorageResourceManager.IOAllocationInfo(limit=-1, shares=vim.SharesInfo(shares=2000, level="high"))
    size = 1024**2
    disk = device.VirtualDisk(
        key=1, controllerKey=1000, unitNumber=0, capacityInKB=size, backing=flat, storageIOAllocation=shares
    )
    mapping = device.VirtualDisk(key=2, controllerKey=1000, unitNumber=1, capacityInKB=size, backing=raw)
    card = device.VirtualPCIPassthrough(key=13, deviceInfo=vim.Description(label="PCI device 0", summary=""))
    backing = device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu="nvidia_a40-8c")
    vgpu = device.VirtualPCIPassthrough(key=14, backing=backing)
    port = vim.dvs.PortConnection(switchUuid="u", portgroupKey="dvportgroup-9")
    far = device.VirtualEthernetCard.DistributedVirtualPortBackingInfo(port=port)
    limit = device.VirtualEthernetCard.ResourceAllocation(limit=500, share=vim.SharesInfo(shares=50, level="normal"))
    nic = device.VirtualVmxnet3(key=4000, backing=far, resourceAllocation=limit)
    return [bus, disk, mapping, card, vgpu, nic]


def test_disks_controllers_and_cards(estate: VcenterInventory) -> None:
    estate.luns["ssd"] = "naa.6"
    estate.port_groups["dvportgroup-9"] = "database"
    known = vm(estate, config__hardware=vim.vm.VirtualHardware(numCPU=1, memoryMB=1, device=devices()))
    assert (known["passthrough_devices"], known["vgpu_profile"]) == (["PCI device 0"], "nvidia_a40-8c")
    assert facts(estate, Entity(EntityKind.ADAPTER, "scsi1", VM)) == {"type": "pvscsi", "bus_sharing": "physical"}
    assert facts(estate, Entity(EntityKind.NIC, "nic4000", VM)) == {
        "type": "vmxnet3",
        "network": "database",
        "limit_mbit_per_s": 500.0,
    }
    disk = facts(estate, Entity(EntityKind.VIRTUAL_DISK, "scsi1:0", VM))
    assert disk == {
        "adapter": "scsi1",
        "size_gib": 1.0,
        "mode": "independent_persistent",
        "raw_device": False,
        "sharing": "multi-writer",
        "shares": 2000,
        "datastore": "ssd",
        "file": "db01/a.vmdk",
        "device": "naa.6",
    }
    mapped = facts(estate, Entity(EntityKind.VIRTUAL_DISK, "scsi1:1", VM))
    assert mapped["raw_device"] is True
    assert "device" not in mapped


def host(estate: VcenterInventory, **own: Any) -> dict[str, Any]:
    known = {"name": "esx01"} | {key.replace("__", "."): value for key, value in own.items()}
    hosts.add_host(estate, known, "host-1")
    return facts(estate, HOST)


def service(key: str, running: bool) -> Any:
    return vim.host.Service(key=key, running=running)


def test_time_servers_of_a_host(estate: VcenterInventory) -> None:
    clock = vim.host.DateTimeInfo(ntpConfig=vim.host.NtpConfig(server=["ntp1", "ntp2"]))
    services = vim.host.ServiceInfo(service=[service("TSM-SSH", True), service("ntpd", False)])
    known = host(estate, config__dateTimeInfo=clock, config__service=services)
    assert (known["ntp_servers"], known["ntp_running"]) == (["ntp1", "ntp2"], False)


def test_no_time_server_is_told_from_not_known_and_from_ptp(estate: VcenterInventory) -> None:
    assert "ntp_servers" not in host(estate)
    assert "ntp_servers" not in host(estate, config__dateTimeInfo=vim.host.DateTimeInfo(systemClockProtocol="ptp"))
    assert host(estate, config__dateTimeInfo=vim.host.DateTimeInfo())["ntp_servers"] == []


def test_options_of_a_host(estate: VcenterInventory) -> None:
    written = options(Disk__DiskMaxIOSize=1024, Syslog__global__logHost="", UserVars__Anything="x")
    known = host(estate, config__option=written)
    assert known["advanced_options"] == {"Disk.DiskMaxIOSize": 1024}
    assert known["syslog_target"] == ""


def test_a_target_of_the_log(estate: VcenterInventory) -> None:
    assert (
        host(estate, config__option=options(Syslog__global__logHost="udp://log:514"))["syslog_target"]
        == "udp://log:514"
    )


@pytest.mark.parametrize(
    ("ecx", "aes"),
    [
        ("1001:0111:1011:1010:0010:0010:0010:1011", True),
        ("1001:0101:1011:1010:0010:0010:0010:1011", False),
        ("----:--H-:1011:1010:0010:0010:0010:1011", None),
        ("", None),
    ],
)
def test_aes_instructions_of_a_host(estate: VcenterInventory, ecx: str, aes: bool | None) -> None:
    features = [vim.host.CpuIdInfo(level=0, ecx=""), vim.host.CpuIdInfo(level=1, ecx=ecx)]
    assert host(estate, hardware__cpuFeature=features).get("aes_ni") is aes


@pytest.mark.parametrize(("nested", "support"), [(True, 3), (False, None), (None, None)])
def test_hardware_virtualisation_is_only_known_where_it_is_on(
    estate: VcenterInventory, nested: bool | None, support: int | None
) -> None:
    assert host(estate, capability__nestedHVSupported=nested).get("hv_support") == support


def test_devices_to_be_given_to_vms(estate: VcenterInventory) -> None:
    plain = {"id": "0000:3b:00.0", "dependentDevice": "", "passthruEnabled": False, "passthruActive": False}
    card = vim.host.PciPassthruInfo(**plain, passthruCapable=False)
    sriov = vim.host.SriovInfo(**plain, passthruCapable=True, sriovEnabled=True)
    assert "iommu" not in host(estate)
    known = host(estate, config__pciPassthruInfo=[card])
    assert ("iommu" in known, known["passthrough_planned"]) == (False, False)
    other = VcenterInventory(Inventory(), "vc")
    host(other, config__pciPassthruInfo=[card, sriov])
    assert (facts(other, HOST)["iommu"], facts(other, HOST)["passthrough_planned"]) == (True, True)


def test_boot_settings_of_the_scheduler(estate: VcenterInventory) -> None:
    written = options(VMkernel__Boot__hyperthreadingMitigation=True, VMkernel__Boot__debugLogToSerial="1")
    assert host(estate, config__option=written)["kernel_settings"] == {"hyperthreadingMitigation": "TRUE"}


def test_hardware_and_state_of_a_host(estate: VcenterInventory) -> None:
    known = host(
        estate,
        hardware__biosInfo=vim.host.BIOSInfo(biosVersion="U30", releaseDate=datetime(2024, 2, 29, tzinfo=UTC)),
        config__hyperThread=vim.host.CpuSchedulerSystem.HyperThreadScheduleInfo(
            available=True, active=False, config=False
        ),
        runtime__connectionState="notResponding",
        runtime__inMaintenanceMode=True,
        summary__currentEVCModeKey="intel-broadwell",
        alarmActionsEnabled=False,
    )
    assert known == {
        "bios_version": "U30",
        "bios_date": "2024-02-29",
        "hyperthreading": False,
        "hyperthreading_available": True,
        "connection_state": "not-responding",
        "maintenance_mode": True,
        "evc_mode": "intel-broadwell",
        "alarm_actions_enabled": False,
    }


def test_days_until_a_certificate_expires(estate: VcenterInventory) -> None:
    good = vim.host.CertificateManager.CertificateInfo(notAfter=NOW + timedelta(days=30), status="good")
    hosts.add_certificate(estate, HOST, good, NOW)
    assert facts(estate, HOST) == {"certificate_days_left": 30.0}


def path(name: str, state: str) -> Any:
    transport = vim.host.FibreChannelTargetTransport(portWorldWideName=1, nodeWorldWideName=2)
    return vim.host.MultipathInfo.Path(key=name, name=name, pathState=state, state=state, transport=transport)


def lun(**own: Any) -> Any:
    known = {"key": "key-1", "canonicalName": "naa.6", "lunType": "disk", "vendor": "PURE    ", "model": "FlashArray "}
    return vim.host.ScsiDisk(**(known | own))


def storage(estate: VcenterInventory, disk: Any, *paths: Any) -> dict[str, Any]:
    policy = vim.host.MultipathInfo.LogicalUnitPolicy(policy="VMW_PSP_RR")
    array = vim.host.MultipathInfo.LogicalUnitStorageArrayTypePolicy(policy="VMW_SATP_ALUA")
    unit = vim.host.MultipathInfo.LogicalUnit(
        key="u", id="u", lun="key-1", path=list(paths), policy=policy, storageArrayTypePolicy=array
    )
    info = vim.host.MultipathInfo(lun=[unit])
    host(estate, config__storageDevice__scsiLun=[disk], config__storageDevice__multipathInfo=info)
    return facts(estate, Entity(EntityKind.DEVICE, "naa.6", HOST))


def test_a_device_and_its_paths(estate: VcenterInventory) -> None:
    names = ["vmhba1:C0:T0:L0", "vmhba2:C0:T0:L0", "vmhba2:C0:T1:L0"]
    known = storage(
        estate,
        lun(ssd=False, localDisk=False, queueDepth=64, operationalState=["ok"]),
        *(path(name, state) for name, state in zip(names, ("active", "dead", "standby"), strict=True)),
    )
    assert known == {
        "vendor": "PURE",
        "model": "FlashArray",
        "local": False,
        "queue_depth_count": 64,
        "state": "ok",
        "path_policy": "round-robin",
        "path_plugin": "NMP",
        "array_plugin": "VMW_SATP_ALUA",
        "path_count": 3,
        "path_active_count": 1,
        "path_dead_count": 1,
        "paths": names,
        "transport": "fc",
    }


def test_paths_named_by_their_ends_are_counted_alone(estate: VcenterInventory) -> None:
    known = storage(estate, lun(), path("fc.20000000:21000000-fc.5000:5001-naa.6", "active"))
    assert known["path_count"] == 1
    assert "paths" not in known


@pytest.mark.parametrize(
    ("ssd", "local", "medium"), [(True, False, "flash"), (False, True, "hdd"), (False, False, None), (None, True, None)]
)
def test_medium_of_a_device(estate: VcenterInventory, ssd: bool | None, local: bool, medium: str | None) -> None:
    only = path("vmhba1:C0:T0:L0", "active")
    assert storage(estate, lun(ssd=ssd, localDisk=local), only).get("medium") == medium


def test_an_iscsi_adapter(estate: VcenterInventory) -> None:
    digests = vim.host.InternetScsiHba.DigestProperties(
        headerDigestType="digestPreferred", dataDigestType="digestProhibited"
    )
    delayed = vim.host.InternetScsiHba.ParamValue(key="DelayedAck", value=True, isInherited=True)
    hba = vim.host.InternetScsiHba(
        device="vmhba64",
        bus=0,
        status="online",
        model="iSCSI Software Adapter ",
        driver="iscsi_vmk",
        digestProperties=digests,
        advancedOptions=[delayed],
    )
    host(estate, config__storageDevice__hostBusAdapter=[hba])
    assert facts(estate, Entity(EntityKind.ADAPTER, "vmhba64", HOST)) == {
        "type": "iscsi_vmk",
        "model": "iSCSI Software Adapter",
        "status": "online",
        "delayed_ack": True,
        "iscsi_digest": "preferred",
    }


def test_sensors(estate: VcenterInventory) -> None:
    def state(key: str) -> Any:
        return vim.ElementDescription(key=key, label=key, summary="")

    fan = vim.host.NumericSensorInfo(name="Fan 1", healthState=state("red"))
    silent = vim.host.NumericSensorInfo(name="Fan 2")
    dimm = vim.host.HardwareStatusInfo.HardwareElementInfo(name="DIMM 3", status=state("Yellow"))
    health = vim.host.HealthStatusSystem.Runtime(
        systemHealthInfo=vim.host.SystemHealthInfo(numericSensorInfo=[fan, silent]),
        hardwareStatusInfo=vim.host.HardwareStatusInfo(memoryStatusInfo=[dimm]),
    )
    assert host(estate, runtime__healthSystemRuntime=health)["sensors"] == {"Fan 1": "red", "DIMM 3": "yellow"}


def test_cards_and_interfaces_of_a_host(estate: VcenterInventory) -> None:
    link = vim.host.PhysicalNic.LinkSpeedDuplex(speedMb=25000, duplex=True)
    cards = [
        vim.host.PhysicalNic(key="p0", device="vmnic0", driver="nmlx5_core", linkSpeed=link),
        vim.host.PhysicalNic(key="p1", device="vmnic1", driver="nmlx5_core"),
    ]
    spec = vim.host.VirtualNic.Specification(mtu=9000)
    service = vim.host.VirtualNicManager.NetConfig(
        nicType="vmotion", selectedVnic=["vmotion.key-vim.host.VirtualNic-vmk1"]
    )
    own = {
        "config.network.pnic": cards,
        "config.network.vswitch": [vim.host.VirtualSwitch(key="s", name="vSwitch0", mtu=9000, pnic=["p0"])],
        "config.network.vnic": [vim.host.VirtualNic(device="vmk1", portgroup="vMotion", spec=spec)],
        "config.virtualNicManagerInfo": vim.host.VirtualNicManagerInfo(netConfig=[service]),
    }
    networks.add_host_network(estate, own, HOST)
    assert facts(estate, Entity(EntityKind.NIC, "vmnic0", HOST)) == {
        "driver": "nmlx5_core",
        "connected": True,
        "speed_mbit_per_s": 25000,
        "duplex": "full",
        "network": "vSwitch0",
    }
    down = facts(estate, Entity(EntityKind.NIC, "vmnic1", HOST))
    assert (down["connected"], down["speed_mbit_per_s"]) == (False, 0)
    assert facts(estate, Entity(EntityKind.NIC, "vmk1", HOST)) == {
        "type": "vmkernel",
        "network": "vMotion",
        "mtu_bytes": 9000,
        "traffic": ["vmotion"],
    }


def test_a_distributed_port_group(estate: VcenterInventory) -> None:
    dvs = vim.dvs.VmwareDistributedVirtualSwitch
    yes, average = vim.BoolPolicy(value=True), vim.LongPolicy(value=2 * 10**9)
    port = dvs.VmwarePortConfigPolicy(
        inShapingPolicy=vim.dvs.DistributedVirtualPort.TrafficShapingPolicy(enabled=yes, averageBandwidth=average),
        securityPolicy=dvs.SecurityPolicy(allowPromiscuous=yes),
        uplinkTeamingPolicy=dvs.UplinkPortTeamingPolicy(
            uplinkPortOrder=dvs.UplinkPortOrderPolicy(activeUplinkPort=["Uplink 1"], standbyUplinkPort=["Uplink 2"])
        ),
    )
    config = vim.dvs.DistributedVirtualPortgroup.ConfigInfo(defaultPortConfig=port, autoExpand=True)
    networks.add_port_group(estate, {"name": "database", "key": "dvportgroup-9", "config": config}, {})
    assert facts(estate, Entity(EntityKind.PORT_GROUP, "database")) == {
        "active_uplinks": ["Uplink 1"],
        "standby_uplinks": ["Uplink 2"],
        "shaping_in": True,
        "shaping_mbit_per_s": 2000.0,
        "promiscuous": True,
        "ports_elastic": True,
    }
    assert estate.port_groups == {"dvportgroup-9": "database"}


def test_a_cluster_and_its_rules(estate: VcenterInventory) -> None:
    estate.vms |= {"vm-1": VM, "vm-2": Entity(EntityKind.VM, "db02", HOST)}
    both = [vim.VirtualMachine("vm-1"), vim.VirtualMachine("vm-2"), vim.VirtualMachine("vm-template")]
    rules = [
        vim.cluster.AntiAffinityRuleSpec(name="apart", enabled=True, vm=both),
        vim.cluster.AffinityRuleSpec(name="joined", enabled=True, vm=both),
        vim.cluster.AntiAffinityRuleSpec(name="off", enabled=False, vm=both),
        vim.cluster.VmHostRuleInfo(name="licences", enabled=True),
    ]
    config = vim.cluster.ConfigInfoEx(
        drsConfig=vim.cluster.DrsConfigInfo(enabled=True, defaultVmBehavior="partiallyAutomated"),
        dasConfig=vim.cluster.DasConfigInfo(enabled=True, hostMonitoring="disabled", admissionControlEnabled=False),
        vsanConfigInfo=vim.vsan.cluster.ConfigInfo(enabled=True, vsanEsaEnabled=False),
        rule=rules,
    )
    own = {"name": "prod", "host": [vim.HostSystem("host-1")], "configurationEx": config, "alarmActionsEnabled": True}
    own["summary"] = vim.ClusterComputeResource.Summary(currentEVCModeKey="intel-broadwell")
    cluster = clusters.add_cluster(estate, own, {"300": 1})
    clusters.add_rules(estate, cluster, config)
    assert facts(estate, cluster) == {
        "host_count": 1,
        "drs_enabled": True,
        "drs_automation": "partially-automated",
        "drs_rules": {"apart": "separate: db01, db02", "joined": "together: db01, db02"},
        "ha_enabled": True,
        "ha_admission_control": False,
        "ha_host_monitoring": False,
        "evc_mode": "intel-broadwell",
        "vsan_enabled": True,
        "vsan_esa": False,
        "alarm_actions_enabled": True,
        "statistics_levels": {"300": 1},
    }
    assert estate.cluster_of == {"host-1": "prod"}


def test_a_datastore_its_device_and_its_cluster(estate: VcenterInventory) -> None:
    device = estate.add(Entity(EntityKind.DEVICE, "naa.6", HOST))
    volume = vim.host.VmfsVolume(
        version="6.82", ssd=True, extent=[vim.host.ScsiDisk.Partition(diskName="naa.6", partition=1)]
    )
    gib = 1024**3
    own = {
        "name": "ssd",
        "summary": vim.Datastore.Summary(
            type="VMFS", capacity=100 * gib, freeSpace=40 * gib, uncommitted=30 * gib, accessible=True
        ),
        "info": vim.host.VmfsDatastoreInfo(vmfs=volume),
        "host": [vim.Datastore.HostMount(key=vim.HostSystem("host-1"), mountInfo=vim.host.MountInfo(mounted=True))],
        "vm": [vim.VirtualMachine("vm-1")],
        "iormConfiguration": vim.StorageResourceManager.IORMConfigInfo(enabled=True, congestionThreshold=25),
    }
    clusters.add_datastore(estate, own, "datastore-1")
    config = vim.storageDrs.PodConfigInfo(
        enabled=True,
        ioLoadBalanceEnabled=True,
        defaultVmBehavior="automated",
        ioLoadBalanceConfig=vim.storageDrs.IoLoadBalanceConfig(ioLatencyThreshold=15),
    )
    pod = {"childEntity": [vim.Datastore("datastore-1")], "podStorageDrsEntry.storageDrsConfig.podConfig": config}
    clusters.add_pod(estate, pod)
    assert facts(estate, Entity(EntityKind.DATASTORE, "ssd")) == {
        "type": "vmfs",
        "capacity_gib": 100.0,
        "free_gib": 40.0,
        "provisioned_gib": 90.0,
        "accessible": True,
        "version": "6.82",
        "medium": "flash",
        "extent_count": 1,
        "host_count": 1,
        "hosts": ["esx01"],
        "vm_count": 1,
        "sioc_enabled": True,
        "sioc_threshold_ms": 25,
        "sdrs_io_balance": True,
        "sdrs_latency_threshold_ms": 15,
        "sdrs_automation": "automated",
    }
    assert facts(estate, device) == {"datastore": "ssd"}
    assert estate.luns == {"ssd": "naa.6"}


class OldCenter:
    """A property collector that does not know one property and has lost one object."""

    def __init__(self, unknown: str, gone: str) -> None:
        self.unknown, self.gone, self.calls = unknown, gone, 0

    def RetrievePropertiesEx(self, specs: list[Any], options: object) -> Any:
        assert options is not None
        self.calls += 1
        paths, objects = specs[0].propSet[0].pathSet, [spec.obj for spec in specs[0].objectSet]
        if self.unknown in paths:
            raise vmodl.query.InvalidProperty(name=self.unknown)
        lost = [one for one in objects if one._GetMoId() == self.gone]
        if lost:
            raise vmodl.fault.ManagedObjectNotFound(obj=lost[0])
        found = [_content(one, paths) for one in objects]
        return vmodl.query.PropertyCollector.RetrieveResult(objects=found)


def _content(one: Any, paths: list[str]) -> Any:
    values = [vmodl.DynamicProperty(name=name, val="x") for name in paths]
    return vmodl.query.PropertyCollector.ObjectContent(obj=one, propSet=values)


class Content:
    def __init__(self, collector: OldCenter) -> None:
        self.propertyCollector = collector


def test_what_an_older_vcenter_does_not_have_is_left_out() -> None:
    collector = OldCenter("config.numaInfo", "vm-2")
    asked = [vim.VirtualMachine("vm-1"), vim.VirtualMachine("vm-2")]
    found = list(
        vcenter_session.objects(
            Content(collector), vim.VirtualMachine, ["name", "config.numaInfo"], asked, refused=Counter()
        )
    )
    assert [(one._GetMoId(), own) for one, own in found] == [("vm-1", {"name": "x"})]
    assert collector.calls == 3


def test_objects_with_refused_properties_are_counted() -> None:
    refused, fault = Counter[str](), vim.fault.NoPermission(privilegeId="System.Read")
    whole, part = vim.VirtualMachine("vm-1"), vim.VirtualMachine("vm-2")
    missing = [vmodl.query.PropertyCollector.MissingProperty(path="config.hardware", fault=fault)]
    told = [_content(whole, ["name"]), _content(part, ["name"])]
    told[1].missingSet = missing
    assert list(vcenter_session.read_answers(iter(told), refused)) == [(whole, {"name": "x"}), (part, {"name": "x"})]
    assert refused == {"VirtualMachine": 1}


def test_nothing_named_asks_nothing() -> None:
    collector = OldCenter("none", "none")
    assert list(vcenter_session.objects(Content(collector), vim.VirtualMachine, ["name"], [], refused=Counter())) == []
    assert collector.calls == 0
