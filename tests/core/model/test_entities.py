from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind

HOST = Entity(EntityKind.HOST, "esx01")
VM = Entity(EntityKind.VM, "db01", HOST)
GUEST = Entity(EntityKind.GUEST, "DB01.example")

names = st.text(st.characters(exclude_characters="/"), min_size=1, max_size=20)


@given(st.lists(st.tuples(st.sampled_from(list(EntityKind)), names), min_size=1, max_size=4))
def test_an_entity_is_read_back_from_its_text(parts: list[tuple[EntityKind, str]]) -> None:
    entity = None
    for kind, name in parts:
        entity = Entity(kind, name, entity)
    assert entity is not None
    assert Entity.parse(str(entity)) == entity


def test_names_may_hold_slashes_and_colons() -> None:
    disk = Entity(EntityKind.BLOCK_DEVICE, "mapper/vg0-data:1", GUEST)
    assert Entity.parse(str(disk)) == disk


def test_given_wins_over_guess_in_either_order() -> None:
    for first, second in ((True, False), (False, True)):
        inventory = Inventory()
        for guessed in (first, second):
            inventory.add(VM, "guess" if guessed else "file", guessed=guessed, vcpu_count=2 if guessed else 8)
        assert inventory.get(VM, "vcpu_count") == 8


def test_unknown_settings_are_not_kept() -> None:
    inventory = Inventory()
    inventory.add(VM, "file", vcpu_count=None)
    assert inventory.fact(VM, "vcpu_count") is None


def test_a_guest_is_related_to_the_vm_of_its_name_and_that_vms_host() -> None:
    inventory = Inventory()
    for entity in (HOST, VM, GUEST):
        inventory.add(entity, "file")
    disk = Entity(EntityKind.BLOCK_DEVICE, "sda", GUEST)
    vcpu = Entity(EntityKind.VCPU, "0", VM)
    other = Entity(EntityKind.VM, "web01", HOST)
    assert inventory.vm_of(GUEST) == VM
    assert inventory.related(disk, vcpu)
    assert inventory.related(GUEST, HOST)
    assert not inventory.related(disk, other)


def test_two_vms_of_the_name_are_no_link() -> None:
    inventory = Inventory()
    for vm in (VM, Entity(EntityKind.VM, "db01", Entity(EntityKind.HOST, "esx02"))):
        inventory.add(vm, "file")
    assert inventory.vm_of(GUEST) is None


def test_a_lun_is_related_to_the_disks_on_it_and_where_none_is_named_to_those_of_its_host() -> None:
    inventory = Inventory()
    luns = [Entity(EntityKind.DEVICE, name, HOST) for name in ("naa.1", "naa.2")]
    disk = Entity(EntityKind.BLOCK_DEVICE, "sdb", GUEST)
    virtual = Entity(EntityKind.VIRTUAL_DISK, "scsi0:1", VM)
    for entity in (HOST, VM, GUEST, disk, virtual, *luns):
        inventory.add(entity, "file")
    assert [inventory.related(lun, disk) for lun in luns] == [True, True]
    inventory.add(virtual, "inventory.yaml", device="naa.2")
    inventory.add(disk, "inventory.yaml", virtual_disk="scsi0:1")
    assert [inventory.related(lun, disk) for lun in luns] == [False, True]
    assert [inventory.related(lun, virtual) for lun in luns] == [False, True]


def test_children_are_found_after_more_were_added() -> None:
    inventory = Inventory()
    inventory.add(VM, "file")
    assert inventory.children(HOST) == [VM]
    lun = inventory.add(Entity(EntityKind.DEVICE, "naa.1", HOST), "file")
    assert inventory.children(HOST, EntityKind.DEVICE) == [lun]


def test_a_datastore_that_stands_alone_is_related_to_the_disks_on_it() -> None:
    inventory = Inventory()
    store = Entity(EntityKind.DATASTORE, "ds1")
    disk = Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", VM)
    for entity in (HOST, VM, store):
        inventory.add(entity, "file")
    inventory.add(disk, "file", datastore="ds1")
    assert inventory.related(store, disk)
    assert not inventory.related(Entity(EntityKind.DATASTORE, "ds2"), disk)
