from __future__ import annotations

import pytest

from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.inventory_file import parse_inventory

TEXT = """
leadline_inventory: 1
hosts:
  - name: esx01
    core_count: 32
    vms:
      - name: db01
        guest: db01.example
        vcpu_count: 8
        adapters: [{name: scsi0, type: pvscsi}]
        disks: [{name: "scsi0:0", adapter: scsi0, role: data, iops_limit: 1000}]
        virtual_devices: [{name: floppy0, type: floppy, connected: false}]
guests:
  - name: db01.example
    databases: [{name: main, engine: postgresql, data_device: sdb, wal_device: sdc}]
"""
VM = Entity(EntityKind.VM, "db01", Entity(EntityKind.HOST, "esx01"))
GUEST = Entity(EntityKind.GUEST, "db01.example")


def test_everything_arrives_under_its_entity() -> None:
    inventory = parse_inventory(TEXT, "inv.yaml")
    assert inventory.get(VM, "vcpu_count") == 8
    assert inventory.get(Entity(EntityKind.ADAPTER, "scsi0", VM), "type") == "pvscsi"
    assert inventory.get(Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", VM), "iops_limit") == 1000
    assert inventory.get(Entity(EntityKind.BLOCK_DEVICE, "sdc", GUEST), "role") == "wal"
    assert inventory.get(VM, "virtual_devices") == [{"name": "floppy0", "type": "floppy", "connected": False}]
    assert inventory.vm_of(GUEST) == VM
    assert inventory.get(VM, "adapters") is None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("hosts: [", "inv.yaml:1"),
        ("hosts: [{name: a, cores: 4}]", "hosts.0.cores"),
        ("guests: [{name: g, devices: [{name: sda, role: fast}]}]", "guests.0.devices.0.role"),
        ("leadline_inventory: 2", "leadline_inventory"),
        ("- 1", "top level"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_inventory(text, "inv.yaml")
    assert place in caught.value.where
