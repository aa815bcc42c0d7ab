from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leadline.app.read.resolve import resolve
from leadline.core.contracts.importer import UNNAMED_GUEST
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

HOST = Entity(EntityKind.HOST, "esx01")
TIMES = np.array([1, 2], dtype=np.int64)


def recording(*entities: Entity) -> Capture:
    builder = CaptureBuilder("a", "a", "a")
    for entity in entities:
        builder.add_series("guest_run_queue_count", entity, TIMES, np.zeros(2))
        for part in entity.lineage():
            builder.inventory.add(part, "a")
    return builder.build()


def entities_of(capture: Capture) -> set[str]:
    return {str(group.entities[row]) for group, row in capture.series()}


def test_an_unnamed_guest_is_the_only_named_one() -> None:
    named = Entity(EntityKind.GUEST, "db01")
    disk = Entity(EntityKind.BLOCK_DEVICE, "sda", UNNAMED_GUEST)
    merged = resolve(Capture.merged([recording(named), recording(disk)]))
    assert entities_of(merged) == {"guest:db01", "guest:db01/block-device:sda"}


def test_with_two_named_guests_it_stays_unnamed() -> None:
    guests = [Entity(EntityKind.GUEST, name) for name in ("db01", "db02")]
    merged = resolve(Capture.merged([recording(*guests), recording(UNNAMED_GUEST)]))
    assert str(UNNAMED_GUEST) in entities_of(merged)


def test_a_vm_without_host_is_the_one_of_its_name_and_keeps_its_facts() -> None:
    orphan, homed = Entity(EntityKind.VM, "db01"), Entity(EntityKind.VM, "db01", HOST)
    facts = recording()
    facts.inventory.add(Entity(EntityKind.ADAPTER, "scsi0", orphan), "db01.vmx", type="lsilogic")
    facts.inventory.add(orphan, "db01.vmx", vcpu_count=8)
    for captures in ([recording(homed), facts], [facts, recording(homed)]):
        merged = resolve(Capture.merged(captures))
        assert merged.inventory.get(homed, "vcpu_count") == 8
        assert merged.inventory.get(Entity(EntityKind.ADAPTER, "scsi0", homed), "type") == "lsilogic"


def test_roles_are_guessed_from_names_and_said_to_be() -> None:
    disk = Entity(EntityKind.DEVICE, "LUN-pgwal-01", HOST)
    merged = resolve(recording(disk))
    fact = merged.inventory.fact(disk, "role")
    assert fact is not None
    assert (fact.value, fact.guessed) == ("wal", True)


def test_a_given_role_stays() -> None:
    disk = Entity(EntityKind.DEVICE, "LUN-pgwal-01", HOST)
    capture = recording(disk)
    capture.inventory.add(disk, "inv.yaml", role="data")
    fact = resolve(capture).inventory.fact(disk, "role")
    assert fact is not None
    assert (fact.value, fact.guessed) == ("data", False)


NODE = "5b1f7d1c-0000-1111-2222-0c42a1a1a1a1"


def known(entity: Entity, **settings: Any) -> Capture:
    """An inventory that holds settings of one entity."""
    builder = CaptureBuilder("inv", "inventory", "inventory")
    for part in entity.lineage():
        builder.inventory.add(part, "inv")
    builder.inventory.add(entity, "inv", **settings)
    return builder.build()


@pytest.mark.parametrize(
    ("named", "setting"),
    [
        (Entity(EntityKind.CLUSTER, "prod"), "uuid"),
        (HOST, "uuid"),
        (HOST, "vrops_id"),
        (Entity(EntityKind.DISK_GROUP, "naa.cache", HOST), "uuid"),
        (Entity(EntityKind.DEVICE, "naa.1", HOST), "uuid"),
        (Entity(EntityKind.VM, "db01", HOST), "uuid"),
    ],
)
def test_what_is_called_by_its_id_is_the_entity_that_has_it(named: Entity, setting: str) -> None:
    captures = [recording(Entity(named.kind, NODE)), known(named, **{setting: NODE.upper()})]
    for order in (captures, captures[::-1]):
        merged = resolve(Capture.merged(order))
        assert entities_of(merged) == {str(named)}
        assert Entity(named.kind, NODE) not in merged.inventory.facts


def test_parts_follow_what_is_called_by_its_id() -> None:
    vm = Entity(EntityKind.VM, "db01", HOST)
    disk = Entity(EntityKind.VIRTUAL_DISK, "scsi0:1", Entity(EntityKind.VM, NODE))
    merged = resolve(Capture.merged([recording(disk), known(vm, uuid=NODE)]))
    assert entities_of(merged) == {"host:esx01/vm:db01/virtual-disk:scsi0:1"}


def test_an_id_of_a_vm_without_host_leads_to_the_vm_with_one() -> None:
    vm = Entity(EntityKind.VM, "db01", HOST)
    merged = resolve(
        Capture.merged(
            [
                recording(Entity(EntityKind.VM, NODE)),
                known(Entity(EntityKind.VM, "db01"), uuid=NODE),
                known(vm, uuid=NODE),
            ]
        )
    )
    assert entities_of(merged) == {str(vm)}
    assert merged.inventory.of_kind(EntityKind.VM) == [vm]


def test_an_id_that_two_have_or_another_kind_has_stays() -> None:
    called = Entity(EntityKind.HOST, NODE)
    twins = [known(Entity(EntityKind.HOST, name), uuid=NODE) for name in ("esx01", "esx02")]
    assert str(called) in entities_of(resolve(Capture.merged([recording(called), *twins])))
    device = known(Entity(EntityKind.DEVICE, "naa.1", HOST), uuid=NODE)
    assert str(called) in entities_of(resolve(Capture.merged([recording(called), device])))


def test_what_stands_under_a_parent_keeps_its_name() -> None:
    device = Entity(EntityKind.DEVICE, NODE, Entity(EntityKind.HOST, "esx02"))
    merged = resolve(Capture.merged([recording(device), known(Entity(EntityKind.DEVICE, "naa.1", HOST), uuid=NODE)]))
    assert entities_of(merged) == {str(device)}


def test_a_server_without_a_name_is_the_only_one_with_a_clusters_name() -> None:
    guest = Entity(EntityKind.GUEST, "db01")
    named, other = (Entity(EntityKind.DATABASE, name, guest) for name in ("15-main", "15-second"))
    nameless = Entity(EntityKind.DATABASE, "postgresql", UNNAMED_GUEST)
    shop = Entity(EntityKind.DATABASE, "shop", UNNAMED_GUEST)

    def known(*entities: Entity) -> Capture:
        capture = recording(*entities)
        for entity in entities:
            capture.inventory.add(entity, "a", engine="postgresql")
        return capture

    for order in ([known(named), known(nameless, shop)], [known(nameless, shop), known(named)]):
        assert entities_of(resolve(Capture.merged(order))) == {str(named), "guest:db01/database:shop"}
    two = resolve(Capture.merged([known(named, other), known(nameless)]))
    assert "guest:db01/database:postgresql" in entities_of(two)
