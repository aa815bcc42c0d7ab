"""The inventory file: what the user knows about hosts, VMs, disks and databases, in YAML.

Its keys are the settings of ``settings.csv``; parts that are entities of their own are lists under the key `PARTS`
gives.
``docs/guides/inventory.md`` shows a whole file.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from leadline.core.io.yaml_text import YamlFault, load_yaml
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Role
from leadline.estate.knowledge.settings import settings

# Which lists of parts an entity may have, and what kind the parts are. Ordered from leaf to root.
PARTS: dict[EntityKind, dict[str, EntityKind]] = {
    EntityKind.DATABASE: {
        "statements": EntityKind.STATEMENT,
        "changed_settings": EntityKind.SETTING,
    },
    EntityKind.VIRTUAL_SWITCH: {
        "port_groups": EntityKind.PORT_GROUP,
    },
    EntityKind.VM: {
        "adapters": EntityKind.ADAPTER,
        "disks": EntityKind.VIRTUAL_DISK,
        "nics": EntityKind.NIC,
    },
    EntityKind.HOST: {
        "vms": EntityKind.VM,
        "devices": EntityKind.DEVICE,
        "adapters": EntityKind.ADAPTER,
        "nics": EntityKind.NIC,
        "switches": EntityKind.VIRTUAL_SWITCH,
        "datastores": EntityKind.DATASTORE,
        "disk_groups": EntityKind.DISK_GROUP,
        "numa_nodes": EntityKind.NUMA_NODE,
    },
    EntityKind.GUEST: {
        "devices": EntityKind.BLOCK_DEVICE,
        "databases": EntityKind.DATABASE,
        "nics": EntityKind.NIC,
    },
}
TOP = {
    "clusters": EntityKind.CLUSTER,
    "hosts": EntityKind.HOST,
    "vms": EntityKind.VM,  # VMs whose host is not known
    "guests": EntityKind.GUEST,
    "datastores": EntityKind.DATASTORE,
    "switches": EntityKind.VIRTUAL_SWITCH,  # distributed switches
}
_STRICT = ConfigDict(extra="forbid")


class VirtualDevice(BaseModel):
    """Another virtual device: floppy, cdrom, serial, parallel, usb, sound."""

    model_config = _STRICT

    name: str
    type: str
    connected: bool | None = None


class Event(BaseModel):
    """Something that happened once: a time (ISO 8601 with zone), a kind, and what was said of it."""

    model_config = _STRICT

    time: datetime
    kind: str
    text: str | None = None


_PLAIN: dict[str, Any] = {
    "number": float | None,
    "text": str | None,
    "flag": bool | None,
    "role": Role | None,
    "list": list[str | float] | None,
    "map": dict[str, str | float] | None,
    "parts": list[VirtualDevice] | None,
    "events": list[Event] | None,
}


@cache
def _model(kind: EntityKind) -> type[BaseModel]:
    """The shape of an entity of a kind: its name, its settings, its parts."""
    fields: dict[str, Any] = {"name": (str, ...)}
    for setting in settings().get(kind, {}).values():
        if setting.type == "count":
            fields[setting.name] = (int | None, Field(None, ge=0, description=setting.meaning))
        else:
            fields[setting.name] = (_PLAIN[setting.type], Field(None, description=setting.meaning))
    if kind is EntityKind.VM:
        fields["guest"] = (str | None, Field(None, description="host name inside, when it differs from the VM's name"))
    if kind is EntityKind.CLUSTER:
        fields["hosts"] = (list[str], Field([], description="names of its hosts"))
    for key, part in PARTS.get(kind, {}).items():
        fields[key] = (_list_of(_model(part)), [])
    return create_model(f"{kind.value}-part", __config__=_STRICT, **fields)


def _list_of(model: type[BaseModel]) -> Any:  # noqa: ANN401 - a type made at run time
    return list.__class_getitem__(model)


@cache
def _document() -> type[BaseModel]:
    fields: dict[str, Any] = {key: (_list_of(_model(kind)), []) for key, kind in TOP.items()}
    fields["leadline_inventory"] = (int, Field(1, ge=1, le=1, description="version of this format"))
    return create_model("inventory-file", __config__=_STRICT, **fields)


def parse_inventory(text: str, name: str) -> Inventory:
    """The inventory a YAML text describes.

    Raises:
        InputError: it is not YAML, or a key or value is not one of the format.
    """
    try:
        content = load_yaml(text).content
        document = _document().model_validate({} if content is None else content)
    except YamlFault as error:
        raise InputError(
            f"{name}:{error.line}" if error.line else name,
            found=f"not YAML ({error.problem})",
            expected="an inventory file",
            advice="See the guide on inventories for a whole example.",
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "top level"
        raise InputError(
            f"{name}: {place}",
            found=first["msg"].lower(),
            expected="a key and value of the inventory format",
            advice="See the guide on inventories for a whole example.",
        ) from error
    inventory = Inventory()
    for key, kind in TOP.items():
        for part in getattr(document, key):
            _add(inventory, kind, part, None, name)
    return inventory


def _add(inventory: Inventory, kind: EntityKind, part: BaseModel, parent: Entity | None, source: str) -> Entity:
    """Add an entity with its settings and parts."""
    model: Any = part
    entity = Entity(kind, model.name, parent)
    values = {setting: _plain(getattr(part, setting)) for setting in settings().get(kind, {})}
    inventory.add(entity, source, **values)
    for key, part_kind in PARTS.get(kind, {}).items():
        for child in getattr(part, key):
            _add(inventory, part_kind, child, entity, source)
    if kind is EntityKind.VM and model.guest is not None:
        inventory.links[inventory.add(Entity(EntityKind.GUEST, model.guest), source)] = entity
    if kind is EntityKind.CLUSTER:
        for host in model.hosts:
            inventory.add(Entity(EntityKind.HOST, host), source, cluster=model.name)
    if kind is EntityKind.DATABASE and parent is not None:
        for device, role in ((model.data_device, Role.DATA), (model.wal_device, Role.WAL)):
            if device is not None:
                inventory.add(Entity(EntityKind.BLOCK_DEVICE, device, parent), source, role=role.value)
    return entity


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever the setting's type is
    if isinstance(value, Role):
        return value.value
    if isinstance(value, list):
        return [item.model_dump(mode="json") if isinstance(item, BaseModel) else item for item in value]
    return value
