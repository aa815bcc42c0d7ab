"""Where the vCenter collector finds the components of virtual disks on vSAN, and how healthy it says they are.

The answers have the shape that VMware's Ruby vSphere Console reads (github.com/vmware/rvc, lib/rvc/modules/vsan.rb):
three tables by UUID, children named ``child-N``, and states as numbers. The console's own sources hold no answer in
full; ids and sizes here are made up.
"""

from __future__ import annotations

import json
import ssl
from typing import Any, cast

import pytest
import pyVmomi

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.guide.walking import walk
from leadline.collectors import _vcenter_vm as machines
from leadline.collectors import _vcenter_vsan_objects as vsan_objects
from leadline.collectors import vcenter
from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Severity
from leadline.faces.words.guides import listed_lines
from tests.collectors.conftest import VM, facts
from tests.collectors.test_vcenter_vsan import Refused

vim: Any = pyVmomi.vim  # made at run time: no types to check against
CLUSTER = Entity(EntityKind.CLUSTER, "prod")
DISK = Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", VM)
ACTIVE, ABSENT, DEGRADED = 5, 6, 9


def uuid(number: int) -> str:
    return f"{number:08x}-e01c-9e33-dada-020010d5dfa3"


OBJECT = uuid(1)
STRANGE_DISK = uuid(999)


def capacity(host: int) -> str:
    return uuid(100 + host)


@pytest.fixture
def vsan(estate: VcenterInventory) -> VcenterInventory:
    """Four hosts of a cluster, each with a disk group, a VM on the first, and the policy that vCenter guesses."""
    estate.datastores["datastore-1"] = estate.add(Entity(EntityKind.DATASTORE, "vsanDatastore"), type="vsan")
    for number in range(1, 5):
        host = estate.hosts[f"host-{number}"] = Entity(EntityKind.HOST, f"esx0{number}")
        estate.add(host, cluster="prod", uuid=uuid(10 + number))
        names = {"cache": uuid(200 + number), "a": capacity(number)}
        for name, device in names.items():
            estate.add(Entity(EntityKind.DEVICE, f"naa.{number}{name}", host), uuid=device)
        group = Entity(EntityKind.DISK_GROUP, f"naa.{number}cache", host)
        estate.add(group, uuid=names["cache"], capacity_devices=[f"naa.{number}a"])
    estate.vms["vm-1"] = estate.add(VM)
    estate.add(DISK, datastore="vsanDatastore")
    estate.objects[DISK] = [OBJECT]
    return estate


def leaf(host: int, state: int | str = ACTIVE, *, kind: str = "Component", disk: str = "") -> dict[str, Any]:
    attributes = {"addressSpace": 53687091200, "componentState": state, "bytesToSync": 0, "ownerId": uuid(10 + host)}
    known = {"componentUuid": uuid(300 + host), "diskUuid": disk or capacity(host)}
    return {"type": kind, "attributes": attributes, **known}


def node(kind: str, *children: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "attributes": {}} | {f"child-{n}": child for n, child in enumerate(children, 1)}


def answered(
    *children: dict[str, Any], identity: str = OBJECT, away: tuple[int, ...] = (), policy: dict[str, Any] | None = None
) -> str:
    """An answer of one object; hosts that are away have no component and no disk in it."""
    here = [number for number in range(1, 5) if number not in away]
    content = node("Configuration", *children) | {"attributes": {"CSN": 12, "addressSpace": 107374182400}}
    config = {"uuid": identity, "owner": uuid(11), "health": "Healthy", "type": "DOM_OBJECT", "content": content}
    described = {"config": config} | ({} if policy is None else {"policy": policy})
    components = {uuid(300 + n): {"uuid": uuid(300 + n), "owner": uuid(10 + n), "content": {}} for n in here}
    disks = {capacity(n): {"owner": uuid(10 + n), "content": {"isSsd": 0, "ssdUuid": uuid(200 + n)}} for n in here}
    return json.dumps({"dom_objects": {identity: described}, "lsom_objects": components, "disk_objects": disks})


