"""Entities and the inventory tree: what there is, how it hangs together, and what is known about its settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.core.model.vocabulary import EntityKind

_LINE_ENDS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True, eq=False)
class Entity:
    """Something that has metrics or settings: its kind, its name and what it is part of.

    Two entities are the same when kind, name and all ancestors are. A name is one line.

    >>> esx = Entity(EntityKind.HOST, "esx01")
    >>> str(Entity(EntityKind.VCPU, "0", Entity(EntityKind.VM, "db01", esx)))
    'host:esx01/vm:db01/vcpu:0'
    """

    kind: EntityKind
    name: str
    parent: Entity | None = None
    _hash: int = field(init=False, repr=False)  # an entity is looked up far more often than it is made

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            object.__setattr__(self, "name", _LINE_ENDS.sub("\N{SYMBOL FOR NEWLINE}", self.name))
        object.__setattr__(self, "_hash", hash((self.kind, self.name, self.parent)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Entity) or self._hash != other._hash:
            return False
        return self.kind is other.kind and self.name == other.name and self.parent == other.parent

    def __reduce__(self) -> tuple[type[Entity], tuple[EntityKind, str, Entity | None]]:
        # Another process hashes names otherwise: made anew there.
        return Entity, (self.kind, self.name, self.parent)

    def __str__(self) -> str:
        label = f"{self.kind.value}:{self.name}"
        return f"{self.parent}/{label}" if self.parent is not None else label

    def lineage(self) -> Iterator[Entity]:
        """The entity itself, then its ancestors, nearest first."""
        entity: Entity | None = self
        while entity is not None:
            yield entity
            entity = entity.parent

    def ancestor(self, kind: EntityKind) -> Entity | None:
        """The nearest of itself and its ancestors that is of ``kind``."""
        entity: Entity | None = self
        while entity is not None and entity.kind is not kind:
            entity = entity.parent
        return entity

    @classmethod
    def parse(cls, text: str) -> Entity:
        """The entity whose ``str()`` is ``text``; names may hold any character but the sequence ``/kind:``."""
        entity: Entity | None = None
        pending = ""
        for part in text.split("/"):
            kind, colon, name = part.partition(":")
            if colon and kind in _KINDS:
                if pending:
                    entity = _finish(pending, entity)
                pending = part
            else:
                pending = f"{pending}/{part}"
        del name
        return _finish(pending, entity)

    def label(self) -> str:
        """A short name for people: the nearest VM, guest or host, then the thing itself."""
        owner = next(
            (e for e in self.lineage() if e.kind in (EntityKind.VM, EntityKind.GUEST, EntityKind.HOST)),
            None,
        )
        if owner is None or owner is self:
            return self.name
        noun = {EntityKind.VCPU: "vCPU ", EntityKind.PCPU: "PCPU ", EntityKind.CPU: "CPU "}.get(self.kind, "")
        return f"{owner.name} {noun}{self.name}"


_KINDS = {kind.value for kind in EntityKind}


def _finish(part: str, parent: Entity | None) -> Entity:
    kind, _, name = part.partition(":")
    return Entity(EntityKind(kind), name, parent)


class EntityColumn(tuple[Entity, ...]):
    """The entities of the rows of series groups, one object for all groups that have the same.

    Attributes:
        part_of: the column that it is a part of, and its first row there; None where it is whole.
    """

    part_of: tuple[EntityColumn, int] | None
    _rows: dict[Entity, list[int]] | None
    _kinds: frozenset[EntityKind] | None
    _parts: dict[tuple[int, int], EntityColumn]
    _chosen: dict[tuple[EntityKind, ...], tuple[list[int], EntityColumn]]

    def __new__(cls, entities: Sequence[Entity], part_of: tuple[EntityColumn, int] | None = None) -> EntityColumn:
        """A column; itself where it is one."""
        if isinstance(entities, EntityColumn) and part_of is None:
            return entities
        column = super().__new__(cls, entities)
        column.part_of, column._rows, column._kinds, column._parts, column._chosen = part_of, None, None, {}, {}
        return column

    @property
    def rows(self) -> dict[Entity, list[int]]:
        """The rows of each entity."""
        if self._rows is None:
            self._rows = {}
            for row, entity in enumerate(self):
                self._rows.setdefault(entity, []).append(row)
        return self._rows

    @property
    def kinds(self) -> frozenset[EntityKind]:
        """The kinds of the entities."""
        if self._kinds is None:
            self._kinds = frozenset(entity.kind for entity in self)
        return self._kinds

    def part(self, first: int, end: int) -> EntityColumn:
        """The entities of some rows, the same object at every call."""
        if (first, end) == (0, len(self)):
            return self
        if (first, end) not in self._parts:
            self._parts[first, end] = EntityColumn(self[first:end], (self, first))
        return self._parts[first, end]

    def of_kinds(self, kinds: tuple[EntityKind, ...]) -> tuple[list[int], EntityColumn]:
        """The rows of entities of some kinds, and these, the same object at every call."""
        if kinds not in self._chosen:
            rows = [row for row, entity in enumerate(self) if entity.kind in kinds]
            self._chosen[kinds] = (rows, EntityColumn([self[row] for row in rows]))
        return self._chosen[kinds]


@dataclass(frozen=True, slots=True)
class Fact:
    """A setting of an entity, where it was read, and whether it is a guess."""

    value: Any
    source: str
    guessed: bool = False


@dataclass(slots=True)
class Inventory:
    """Entities with their settings.

    A setting given by the user or read from a configuration wins over one found in a capture, and both win over a
    guess; the rank decides, not the order of merging.

    Attributes:
        facts: the settings of each entity by name.
        links: the VM that a guest runs in.
        gone: entities that a live source has no more, or has read anew: whoever keeps what that source, by its name,
            gave of them before forgets it.
    """

    facts: dict[Entity, dict[str, Fact]] = field(default_factory=dict)
    links: dict[Entity, Entity] = field(default_factory=dict)  # guest -> its VM
    gone: dict[Entity, str] = field(default_factory=dict)
    _children: dict[Entity, list[Entity]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _of_kind: dict[tuple[Entity, EntityKind], list[Entity]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _vms: dict[str, list[Entity]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _members: dict[str, list[Entity]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _kinds: dict[EntityKind, list[Entity]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _names: dict[tuple[EntityKind, str], list[Entity]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _guests: dict[Entity, list[Entity]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _counted: tuple[int, int] | None = field(default=None, init=False, repr=False, compare=False)
    version: int = field(default=0, init=False, repr=False, compare=False)  # counts changes

    def add(self, entity: Entity, source: str, /, *, guessed: bool = False, **settings: Any) -> Entity:  # noqa: ANN401
        """Record that an entity exists, with settings; None values are "not known" and are not kept."""
        self.version += 1
        facts = self.facts.setdefault(entity, {})
        for name, value in settings.items():
            if value is not None:
                _keep(facts, name, Fact(value, source, guessed))
        if "cluster" in settings:
            self._counted = None  # the index holds the hosts of each cluster
        return entity

    def merge(self, other: Inventory) -> None:
        """Take in what another inventory knows; this one's facts win where both are of the same rank."""
        self.version += 1
        for entity, facts in other.facts.items():
            known = self.facts.setdefault(entity, {})
            for name, fact in facts.items():
                _keep(known, name, fact)
        self._counted = None
        for guest, vm in other.links.items():
            self.links.setdefault(guest, vm)
        self.gone |= other.gone

    def without(self, gone: Mapping[Entity, str]) -> Inventory:
        """What is known without the settings that some entities have from a source; one that has no others is left out.

        Args:
            gone: the source by the entity.
        """
        facts = {}
        for entity, known in self.facts.items():
            if entity in gone:
                others = {name: fact for name, fact in known.items() if fact.source != gone[entity]}
                if others:
                    facts[entity] = others
            else:
                facts[entity] = known
        return Inventory(facts, {guest: vm for guest, vm in self.links.items() if vm in facts or vm not in gone})

    def get(self, entity: Entity, name: str) -> Any:  # noqa: ANN401
        """The value of a setting, or None when it is not known."""
        fact = self.facts.get(entity, {}).get(name)
        return None if fact is None else fact.value

    def fact(self, entity: Entity, name: str) -> Fact | None:
        """The setting with its source, or None."""
        return self.facts.get(entity, {}).get(name)

    def settings(self, entity: Entity) -> Mapping[str, Fact]:
        """Every known setting of an entity."""
        return self.facts.get(entity, {})

    def of_kind(self, kind: EntityKind) -> list[Entity]:
        """Entities of a kind, in the order they were found."""
        self._index()
        return list(self._kinds.get(kind, ()))

    def named(self, kind: EntityKind, name: str) -> list[Entity]:
        """Entities of a kind with a name, whatever they are part of."""
        self._index()
        return list(self._names.get((kind, name), ()))

    def members(self, cluster: str) -> list[Entity]:
        """Hosts whose setting ``cluster`` is a name."""
        self._index()
        return list(self._members.get(cluster, ()))

    def guests_of(self, vm: Entity) -> list[Entity]:
        """Guests that run in a VM, as `vm_of` has it."""
        self._index()
        return list(self._guests.get(vm, ()))

    def children(self, parent: Entity, kind: EntityKind | None = None) -> list[Entity]:
        """Direct children of an entity, of one kind or of all."""
        self._index()
        known = self._children.get(parent, [])
        if kind is None:
            return list(known)
        key = (parent, kind)
        if key not in self._of_kind:  # a host has thousands of parts, and is asked for its devices once per disk
            self._of_kind[key] = [e for e in known if e.kind is kind]
        return list(self._of_kind[key])

    def vm_of(self, guest: Entity) -> Entity | None:
        """The VM a guest runs in: as linked, else the only VM with the guest's name (case and domain ignored)."""
        if guest in self.links:
            return self.links[guest]
        self._index()
        same = self._vms.get(_short(guest.name), [])
        return same[0] if len(same) == 1 else None

    def _index(self) -> None:
        """Make the index of kinds, children, VMs by short name and hosts by cluster anew when entities were added."""
        counted = (len(self.facts), len(self.links))
        if self._counted == counted:
            return
        self._children, self._of_kind, self._vms, self._members, self._kinds = {}, {}, {}, {}, {}
        self._names, self._guests = {}, {}
        for entity, facts in self.facts.items():
            self._names.setdefault((entity.kind, entity.name), []).append(entity)
            self._kinds.setdefault(entity.kind, []).append(entity)
            if entity.parent is not None:
                self._children.setdefault(entity.parent, []).append(entity)
            if entity.kind is EntityKind.VM:
                self._vms.setdefault(_short(entity.name), []).append(entity)
            if entity.kind is EntityKind.HOST and "cluster" in facts:
                self._members.setdefault(str(facts["cluster"].value), []).append(entity)
        self._counted = counted
        for guest in self._kinds.get(EntityKind.GUEST, ()):
            vm = self.vm_of(guest)
            if vm is not None:
                self._guests.setdefault(vm, []).append(guest)

    def related(self, one: Entity, other: Entity) -> bool:
        """Whether one is the other, part of the other, or they are a guest (part) and its VM (part) or VM's host."""
        ones, others = self.full_lineage(one), self.full_lineage(other)
        return one in others or other in ones or bool(machines(ones) & machines(others))

    def full_lineage(self, entity: Entity) -> set[Entity]:
        """An entity, its ancestors, its guest's VM and that one's ancestors, and the devices its disks lie on."""
        lineage = list(entity.lineage())
        guest = entity.ancestor(EntityKind.GUEST)
        vm = self.vm_of(guest) if guest is not None else None
        if vm is not None:
            lineage.extend(vm.lineage())
        vm = vm or entity.ancestor(EntityKind.VM)
        host = (vm or entity).ancestor(EntityKind.HOST)
        cluster = None if host is None else self.get(host, "cluster")
        if cluster is not None:
            lineage.append(Entity(EntityKind.CLUSTER, str(cluster)))
        stores = self._stores_of(entity, vm)
        return set(lineage) | stores | self._disk_groups_of(vm or entity, cluster, stores)

    def _disk_groups_of(self, entity: Entity, cluster: object, stores: set[Entity]) -> set[Entity]:
        """Disk groups a VM or host uses: any of its cluster, unless its datastores are known to be no vSAN."""
        if cluster is None or entity.kind not in (EntityKind.VM, EntityKind.HOST):
            return set()
        types = {self.get(store, "type") for store in stores if store.kind is EntityKind.DATASTORE}
        if types and not types & {None, "vsan"}:
            return set()
        self._index()
        members = self._members.get(str(cluster), ())
        return {group for host in members for group in self.children(host, EntityKind.DISK_GROUP)}

    def _stores_of(self, entity: Entity, vm: Entity | None) -> set[Entity]:
        """Devices and datastores a disk (or any disk of a machine) lies on; where none is named, any of the host's."""
        host = None if vm is None else vm.ancestor(EntityKind.HOST)
        if vm is None or host is None:
            return set()
        disk = entity.ancestor(EntityKind.VIRTUAL_DISK)
        block = entity.ancestor(EntityKind.BLOCK_DEVICE)
        name = None if block is None else self.get(block, "virtual_disk")
        if name is not None:
            disk = Entity(EntityKind.VIRTUAL_DISK, str(name), vm)
        kinds = ((EntityKind.DEVICE, "device"), (EntityKind.DATASTORE, "datastore"))
        disks = [disk] if disk is not None else self.children(vm, EntityKind.VIRTUAL_DISK)
        named = {(k, str(self.get(d, s))) for d in disks for k, s in kinds if self.get(d, s) is not None}
        # A datastore that several hosts share stands alone in inventories, under a host in its recordings.
        alone = {Entity(k, name) for k, name in named} & self.facts.keys()
        stores = alone | {Entity(k, name, host) for k, name in named if Entity(k, name) not in alone}
        return stores or {e for k, _ in kinds for e in self.children(host, k)}


def _short(name: str) -> str:
    return name.split(".", maxsplit=1)[0].casefold()


def machines(lineage: set[Entity]) -> set[Entity]:
    """The VMs and guests of a lineage."""
    return {entity for entity in lineage if entity.kind in (EntityKind.VM, EntityKind.GUEST)}


def _keep(facts: dict[str, Fact], name: str, fact: Fact) -> None:
    known = facts.get(name)
    if known is None or (known.guessed and not fact.guessed):
        facts[name] = fact
