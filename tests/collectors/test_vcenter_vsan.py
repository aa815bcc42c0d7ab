"""What the vCenter collector makes of vSAN, storage policies, ports and events, which the simulator does not have."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest
import pyVmomi

from leadline.collectors import _vcenter_events as events
from leadline.collectors import _vcenter_host as hosts
from leadline.collectors import _vcenter_network as networks
from leadline.collectors import _vcenter_policies as policies
from leadline.collectors import _vcenter_vsan as vsan
from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_services import Services
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from tests.collectors.conftest import HOST, VM, facts

vim: Any = pyVmomi.vim  # made at run time: no types to check against
pbm: Any = pyVmomi.pbm
vmodl: Any = pyVmomi.vmodl
CLUSTER = Entity(EntityKind.CLUSTER, "prod")
GIB_BLOCKS = 1024**3 // 512
NODE = "5b1f7d1c-0000-1111-2222-0c42a1a1a1a1"
GROUP = Entity(EntityKind.DISK_GROUP, "naa.cache", HOST)


def disk(name: str, *, ssd: bool | None, gib: int = 100) -> Any:
    return vim.host.ScsiDisk(
        key=f"key-{name}",
        canonicalName=name,
        lunType="disk",
        vendor="ACME",
        model="X1",
        ssd=ssd,
        localDisk=True,
        capacity=vim.host.DiskDimensions.Lba(blockSize=512, block=gib * GIB_BLOCKS),
        vsanDiskInfo=vim.vsan.host.VsanDiskInfo(vsanUuid=f"uuid-{name}", formatVersion=15),
    )


def vsan_config(*mappings: Any, enabled: bool = True) -> Any:
    return vim.vsan.host.ConfigInfo(
        enabled=enabled,
        clusterInfo=vim.vsan.host.ConfigInfo.ClusterInfo(uuid="5270dc4d", nodeUuid=NODE),
        storageInfo=vim.vsan.host.ConfigInfo.StorageInfo(diskMapping=list(mappings)),
    )


def mapping(*capacity: Any) -> Any:
    return vim.vsan.host.DiskMapping(ssd=disk("naa.cache", ssd=True, gib=400), nonSsd=list(capacity))


def test_a_disk_group_and_its_devices(estate: VcenterInventory) -> None:
    group = mapping(disk("naa.a", ssd=False), disk("naa.b", ssd=False, gib=300))
    vsan.add_host(estate, HOST, vsan_config(group))
    assert facts(estate, HOST) == {"uuid": NODE}
    assert facts(estate, GROUP) == {
        "uuid": "uuid-naa.cache",
        "cache_device": "naa.cache",
        "cache_gib": 400.0,
        "capacity_devices": ["naa.a", "naa.b"],
        "capacity_device_count": 2,
        "capacity_gib": 400.0,
        "capacity_medium": "hdd",
    }
    device = facts(estate, Entity(EntityKind.DEVICE, "naa.b", HOST))
    assert device == {"uuid": "uuid-naa.b", "size_gib": 300.0, "medium": "hdd"}


@pytest.mark.parametrize(("ssd", "medium"), [((True, True), "flash"), ((True, False), "hdd"), ((True, None), None)])
def test_medium_of_a_disk_group(estate: VcenterInventory, ssd: tuple[bool | None, ...], medium: str | None) -> None:
    capacity = [disk(f"naa.{index}", ssd=flag) for index, flag in enumerate(ssd)]
    vsan.add_host(estate, HOST, vsan_config(mapping(*capacity)))
    assert facts(estate, GROUP).get("capacity_medium") == medium
    assert facts(estate, GROUP)["capacity_device_count"] == len(ssd)


def test_a_host_without_vsan_tells_nothing_of_it(estate: VcenterInventory) -> None:
    vsan.add_host(estate, HOST, vsan_config(mapping(disk("naa.a", ssd=True)), enabled=False))
    vsan.add_host(estate, HOST, None)
    assert estate.inventory.facts == {}


def test_devices_and_adapters_that_serve_vsan(estate: VcenterInventory) -> None:
    hbas = [
        vim.host.BlockHba(key=f"key-{name}", device=name, bus=0, status="online", model="HBA", driver="d")
        for name in ("vmhba0", "vmhba1")
    ]
    path = vim.host.MultipathInfo.Path(
        key="p", name="vmhba1:C0:T0:L0", pathState="active", state="active", adapter="key-vmhba1"
    )
    policy = vim.host.MultipathInfo.LogicalUnitPolicy(policy="VMW_PSP_FIXED")
    unit = vim.host.MultipathInfo.LogicalUnit(key="u", id="u", lun="key-naa.a", path=[path], policy=policy)
    own = {
        "name": "esx01",
        "config.storageDevice.hostBusAdapter": hbas,
        "config.storageDevice.scsiLun": [disk("naa.a", ssd=True)],
        "config.storageDevice.multipathInfo": vim.host.MultipathInfo(lun=[unit]),
        "config.vsanHostConfig": vsan_config(),
    }
    hosts.add_host(estate, own, "host-1")
    assert facts(estate, Entity(EntityKind.ADAPTER, "vmhba1", HOST))["serves_vsan"] is True
    assert "serves_vsan" not in facts(estate, Entity(EntityKind.ADAPTER, "vmhba0", HOST))
    assert facts(estate, Entity(EntityKind.DEVICE, "naa.a", HOST))["uuid"] == "uuid-naa.a"
    assert facts(estate, HOST) == {"uuid": NODE}


def used(name: str, share: float, components: int, owner: str = NODE) -> dict[str, Any]:
    size = 100 * 1024**3
    known = {"uuid": f"uuid-{name}", "owner": owner, "capacity": size, "capacityUsed": int(size * share)}
    return known | {"lsom_objects_count": components}


def test_components_and_fullness_by_host(estate: VcenterInventory) -> None:
    vsan.add_host(estate, HOST, vsan_config(mapping(disk("naa.a", ssd=True), disk("naa.b", ssd=True))))
    told = [used("naa.cache", 0.99, 0), used("naa.a", 0.25, 40), used("naa.b", 0.75, 60)]
    stranger = used("naa.z", 0.5, 7, owner="of another cluster")
    vsan.add_disk_use(estate, CLUSTER, json.dumps({own["uuid"]: own for own in [*told, stranger]}))
    assert facts(estate, HOST) == {
        "uuid": NODE,
        "vsan_component_count": 100,
        "vsan_device_used_pct": [25.0, 75.0],
    }
    assert facts(estate, CLUSTER) == {"vsan_component_count": 100}


@pytest.mark.parametrize("answer", ["BAD", "", "[]", '{"a": 1}', '{"a": {"owner": "x", "capacity": "y"}}'])
def test_a_host_that_cannot_tell_leaves_nothing(estate: VcenterInventory, answer: str) -> None:
    vsan.add_host(estate, HOST, vsan_config())
    vsan.add_disk_use(estate, CLUSTER, answer)
    assert facts(estate, HOST) == {"uuid": NODE}
    assert facts(estate, CLUSTER) == {}


def test_settings_of_the_vsan_service(estate: VcenterInventory) -> None:
    config = vim.vsan.ConfigInfoEx(
        dataEfficiencyConfig=vim.vsan.DataEfficiencyConfig(dedupEnabled=False, compressionEnabled=True),
        dataEncryptionConfig=vim.vsan.DataEncryptionConfig(encryptionEnabled=True),
        perfsvcConfig=vim.cluster.VsanPerfsvcConfig(enabled=False),
    )
    vsan.add_services(estate, CLUSTER, config)
    assert facts(estate, CLUSTER) == {
        "vsan_dedup": False,
        "vsan_compression": True,
        "vsan_encryption": True,
        "vsan_performance_service": False,
    }


def rule(name: str, value: object, space: str = "VSAN") -> Any:
    one = pbm.capability.PropertyInstance(id=name, value=value)
    return pbm.capability.CapabilityInstance(
        id=pbm.capability.CapabilityMetadata.UniqueId(namespace=space, id=name),
        constraint=[pbm.capability.ConstraintInstance(propertyInstance=[one])],
    )


def profile(*rule_sets: list[Any], name: str = "gold", identity: str = "p-1") -> Any:
    sets = [pbm.profile.SubProfileCapabilityConstraints.SubProfile(name="s", capability=own) for own in rule_sets]
    return pbm.profile.CapabilityBasedProfile(
        profileId=pbm.profile.ProfileId(uniqueId=identity),
        name=name,
        constraints=pbm.profile.SubProfileCapabilityConstraints(subProfiles=sets),
    )


CODED = "RAID-5/6 (Erasure Coding) - Capacity"
MIRRORED = "RAID-1 (Mirroring) - Performance"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"hostFailuresToTolerate": 1}, {"vsan_ftt": 1, "vsan_raid": "raid-1"}),
        ({"hostFailuresToTolerate": 0}, {"vsan_ftt": 0, "vsan_raid": "raid-0"}),
        ({"hostFailuresToTolerate": 1, "replicaPreference": CODED}, {"vsan_ftt": 1, "vsan_raid": "raid-5"}),
        ({"hostFailuresToTolerate": 2, "replicaPreference": CODED}, {"vsan_ftt": 2, "vsan_raid": "raid-6"}),
        ({"hostFailuresToTolerate": 2, "replicaPreference": MIRRORED}, {"vsan_ftt": 2, "vsan_raid": "raid-1"}),
        ({"hostFailuresToTolerate": 3, "replicaPreference": CODED}, {"vsan_ftt": 3}),
        (
            {"hostFailuresToTolerate": 1, "subFailuresToTolerate": 2, "replicaPreference": CODED},
            {"vsan_ftt": 2, "vsan_raid": "raid-6"},
        ),
        ({"hostFailuresToTolerate": 1, "subFailuresToTolerate": 0}, {"vsan_ftt": 1, "vsan_raid": "raid-1"}),
        ({"hostFailuresToTolerate": 0, "subFailuresToTolerate": 1}, {"vsan_ftt": 1, "vsan_raid": "raid-1"}),
        ({"stripeWidth": 4}, {"vsan_stripe_count": 4}),
        ({"proportionalCapacity": 100}, {"vsan_space_reservation_pct": 100}),
        ({"forceProvisioning": True}, {"vsan_force_provisioning": True}),
        ({"iopsLimit": 5000}, {"iops_limit": 5000.0}),
        ({"iopsLimit": 0}, {}),
        ({"replicaPreference": CODED}, {}),
    ],
)
def test_what_a_policy_demands(rules: dict[str, Any], expected: dict[str, Any]) -> None:
    found = policies.policy_of(profile([rule(name, value) for name, value in rules.items()]))
    assert (found.name, found.demands) == ("gold", expected)


def test_rules_of_others_and_rule_sets_that_differ_demand_nothing() -> None:
    other = [rule("hostFailuresToTolerate", 1, space="com.acme")]
    assert policies.policy_of(profile(other)).demands == {}
    differing = profile([rule("stripeWidth", 1), rule("forceProvisioning", False)], [rule("stripeWidth", 2)])
    assert policies.policy_of(differing).demands == {"vsan_force_provisioning": False}
    assert policies.policy_of(pbm.profile.CapabilityBasedProfile(name="bare")).demands == {}


class Manager:
    """A profile manager that knows some policies and counts how often it is asked."""

    def __init__(self, known: list[Any], of_disk: dict[str, list[str]], default: Any = None) -> None:
        self.known, self.of_disk, self.default, self.asked = known, of_disk, default, 0

    def QueryProfile(self, resourceType: Any, profileCategory: str) -> list[Any]:
        assert (resourceType.resourceType, profileCategory) == ("STORAGE", "REQUIREMENT")
        return [own.profileId for own in self.known]

    def RetrieveContent(self, ids: list[Any]) -> list[Any]:
        assert len(ids) > 0
        return self.known

    def QueryAssociatedProfiles(self, entities: list[Any]) -> list[Any]:
        self.asked += 1
        answers = []
        for entity in entities:
            assert entity.objectType == "virtualDiskId"
            ids = [pbm.profile.ProfileId(uniqueId=own) for own in self.of_disk.get(entity.key, [])]
            fault = vmodl.fault.ManagedObjectNotFound() if entity.key not in self.of_disk else None
            answers.append(pbm.profile.QueryProfileResult(object=entity, profileId=ids, fault=fault))
        return answers

    def QueryDefaultRequirementProfiles(self, datastores: list[Any]) -> list[Any]:
        if self.default is None:
            raise vim.fault.NoPermission(privilegeId="StorageProfile.View")
        return [pbm.profile.DefaultProfileInfo(datastores=datastores, defaultProfile=self.default)]


def disks(estate: VcenterInventory, store_type: str = "vsan", count: int = 2) -> dict[str, Entity]:
    estate.datastores["datastore-1"] = estate.add(Entity(EntityKind.DATASTORE, "store"), type=store_type)
    made = {f"vm-1:{2000 + i}": Entity(EntityKind.VIRTUAL_DISK, f"scsi0:{i}", VM) for i in range(count)}
    for entity in made.values():
        estate.add(entity, datastore="store")
    return made


GOLD = profile([rule("hostFailuresToTolerate", 0), rule("stripeWidth", 2)])


def test_policies_of_disks(estate: VcenterInventory) -> None:
    asked = disks(estate)
    manager = Manager(
        [GOLD], {"vm-1:2000": ["p-1"], "vm-1:2001": []}, default=profile([rule("cacheReservation", 0)], name="default")
    )
    policies.add_policies(estate, manager, asked)
    assert facts(estate, asked["vm-1:2000"]) == {
        "datastore": "store",
        "storage_policy": "gold",
        "vsan_ftt": 0,
        "vsan_raid": "raid-0",
        "vsan_stripe_count": 2,
    }
    fact = estate.inventory.fact(asked["vm-1:2001"], "storage_policy")
    assert fact is not None
    assert (fact.value, fact.guessed) == ("default", True)
    assert estate.left_out == []


def test_demands_on_vsan_are_nothing_to_another_datastore(estate: VcenterInventory) -> None:
    asked = disks(estate, store_type="vmfs")
    policies.add_policies(estate, Manager([GOLD], {"vm-1:2000": ["p-1"], "vm-1:2001": []}), asked)
    assert facts(estate, asked["vm-1:2000"]) == {"datastore": "store", "storage_policy": "gold"}
    assert facts(estate, asked["vm-1:2001"]) == {"datastore": "store"}
    assert estate.left_out == []


def test_a_disk_the_service_cannot_tell_of_and_a_policy_it_hides(estate: VcenterInventory) -> None:
    asked = disks(estate)
    policies.add_policies(estate, Manager([], {"vm-1:2001": ["hidden"]}, default=GOLD), asked)
    assert all(facts(estate, own) == {"datastore": "store"} for own in asked.values())


def test_refused_defaults_leave_the_rest(estate: VcenterInventory) -> None:
    asked = disks(estate)
    policies.add_policies(estate, Manager([GOLD], {"vm-1:2000": ["p-1"]}), asked)
    assert estate.inventory.get(asked["vm-1:2000"], "storage_policy") == "gold"
    (left_out,) = estate.left_out
    assert "Profile-driven storage view" in left_out


def test_disks_are_asked_for_in_large_lots(estate: VcenterInventory) -> None:
    asked = disks(estate, store_type="vmfs", count=1200)
    manager = Manager([GOLD], {key: ["p-1"] for key in asked})
    policies.add_policies(estate, manager, asked)
    assert manager.asked == 3
    assert all(estate.inventory.get(own, "storage_policy") == "gold" for own in asked.values())


class Refusing:
    """Another service's stub that refuses every method."""

    def InvokeMethod(self, *_: object) -> None:
        raise vim.fault.NoPermission(privilegeId="System.Read")


