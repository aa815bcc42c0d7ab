"""Entities of several captures brought together: the same VM, guest or disk under one name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity, Fact, Inventory
from leadline.core.model.vocabulary import EntityKind, Role

# Judgement: words people put into the names of disks, LUNs, datastores and mount points.
_ROLE_WORDS: tuple[tuple[Role, tuple[str, ...]], ...] = (
    (Role.WAL, ("wal", "xlog", "redo", "journal", "jrn", "tlog", "translog", "pglog", "sqllog")),
    (Role.TEMP, ("temp", "tmp")),
    (Role.BACKUP, ("backup", "bkp", "dump", "archive")),
    (Role.DATA, ("data", "pgdata", "dbf", "mdf")),
)
# Settings that hold what recordings may call an entity instead of by its name.
_IDENTITIES = ("uuid", "vrops_id")
_IDENTIFIED_KINDS = (EntityKind.CLUSTER, EntityKind.HOST, EntityKind.VM, EntityKind.DISK_GROUP, EntityKind.DEVICE)
READY_SUM = "cpu_ready_pct_sum"
_POSTGRESQL = "postgresql"
_CLUSTER_NAME = re.compile(r"\d{1,2}-[\w.-]+")  # as Debian names clusters: 15-main
_DISK_KINDS = (EntityKind.BLOCK_DEVICE, EntityKind.VIRTUAL_DISK, EntityKind.DEVICE, EntityKind.DATASTORE)


def resolve(capture: Capture) -> Capture:
    """The capture with unnamed guests, VMs of unknown host and bare ids joined to what they must be, and roles guessed.

    A recording without a host name is of the only named guest, if there is only one. A VM without a host is the only
    VM of its name. What is called by an id is the only entity of its kind that has this id as a setting. All are facts
    of the set of recordings, so the order of files does not matter.
    """
    mapping = _renames(capture)
    if mapping:
        rename = _renamer(mapping)
        groups = []
        for group in capture.groups:
            entities = [rename(entity) for entity in group.entities]
            groups.append(group.relabelled(entities=entities))
        capture = Capture(groups, capture.sources, _renamed_inventory(capture.inventory, rename), capture.results)
    guess_roles(capture.inventory)
    capture.groups = [part for group in capture.groups for part in _per_vcpu(group, capture.inventory)]
    return capture


def _per_vcpu(group: SeriesGroup, inventory: Inventory) -> Iterator[SeriesGroup]:
    """Ready time that was recorded as a sum, per vCPU where another recording or the inventory tells their count."""
    if group.metric != READY_SUM:
        yield group
        return
    counts = [inventory.get(entity, "vcpu_count") for entity in group.entities]
    known = [row for row, count in enumerate(counts) if count]
    if known:
        part = group.take(known)
        per_vcpu = part.values / np.array([float(counts[row]) for row in known])[:, np.newaxis]
        yield replace(part, metric="cpu_ready_pct", values=per_vcpu)
    unknown = [row for row, count in enumerate(counts) if not count]
    if unknown:
        yield group.take(unknown)


def guess_roles(inventory: Inventory) -> None:
    """Give disks whose name, mount or datastore holds a telling word a role, marked as guessed."""
    for kind in _DISK_KINDS:
        for entity in inventory.of_kind(kind):
            hints = [entity.name, *(inventory.get(entity, key) for key in ("mount", "datastore", "file"))]
            text = " ".join(str(hint) for hint in hints if hint).casefold()
            role = next((role for role, words in _ROLE_WORDS if any(word in text for word in words)), None)
            if role is not None:
                facts = inventory.facts[entity]
                facts.setdefault("role", Fact(role.value, f"guessed from the name {text}", guessed=True))


def _renames(capture: Capture) -> dict[Entity, Entity]:
    mapping: dict[Entity, Entity] = {}
    guests = [guest for guest in capture.inventory.of_kind(EntityKind.GUEST) if guest != UNNAMED_GUEST]
    if len(guests) == 1 and UNNAMED_GUEST in capture.inventory.facts:
        mapping[UNNAMED_GUEST] = guests[0]
    vms = capture.inventory.of_kind(EntityKind.VM)
    for orphan in (vm for vm in vms if vm.parent is None):
        homes = [vm for vm in vms if vm.parent is not None and vm.name == orphan.name]
        if len(homes) == 1:
            mapping[orphan] = homes[0]
    return mapping | _identified(capture.inventory, mapping) | _servers(capture.inventory, mapping)


def _servers(inventory: Inventory, mapping: dict[Entity, Entity]) -> dict[Entity, Entity]:
    """A PostgreSQL server a recording does not name is the only server of the guest that has a cluster's name."""
    servers: dict[Entity | None, list[Entity]] = {}
    nameless: list[Entity] = []
    for entity in inventory.of_kind(EntityKind.DATABASE):
        if inventory.get(entity, "engine") != _POSTGRESQL:
            continue
        if entity.name == _POSTGRESQL:
            nameless.append(entity)
        elif _CLUSTER_NAME.fullmatch(entity.name) and entity.parent is not None:
            guest = mapping.get(entity.parent, entity.parent)
            servers.setdefault(guest, []).append(Entity(entity.kind, entity.name, guest))
    renamed: dict[Entity, Entity] = {}
    for entity in nameless:
        home = None if entity.parent is None else mapping.get(entity.parent, entity.parent)
        candidates = list(dict.fromkeys(servers.get(home, [])))
        if len(candidates) == 1:
            renamed[entity] = candidates[0]
    return renamed


def _identified(inventory: Inventory, mapping: dict[Entity, Entity]) -> dict[Entity, Entity]:
    """For each entity that is named by an id the one that has it; none where two have it or nobody does.

    Only what stands alone is named so: a recording that knows the parent of a thing knows its name.
    """
    identified: dict[Entity, Entity] = {}
    for kind in _IDENTIFIED_KINDS:
        entities = inventory.of_kind(kind)
        owners: dict[str, set[Entity]] = {}
        for entity in entities:
            for key in _IDENTITIES:
                identity = inventory.get(entity, key)
                if identity:
                    owners.setdefault(str(identity).casefold(), set()).add(mapping.get(entity, entity))
        for entity in entities if owners else ():
            same = owners.get(entity.name.casefold(), set()) - {entity} if entity.parent is None else set()
            if len(same) == 1:
                identified[entity] = same.pop()
    return identified


def _renamer(mapping: dict[Entity, Entity]) -> Callable[[Entity], Entity]:
    known = dict(mapping)

    def rename(entity: Entity) -> Entity:
        renamed = known.get(entity)
        if renamed is None:
            parent = None if entity.parent is None else rename(entity.parent)
            renamed = entity if parent is entity.parent else Entity(entity.kind, entity.name, parent)
            known[entity] = renamed
        return renamed

    return rename


def _renamed_inventory(inventory: Inventory, rename: Callable[[Entity], Entity]) -> Inventory:
    renamed = Inventory()
    for entity, facts in inventory.facts.items():
        moved = Inventory({rename(entity): dict(facts)})
        renamed.merge(moved)
    renamed.links = {rename(guest): rename(vm) for guest, vm in inventory.links.items()}
    return renamed
