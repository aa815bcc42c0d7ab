"""VMs that run a database, or look as if they did: some settings are only wrong on those."""

from __future__ import annotations

import re

from leadline.core.model.entities import Entity, Fact, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.placement import database_vms
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES

# Judgement: words people put into the names of database servers, when no other letter touches them.
_WORDS = r"db|sql|mssql|ora|oracle|pg|pgsql|postgres|postgresql|mysql|mariadb|mongo|iris|hana"
_NAME = re.compile(rf"(?:^|[^a-z])(?:{_WORDS})(?:$|[^a-z])", re.IGNORECASE)


def likely_database_vms(inventory: Inventory) -> dict[Entity, Fact]:
    """VMs that run a database, with how that is known; guesses from the name of a disk or of the VM are marked.

    A VM that is not among them may still run one: nothing says so.
    """
    facts = {vm: Fact(value=True, source="a database or its disk is named") for vm in database_vms(inventory)}
    for disk in inventory.of_kind(EntityKind.VIRTUAL_DISK):
        role, vm = inventory.fact(disk, "role"), disk.ancestor(EntityKind.VM)
        if vm is not None and role is not None and role.value in DATABASE_ROLES and vm not in facts:
            facts[vm] = Fact(value=True, source=f"the name of its disk {disk.name}", guessed=True)
    for vm in inventory.of_kind(EntityKind.VM):
        if vm not in facts and _NAME.search(vm.name):
            facts[vm] = Fact(value=True, source="its name", guessed=True)
    return facts


def database_guess(vm: Entity, known: Fact) -> tuple[str, ...]:
    """The guess that a finding on this VM rests on, in words; empty where it is known that it runs a database."""
    return (f"{vm.label()} runs a database ({known.source})",) if known.guessed else ()
