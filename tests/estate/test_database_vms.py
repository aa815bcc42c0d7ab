"""Which VMs count as database servers, and which of them are only guessed."""

from __future__ import annotations

import pytest

from leadline.app.read.resolve import guess_roles
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.database_vms import database_guess, likely_database_vms
from leadline.formats.inventory_file import parse_inventory


def _vm(name: str) -> Entity:
    return Entity(EntityKind.VM, name)


def test_a_database_or_a_role_is_known_and_wins_over_guesses() -> None:
    inventory = parse_inventory(
        """
vms:
  - {name: erp, guest: erp.internal}
  - {name: sql7, disks: [{name: "scsi1:0", role: data}]}
guests: [{name: erp.internal, databases: [{name: main}]}]
""",
        "inv",
    )
    found = likely_database_vms(inventory)
    assert set(found) == {_vm("erp"), _vm("sql7")}
    assert not any(fact.guessed for fact in found.values())
    assert database_guess(_vm("erp"), found[_vm("erp")]) == ()


def test_a_guessed_role_stays_a_guess() -> None:
    inventory = parse_inventory('vms: [{name: erp, disks: [{name: "scsi1:0", datastore: ds-wal}]}]', "inv")
    guess_roles(inventory)
    found = likely_database_vms(inventory)
    assert found[_vm("erp")].guessed
    assert database_guess(_vm("erp"), found[_vm("erp")]) == ("erp runs a database (the name of its disk scsi1:0)",)


@pytest.mark.parametrize("name", ["db01", "prod-SQL-2", "pg", "erp_ora1"])
def test_a_telling_name_is_a_guess(name: str) -> None:
    inventory = Inventory()
    inventory.add(_vm(name), "inv")
    assert likely_database_vms(inventory)[_vm(name)].guessed


@pytest.mark.parametrize("name", ["dbatools", "flora", "web01", "mysqladmin", "feedback"])
def test_a_word_within_a_word_says_nothing(name: str) -> None:
    inventory = Inventory()
    inventory.add(_vm(name), "inv")
    assert likely_database_vms(inventory) == {}
