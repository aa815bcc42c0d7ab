"""What runs where: clusters, tiers, databases, NUMA nodes, boot settings and waiting."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.ready import ready_p95_of_host
from leadline.estate.knowledge import placement

HOST = Entity(EntityKind.HOST, "esx01")
VM = Entity(EntityKind.VM, "db01", HOST)


@pytest.mark.parametrize(
    ("tier", "first"),
    [
        ("1", True),
        ("1.0", True),
        ("Tier 1", True),
        ("tier-1", True),
        ("production", True),
        ("Prod", True),
        ("mission critical", True),
        ("10", False),
        ("2", False),
        ("pre-production", False),
        ("test", False),
    ],
)
def test_first_tier_by_its_names(tier: str, first: bool) -> None:
    inventory = Inventory()
    inventory.add(VM, "test", tier=tier)
    assert placement.is_tier_one(inventory, VM) is first


def test_tier_that_is_not_known_is_neither() -> None:
    assert placement.is_tier_one(Inventory(), VM) is None


def test_database_by_engine_in_its_guest_or_by_role_that_is_no_guess() -> None:
    inventory = Inventory()
    other = Entity(EntityKind.VM, "db02", HOST)
    for vm in (VM, other):
        inventory.add(vm, "test")
    inventory.add(Entity(EntityKind.VIRTUAL_DISK, "scsi0:1", VM), "test", guessed=True, role="data")
    assert placement.database_vms(inventory) == set()
    guest = inventory.add(Entity(EntityKind.GUEST, "DB02.example"), "test")
    inventory.add(Entity(EntityKind.DATABASE, "main", guest), "test", engine="postgresql")
    assert placement.database_vms(inventory) == {other}
    inventory.add(Entity(EntityKind.VIRTUAL_DISK, "scsi0:2", VM), "test", role="wal")
    assert placement.database_vms(inventory) == {VM, other}


def test_cluster_of_a_host_is_the_known_one_or_made_from_its_name() -> None:
    inventory = Inventory()
    inventory.add(HOST, "test", cluster="c1")
    made = placement.cluster_of(inventory, HOST)
    assert made == Entity(EntityKind.CLUSTER, "c1")
    known = inventory.add(Entity(EntityKind.CLUSTER, "c1"), "test", drs_enabled=True)
    assert placement.hosts_by_cluster(inventory) == {known: [HOST]}
    assert placement.cluster_of(inventory, Entity(EntityKind.HOST, "esx02")) is None


def test_a_node_is_not_known_until_cores_and_nodes_are() -> None:
    inventory = Inventory()
    inventory.add(HOST, "test", core_count=24, memory_mib=262144.0)
    assert math.isnan(placement.node_cores(inventory, HOST))
    assert math.isnan(placement.node_cores(inventory, None))
    inventory.add(HOST, "test", numa_node_count=2)
    assert placement.node_cores(inventory, HOST) == 12.0
    assert placement.node_memory_mib(inventory, HOST) == 131072.0


@pytest.mark.parametrize(("text", "on"), [("TRUE", True), (1.0, True), ("0", False), ("maybe", None), (None, None)])
def test_boot_setting_as_it_may_be_written(text: object, on: bool | None) -> None:
    inventory = Inventory()
    inventory.add(HOST, "test", kernel_settings={} if text is None else {"hyperthreadingMitigation": text})
    assert placement.kernel_flag(inventory, HOST, "hyperthreadingMitigation") is on


def test_waiting_is_that_of_the_worst_vm_of_the_host_alone() -> None:
    builder = CaptureBuilder("test", "test", "test")
    times = 10**9 * np.arange(5, 105, 5, dtype=np.int64)
    for name, host, ready in (
        ("db01", HOST, 4.0),
        ("db02", HOST, 9.0),
        ("db03", Entity(EntityKind.HOST, "esx02"), 50.0),
    ):
        vm = Entity(EntityKind.VM, name, host)
        builder.add_series("cpu_ready_pct", vm, times, np.full(20, ready), interval_s=5.0)
        builder.add_series("cpu_max_limited_pct", vm, times, np.full(20, 2.0), interval_s=5.0)
    meta = RuleMeta("TST100", Layer.HYPERVISOR_CPU, Severity.LOW, (), ())
    context = RuleContext("test", meta, "", builder.build())
    assert context.table(ready_p95_of_host) == {HOST: 7.0, Entity(EntityKind.HOST, "esx02"): 48.0}
