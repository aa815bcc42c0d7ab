"""What the tests of the vCenter collector's parts share: an inventory being filled, and what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.settings import settings as known_settings

HOST = Entity(EntityKind.HOST, "esx01")
VM = Entity(EntityKind.VM, "db01", HOST)


@pytest.fixture
def estate() -> Iterator[VcenterInventory]:
    """Afterwards every setting that was filled must be one of the catalogue."""
    made = VcenterInventory(Inventory(), "vc", hosts={"host-1": HOST})
    yield made
    unknown = {
        (entity.kind, name)
        for entity, facts in made.inventory.facts.items()
        for name in facts
        if name not in known_settings()[entity.kind]
    }
    assert unknown == set()


def facts(estate: VcenterInventory, entity: Entity) -> dict[str, Any]:
    return {name: fact.value for name, fact in estate.inventory.settings(entity).items()}
