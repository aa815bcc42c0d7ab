"""What is concluded from a guest's settings."""

from __future__ import annotations

from math import isnan
from typing import Any

import pytest

from leadline.core.model.entities import Entity, Inventory
from leadline.estate.knowledge.guest_settings import (
    huge_pages_mib,
    is_virtual,
    is_windows,
    number_entry,
    shared_memory_mib,
)

GUEST = Entity.parse("guest:db01")
DATABASE = Entity.parse("guest:db01/database:main")


def of(entity: Entity, **settings: Any) -> Inventory:
    inventory = Inventory()
    inventory.add(GUEST, "test")
    inventory.add(entity, "test", **settings)
    return inventory


@pytest.mark.parametrize(
    ("settings", "expected_mib"),
    [
        ({"shared_memory_mib": 4096}, 4096.0),
        ({"engine": "postgresql", "parameters": {"shared_buffers": 131072.0}}, 1024.0),
        ({"engine": "PostgreSQL", "parameters": {"shared_buffers": "8GB"}}, 8192.0),
        ({"engine": "postgresql", "parameters": {"shared_memory_size": 8600, "shared_buffers": "8GB"}}, 8600.0),
        ({"engine": "postgresql", "parameters": {"shared_memory_size": "8600MB"}}, 8600.0),
        ({"engine": "oracle", "parameters": {"sga_max_size": 0, "sga_target": 1073741824}}, 1024.0),
    ],
)
def test_shared_memory(settings: dict[str, Any], expected_mib: float) -> None:
    assert shared_memory_mib(of(DATABASE, **settings), DATABASE) == expected_mib


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"engine": "postgresql", "parameters": {"shared_buffers": "plenty"}},
        {"engine": "iris", "parameters": {"shared_buffers": 131072}},
        {"shared_memory_mib": float("inf")},
    ],
)
def test_shared_memory_that_is_not_known(settings: dict[str, Any]) -> None:
    assert isnan(shared_memory_mib(of(DATABASE, **settings), DATABASE))


def test_huge_pages() -> None:
    assert huge_pages_mib(of(GUEST, huge_page_count=3, huge_page_size_kib=1048576), GUEST) == 3072.0
    assert huge_pages_mib(of(GUEST, sysctl={"vm.nr_hugepages": 512}), GUEST) == 1024.0
    assert isnan(huge_pages_mib(of(GUEST), GUEST))


def test_entries_that_are_no_numbers() -> None:
    assert number_entry(of(GUEST, sysctl={"vm.swappiness": "60"}), GUEST, "sysctl", "vm.swappiness") == 60.0
    assert isnan(number_entry(of(GUEST, sysctl={"kernel.sem": "1 2"}), GUEST, "sysctl", "kernel.sem"))
    assert isnan(number_entry(of(GUEST), GUEST, "sysctl", "vm.swappiness"))


def test_what_a_guest_is_is_known_from_itself_or_its_vm() -> None:
    inventory = of(GUEST)
    assert (is_virtual(inventory, GUEST), is_windows(inventory, GUEST)) == (False, False)
    inventory.add(Entity.parse("vm:DB01"), "test", guest_os="windows2019srv_64Guest")
    assert (is_virtual(inventory, GUEST), is_windows(inventory, GUEST)) == (True, True)
    assert is_virtual(of(GUEST, virtualisation="kvm"), GUEST)
    assert not is_virtual(of(GUEST, virtualisation="none"), GUEST)