class Refused(Services):
    @contextmanager
    def at(self, path: str, version: str) -> Iterator[Any]:
        assert path.startswith("/")
        assert version.partition(".")[0] in {"pbm", "vsan"}
        yield Refusing()


def test_what_is_refused_is_left_out_with_a_warning(estate: VcenterInventory) -> None:
    services = Refused(cast("Any", None), ssl.create_default_context(), None)
    estate.vms["vm-1"] = VM
    estate.disks[VM] = {2000: Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", VM)}
    policies.read(estate, services)
    vsan.read_services(estate, services, [(vim.ClusterComputeResource("domain-c1"), CLUSTER)])
    assert [text.partition(" (")[0] for text in estate.left_out] == [
        "storage policies",
        "settings of the vSAN service",
        "results of the vSAN health check",
    ]
    assert estate.inventory.facts == {}


def event(kind: str, host: str, minute: int) -> Any:
    return vim.event.EventEx(
        eventTypeId=kind,
        createdTime=datetime(2026, 11, 20, 12, minute, tzinfo=UTC),
        fullFormattedMessage=f"said of {kind}",
        host=vim.event.HostEventArgument(name=host, host=vim.HostSystem(host)),
    )


def test_outages_of_storage(estate: VcenterInventory) -> None:
    apd, lost = "esx.problem.storage.apd.start", "esx.problem.vmfs.heartbeat.timedout"
    told = [
        event(lost, "host-1", 30),
        event(apd, "host-1", 10),
        event(apd, "host-9", 10),
        event("esx.audit.ssh.enabled", "host-1", 5),
        vim.event.UserLoginSessionEvent(createdTime=datetime(2026, 11, 20, tzinfo=UTC)),
    ]
    events.add_events(estate, told)
    assert facts(estate, HOST) == {
        "events": [
            {"time": "2026-11-20T12:10:00+00:00", "kind": "storage-apd", "text": f"said of {apd}"},
            {"time": "2026-11-20T12:30:00+00:00", "kind": "storage-lost-access", "text": f"said of {lost}"},
        ]
    }


def test_a_quiet_day_is_not_told_of(estate: VcenterInventory) -> None:
    events.add_events(estate, [])
    assert estate.inventory.facts == {}


class Switch:
    """A distributed switch with some ports in use."""

    def __init__(self, used: list[str]) -> None:
        self.used = used

    def _GetMoId(self) -> str:
        return "dvs-1"

    def FetchDVPorts(self, criteria: Any) -> list[Any]:
        assert (criteria.connected, criteria.inside) == (True, True)
        return [vim.dvs.DistributedVirtualPort(key="1", portgroupKey=key) for key in self.used]


def add_group(estate: VcenterInventory, key: str, **own: Any) -> None:
    switch = vim.dvs.VmwareDistributedVirtualSwitch("dvs-1")
    known = {"type": "earlyBinding", "numPorts": 4, "distributedVirtualSwitch": switch} | own
    config = vim.dvs.DistributedVirtualPortgroup.ConfigInfo(**known)
    networks.add_port_group(estate, {"name": key, "key": key, "config": config}, {})


def test_free_ports_of_groups_that_do_not_grow(estate: VcenterInventory) -> None:
    add_group(estate, "fixed", autoExpand=False)
    add_group(estate, "elastic", autoExpand=True)
    add_group(estate, "ephemeral", autoExpand=False, type="ephemeral")
    networks.add_free_ports(estate, Switch(["fixed", "fixed", "fixed"]))
    free = {g.name: facts(estate, g).get("ports_free_count") for g in estate.inventory.of_kind(EntityKind.PORT_GROUP)}
    assert free == {"fixed": 1, "elastic": None, "ephemeral": None}
