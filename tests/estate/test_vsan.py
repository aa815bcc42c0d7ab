from __future__ import annotations

import pytest

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.versions import vsphere_version
from leadline.core.model.vocabulary import EntityKind, Role
from leadline.estate.knowledge.datastores import DatastoreUse
from leadline.estate.knowledge.vsan import (
    cache_gib,
    capacity_medium,
    cluster_of,
    database_disks,
    disk_groups_of,
    is_esa,
    roles_guessed,
    vsan_version,
)
from leadline.formats.inventory_file import parse_inventory

CLUSTER = Entity(EntityKind.CLUSTER, "c1")
HOST = Entity(EntityKind.HOST, "esx01")
OTHER = Entity(EntityKind.HOST, "esx02")
GROUP = Entity(EntityKind.DISK_GROUP, "dg1", OTHER)
VM = Entity(EntityKind.VM, "db01", HOST)
DISK = Entity(EntityKind.VIRTUAL_DISK, "scsi0:1", VM)


def inventory(disk: str = "role: wal", datastore: str = "", group: str = "cache_gib: 800") -> Inventory:
    return parse_inventory(
        f"""
clusters: [{{name: c1, vsan_version: 7.0U3, hosts: [esx01, esx02]}}]
hosts:
  - name: esx01
    vms: [{{name: db01, disks: [{{name: 'scsi0:1', {disk}}}]}}]
    datastores: [{datastore}]
  - name: esx02
    disk_groups: [{{name: dg1, {group}}}]
  - name: esx03
    disk_groups: [{{name: dg1, cache_gib: 100, capacity_medium: hdd}}]
""",
        "test",
    )


def test_a_disk_group_of_the_cluster_is_related_to_the_vms_and_guests_in_it() -> None:
    known = inventory()
    guest = known.add(Entity(EntityKind.GUEST, "db01"), "test")
    for part in (VM, DISK, guest):
        assert known.related(GROUP, part)
        assert known.related(part, GROUP)
        assert known.related(CLUSTER, part)
    elsewhere = Entity(EntityKind.DISK_GROUP, "dg1", Entity(EntityKind.HOST, "esx03"))
    assert not known.related(elsewhere, VM)
    assert not known.related(HOST, OTHER)
    assert known.related(CLUSTER, HOST)
    assert known.related(GROUP, HOST)


def test_a_disk_group_is_not_related_to_a_vm_on_another_kind_of_datastore() -> None:
    lun = inventory("datastore: lun1", "{name: lun1, type: vmfs}")
    assert not lun.related(GROUP, VM)
    vsan = inventory("datastore: v1", "{name: v1, type: vsan}")
    assert vsan.related(GROUP, VM)


def test_a_cluster_named_later_counts() -> None:
    known = Inventory()
    for entity in (HOST, OTHER, VM, GROUP):
        known.add(entity, "test")
    assert not known.related(GROUP, VM)
    for host in (HOST, OTHER):
        known.add(host, "test", cluster="c1")
    assert known.related(GROUP, VM)
    merged = Inventory()
    for entity in (HOST, OTHER, VM, GROUP):
        merged.add(entity, "test")
    assert not merged.related(GROUP, VM)
    merged.merge(known)
    assert merged.related(GROUP, VM)


def test_architecture_and_medium_are_known_or_said_to_be_unknown() -> None:
    known = inventory()
    assert cluster_of(known, DISK) == CLUSTER
    assert disk_groups_of(known, CLUSTER) == [GROUP]
    assert is_esa(known, GROUP) is False
    assert is_esa(known, HOST) is None
    assert capacity_medium(known, GROUP) is None
    assert capacity_medium(known, Entity(EntityKind.HOST, "esx03")) == "hdd"
    assert vsan_version(known, GROUP) == (7, 0, 3)
    assert cache_gib(known, CLUSTER) == 800.0
    known.add(CLUSTER, "test", vsan_esa=True)
    assert capacity_medium(known, HOST) == "flash"


def test_one_rotating_group_makes_a_hybrid_cluster() -> None:
    known = inventory(group="capacity_medium: flash")
    known.add(Entity(EntityKind.DISK_GROUP, "dg2", OTHER), "test", capacity_medium="HDD")
    assert capacity_medium(known, CLUSTER) == "hdd"
    assert capacity_medium(known, GROUP) == "flash"


@pytest.mark.parametrize(
    ("disk", "datastore", "count"),
    [
        ("role: wal", "", 1),
        ("role: wal, datastore: v1", "{name: v1, type: vsan}", 1),
        ("role: wal, datastore: v1", "", 1),
        ("role: wal, datastore: lun1", "{name: lun1, type: vmfs}", 0),
        ("role: wal, device: naa.1", "", 0),
        ("role: system", "", 0),
    ],
)
def test_disks_of_databases_on_vsan(disk: str, datastore: str, count: int) -> None:
    known = inventory(disk, datastore)
    assert len(database_disks(known, CLUSTER)) == count
    assert len(database_disks(known, GROUP)) == count
    assert not database_disks(known, CLUSTER, Role.TEMP)


def test_guessed_roles_are_told_only_where_all_are() -> None:
    known = Inventory()
    other = Entity(EntityKind.VIRTUAL_DISK, "scsi0:2", VM)
    known.add(DISK, "name", guessed=True, role="wal")
    assert roles_guessed(known, [DISK]) == ("db01 scsi0:1 holds wal",)
    known.add(other, "inventory", role="data")
    assert roles_guessed(known, [DISK, other]) == ()


def test_io_control_is_judged_by_the_hosts_that_mount_a_datastore() -> None:
    store = Entity(EntityKind.DATASTORE, "lun1")
    for version, applies in (("8.0.3", False), ("8.0 U2", True), ("7.0.3", True), ("unknown", None)):
        known = inventory("role: data, datastore: lun1")
        known.add(store, "test")
        known.add(HOST, "test", version=version)
        use = DatastoreUse(known)
        assert use.hosts(store) == {HOST}
        assert use.io_control_applies(store) is applies
        assert use.database_disks(store) == [DISK]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("VMware ESXi 8.0.2 build-22380479", (8, 0, 2)),
        ("7.0U3", (7, 0, 3)),
        ("7.0 U3", (7, 0, 3)),
        ("7.0 Update 1c", (7, 0, 1)),
        ("8.0", (8, 0, 0)),
        ("8.0U2", (8, 0, 2)),
        ("8.0 U2", (8, 0, 2)),
        ("8.0u2b", (8, 0, 2)),
        ("6.7", (6, 7, 0)),
        ("6.7U3", (6, 7, 3)),
        ("vSAN 9.0", (9, 0, 0)),
        (8.0, (8, 0, 0)),
        (9, (9, 0, 0)),
        ("", None),
        (None, None),
        ("unknown", None),
    ],
)
def test_versions(text: object, version: tuple[int, int, int] | None) -> None:
    assert vsphere_version(text) == version