class InternalSystem:
    """A host's vSAN internal system that gives one answer and keeps what it was asked for."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), []  # type: ignore[var-annotated]

    def QueryPhysicalVsanDisks(self, props: list[str]) -> str:
        assert "owner" in props
        return json.dumps({capacity(1): {"uuid": capacity(1), "owner": uuid(11), "lsom_objects_count": 7}})

    def QueryVsanObjects(self, uuids: list[str]) -> str:
        self.asked.append(uuids)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def placed(estate: VcenterInventory, answer: str) -> dict[str, Any]:
    vsan_objects.read_placement(estate, CLUSTER, InternalSystem(answer))
    return facts(estate, DISK)


def test_a_mirror_with_a_witness(vsan: VcenterInventory) -> None:
    policy = {"stripeWidth": 1, "hostFailuresToTolerate": "1", "forceProvisioning": 0, "proportionalCapacity": [0, 100]}
    mirror = node("RAID_1", leaf(1), leaf(2))
    assert placed(vsan, answered(mirror, leaf(3, kind="Witness"), policy=policy)) == {
        "datastore": "vsanDatastore",
        "vsan_placement": [
            "esx01 naa.1a in disk group naa.1cache",
            "esx02 naa.2a in disk group naa.2cache",
            "witness esx03 naa.3a in disk group naa.3cache",
        ],
        "vsan_absent_component_count": 0,
        "vsan_raid": "raid-1",
        "vsan_ftt": 1,
        "vsan_stripe_count": 1,
        "vsan_force_provisioning": False,
    }
    assert vsan.left_out == []


def test_erasure_coding(vsan: VcenterInventory) -> None:
    known = placed(vsan, answered(node("RAID_5", *(leaf(number) for number in range(1, 5)))))
    assert known["vsan_raid"] == "raid-5"
    assert [words.partition(" ")[0] for words in known["vsan_placement"]] == ["esx01", "esx02", "esx03", "esx04"]


def test_stripes_of_a_mirror_whose_second_copy_is_away(vsan: VcenterInventory) -> None:
    """The host that is away has no entries: the tree still names it by its id, and its device by the inventory."""
    copies = [node("RAID_0", leaf(1), leaf(3)), node("RAID_0", leaf(2, ABSENT), leaf(2, DEGRADED))]
    known = placed(vsan, answered(node("RAID_1", *copies), leaf(4, kind="Witness"), away=(2,)))
    assert known["vsan_placement"] == [
        "esx01 naa.1a in disk group naa.1cache",
        "esx03 naa.3a in disk group naa.3cache",
        "esx02 naa.2a in disk group naa.2cache (absent)",
        "esx02 naa.2a in disk group naa.2cache (degraded)",
        "witness esx04 naa.4a in disk group naa.4cache",
    ]
    assert (known["vsan_absent_component_count"], known["vsan_raid"]) == (2, "raid-1")


def test_a_disk_nobody_knows(vsan: VcenterInventory) -> None:
    """Its host is known by the component's owner; without that only the disk's id is left."""
    stranger = leaf(9, ABSENT, disk=STRANGE_DISK)
    known = placed(vsan, answered(node("RAID_1", leaf(1, disk=STRANGE_DISK), stranger)))
    assert known["vsan_placement"] == [f"esx01 {STRANGE_DISK}", f"an unknown host {STRANGE_DISK} (absent)"]


def test_a_disk_of_a_host_that_is_away_is_known_by_either_id(vsan: VcenterInventory) -> None:
    by_owner, by_device = leaf(2, ABSENT, disk=STRANGE_DISK), leaf(3, ABSENT)
    del by_device["attributes"]["ownerId"]
    known = placed(vsan, answered(node("RAID_1", by_owner, by_device), away=(2, 3)))
    assert known["vsan_placement"] == [
        f"esx02 {STRANGE_DISK} (absent)",
        "esx03 naa.3a in disk group naa.3cache (absent)",
    ]


def test_a_disk_the_hosts_do_not_list_has_its_group_from_the_answer(vsan: VcenterInventory) -> None:
    whole = json.loads(answered(leaf(1, disk=STRANGE_DISK)))
    whole["disk_objects"][STRANGE_DISK] = {"owner": uuid(11), "content": {"isSsd": 0, "ssdUuid": uuid(201)}}
    known = placed(vsan, json.dumps(whole))
    assert known["vsan_placement"] == [f"esx01 {STRANGE_DISK} in disk group naa.1cache"]


def test_a_witness_outside_the_cluster_and_a_host_without_disk_groups(vsan: VcenterInventory) -> None:
    far = vsan.hosts["host-9"] = vsan.add(Entity(EntityKind.HOST, "witness"), uuid=uuid(19))
    vsan.add(Entity(EntityKind.DEVICE, "mpx.1", far), uuid=capacity(9))
    known = placed(vsan, answered(leaf(1), leaf(9, kind="Witness")))
    assert known["vsan_placement"][1] == "witness witness mpx.1"
    assert "vsan_raid" not in known


def test_children_in_the_order_of_their_numbers_and_states_as_text(vsan: VcenterInventory) -> None:
    many = node("Concatenation", *(leaf(1 + number % 4, str(ACTIVE)) for number in range(11)))
    known = placed(vsan, answered({key: many[key] for key in sorted(many, reverse=True)}))
    assert [words[4] for words in known["vsan_placement"]] == list("12341234123")
    assert known["vsan_absent_component_count"] == 0


def test_a_state_without_a_name_is_not_active(vsan: VcenterInventory) -> None:
    known = placed(vsan, answered(leaf(1, 42)))
    assert known["vsan_placement"] == ["esx01 naa.1a in disk group naa.1cache (state 42)"]
    assert known["vsan_absent_component_count"] == 1


def test_what_the_policy_service_said_is_kept(vsan: VcenterInventory) -> None:
    vsan.add(DISK, vsan_ftt=2, vsan_raid="raid-6")
    policy = {"hostFailuresToTolerate": 1, "subFailuresToTolerate": 1, "stripeWidth": 3}
    known = placed(vsan, answered(node("RAID_1", leaf(1), leaf(2)), policy=policy))
    assert (known["vsan_ftt"], known["vsan_raid"], known["vsan_stripe_count"]) == (2, "raid-6", 3)


TREE_WITHOUT_PARTS = {"dom_objects": {OBJECT: {"config": {"content": {"type": "Configuration", "child-1": 5}}}}}


@pytest.mark.parametrize(
    "answer",
    ["BAD", "", "[]", "{}", '{"dom_objects": 3}', '{"dom_objects": {"a": null}}', json.dumps(TREE_WITHOUT_PARTS)],
)
def test_a_host_that_does_not_know_the_objects_is_one_note(vsan: VcenterInventory, answer: str) -> None:
    assert placed(vsan, answer) == {"datastore": "vsanDatastore"}
    assert vsan.left_out == [
        "placement of disks on vSAN cluster prod (the host does not say where the objects of 1 disks lie)"
    ]


def test_tables_that_are_none_still_give_the_tree(vsan: VcenterInventory) -> None:
    whole = json.loads(answered(leaf(1)))
    known = placed(vsan, json.dumps({"dom_objects": whole["dom_objects"], "lsom_objects": None}))
    assert known["vsan_placement"] == ["esx01 naa.1a in disk group naa.1cache"]


def test_one_host_that_answers_is_asked(vsan: VcenterInventory) -> None:
    vsan.cluster_of |= {"host-1": "prod", "host-2": "prod", "host-3": "prod"}
    first, second = InternalSystem(answered(leaf(1))), InternalSystem(answered(leaf(2)))
    services = Refused(cast("Any", None), ssl.create_default_context(), None)
    asked = [(vim.ClusterComputeResource("domain-c1"), CLUSTER)]
    vcenter._add_vsan(vsan, services, asked, {"host-2": first, "host-3": second})
    assert (first.asked, second.asked) == ([[OBJECT]], [])
    assert facts(vsan, DISK)["vsan_placement"] == ["esx01 naa.1a in disk group naa.1cache"]
    assert facts(vsan, CLUSTER) == {"vsan_component_count": 7}
    assert vsan.left_out[-1] == "health of vSAN objects (it needs the Read-only role on the cluster)"


class RefusingSystem:
    def QueryVsanObjects(self, uuids: list[str]) -> str:
        raise vim.fault.NoPermission(privilegeId="System.Read")


def test_a_refusal_is_one_note(vsan: VcenterInventory) -> None:
    vsan_objects.read_placement(vsan, CLUSTER, RefusingSystem())
    assert vsan.left_out == ["placement of disks on vSAN cluster prod (it needs the Read-only role on hosts)"]
    assert facts(vsan, DISK) == {"datastore": "vsanDatastore"}


def test_only_disks_on_vsan_of_the_cluster_are_asked_for(vsan: VcenterInventory) -> None:
    vsan.datastores["datastore-2"] = vsan.add(Entity(EntityKind.DATASTORE, "vvol"), type="VVOL")
    far = vsan.add(Entity(EntityKind.HOST, "esx77"), cluster="other")
    others = {
        Entity(EntityKind.VIRTUAL_DISK, "scsi0:1", VM): (uuid(2), "vvol"),
        Entity(EntityKind.VIRTUAL_DISK, "scsi0:2", VM): ("naa.600", "vsanDatastore"),
        Entity(EntityKind.VIRTUAL_DISK, "d", Entity(EntityKind.VM, "x", far)): (uuid(3), "vsanDatastore"),
        Entity(EntityKind.VIRTUAL_DISK, "d", Entity(EntityKind.VM, "nowhere")): (uuid(4), "vsanDatastore"),
    }
    for disk, (identity, store) in others.items():
        vsan.add(disk, datastore=store)
        vsan.objects[disk] = [identity]
    system = InternalSystem(answered(leaf(1)))
    vsan_objects.read_placement(vsan, CLUSTER, system)
    assert system.asked == [[OBJECT]]
    assert vsan.left_out == []


def test_nothing_is_asked_where_no_disk_is_on_vsan(estate: VcenterInventory) -> None:
    system = InternalSystem("BAD")
    vsan_objects.read_placement(estate, CLUSTER, system)
    assert (system.asked, estate.left_out) == ([], [])


def test_lots_of_a_hundred_and_a_shared_disk_once(vsan: VcenterInventory) -> None:
    for number in range(250):
        disk = vsan.add(Entity(EntityKind.VIRTUAL_DISK, f"scsi1:{number}", VM), datastore="vsanDatastore")
        vsan.objects[disk] = [uuid(1000 + number // 2)]
    lots = [answered(leaf(1)), answered(leaf(2), identity=uuid(1124))]
    system = InternalSystem(*lots)
    vsan_objects.read_placement(vsan, CLUSTER, system)
    assert [len(asked) for asked in system.asked] == [100, 26]
    assert "vsan_placement" in facts(vsan, Entity(EntityKind.VIRTUAL_DISK, "scsi1:249", VM))
    assert len(vsan.left_out) == 1


def test_objects_of_a_disk_and_of_its_snapshots(estate: VcenterInventory) -> None:
    info = vim.vm.device.VirtualDisk.FlatVer2BackingInfo
    base = info(fileName="[vsanDatastore] a/db01.vmdk", diskMode="persistent", backingObjectId=uuid(2))
    delta = info(
        fileName="[vsanDatastore] a/db01-000001.vmdk", diskMode="persistent", backingObjectId=OBJECT, parent=base
    )
    flat = info(fileName="[vmfs] a/db02.vmdk", diskMode="persistent")
    devices = [
        vim.vm.device.VirtualDisk(key=2000 + n, controllerKey=0, unitNumber=n, capacityInKB=1, backing=backing)
        for n, backing in enumerate((delta, flat))
    ]
    machines.add_vm(
        estate, {"name": "db01", "config.hardware": vim.vm.VirtualHardware(device=devices)}, machines.now_utc()
    )
    (objects,) = estate.objects.values()
    assert objects == [OBJECT, uuid(2)]


def test_components_of_all_objects_of_a_disk_with_snapshots(vsan: VcenterInventory) -> None:
    vsan.objects[DISK] = [OBJECT, uuid(2)]
    table = json.loads(answered(leaf(1)))
    table["dom_objects"] |= json.loads(answered(leaf(2, ABSENT), identity=uuid(2)))["dom_objects"]
    known = placed(vsan, json.dumps(table))
    assert [words[:5] for words in known["vsan_placement"]] == ["esx01", "esx02"]
    assert known["vsan_absent_component_count"] == 1
    assert vsan.left_out == []


def healths(**states: list[str]) -> Any:
    detail = [vim.host.VsanObjectHealth(numObjects=len(ids), health=name, objUuids=ids) for name, ids in states.items()]
    health = vim.host.VsanObjectOverallHealth(objectHealthDetail=detail)
    return vim.cluster.VsanObjectIdentityAndHealth(health=health)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"healthy": [OBJECT, uuid(2)]}, "healthy"),
        ({"healthy": [OBJECT]}, None),
        ({}, None),
        ({"healthy": [OBJECT], "inaccessible": [uuid(2)]}, "inaccessible"),
        (
            {"reducedavailabilitywithnorebuilddelaytimer": [OBJECT.upper()]},
            "reduced-availability-with-no-rebuild-delay-timer",
        ),
        ({"remoteAccessible": [OBJECT, uuid(2)]}, None),
    ],
)
def test_health_is_that_of_the_worst_object(
    vsan: VcenterInventory, states: dict[str, list[str]], expected: str | None
) -> None:
    vsan.objects[DISK] = [OBJECT, uuid(2)]
    reference = vim.ClusterComputeResource("domain-c1")

    def query(cluster: Any, objUuids: list[str], **options: bool) -> Any:
        assert (cluster, objUuids) == (reference, [OBJECT, uuid(2)])
        assert options == {"includeHealth": True, "includeObjIdentity": False, "includeSpaceSummary": False}
        return healths(**states)

    vsan_objects.read_health(vsan, [(reference, CLUSTER)], query)
    assert facts(vsan, DISK).get("vsan_object_health") == expected


def test_every_state_of_health_has_its_word() -> None:
    known = {str(state) for state in vim.host.VsanObjectHealth.VsanObjectHealthState.values}
    assert known - set(vsan_objects._HEALTH) == {"remoteAccessible", "VsanObjectHealthState_Unknown"}
    assert {word.replace("-", "") for word in vsan_objects._HEALTH.values()} == set(vsan_objects._HEALTH)


def test_the_guide_and_the_rule_read_it_unchanged(vsan: VcenterInventory) -> None:
    placed(vsan, answered(node("RAID_1", leaf(1), leaf(2, ABSENT)), away=(2,)))
    vsan.add(DISK, vsan_object_health="reduced-availability-with-no-rebuild-delay-timer")
    builder = CaptureBuilder("vc", "vcenter", "vCenter")
    builder.inventory.merge(vsan.inventory)
    capture = builder.build()
    diagnosis = diagnose(capture)
    (finding,) = [one for one in diagnosis.findings if one.rule == "vsan-object-unhealthy"]
    assert finding.severity is Severity.HIGH
    assert "1 of its components absent" in finding.summary
    by_title = {one.step.title: one for one in walk("vsan", diagnosis, capture.inventory).steps}
    ((label, value),) = listed_lines(by_title["Host"])
    assert label == DISK.label()
    assert value.startswith("esx01 naa.1a in disk group naa.1cache; esx02 naa.2a")
