"""The estate of a live vCenter: what the collector reads at the start, and what changed since.

vCenter tells which names, hosts and states changed. A VM that moved, was reconfigured, started or stopped is then read
anew; when hosts, datastores or clusters changed all of these are, and the VMs whose host or datastore is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from http.client import RemoteDisconnected
from typing import Any

from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_live.states import ObjectStates, Reference, State
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import of

Seen = Callable[[str, Entity, dict[str, Any]], None]
_VM, _STORE = "VirtualMachine", "Datastore"


@dataclass(frozen=True, slots=True)
class EstateReader:
    """Reads the inventory of a session into an estate.

    Attributes:
        others: all but VMs.
        vms: VMs by their ids, or all; and says each with its properties.
    """

    others: Callable[[Any, VcenterInventory], None]
    vms: Callable[[Any, VcenterInventory, Seen, Sequence[str] | None], None]


@dataclass(slots=True)
class LiveEstate:
    """The inventory, and who is behind vCenter's ids and the names of instances.

    Attributes:
        name: of the source of settings.
        reader: reads the inventory, whole or in parts.
        estate: the inventory as it is now.
        version: counts its changes.
        on: the objects that have samples now, by reference.
    """

    name: str
    reader: EstateReader
    estate: VcenterInventory = field(init=False)
    version: int = 0
    on: dict[Reference, Entity] = field(default_factory=dict)
    _states: ObjectStates | None = None
    _known: dict[Reference, State] = field(default_factory=dict)
    _nics: dict[Entity, dict[str, str]] = field(default_factory=dict)
    _stores: dict[str, str] = field(default_factory=dict)

    def refresh(self, content: Any) -> Inventory | None:  # noqa: ANN401
        """Read what changed: what is known of that now, and what is gone; None where nothing changed."""
        states = self._asked(content)
        if states == self._known and self.version:
            return None
        changed = {key for key in states.keys() | self._known.keys() if states.get(key) != self._known.get(key)}
        changes = self._read(content, states, changed)
        self._known = states  # not before all was read: what breaks off is read the next time
        self.on = dict(self._with_samples())
        self.version += 1
        return changes

    def _asked(self, content: Any) -> dict[Reference, State]:  # noqa: ANN401
        """The states now, but for those of templates."""
        if self._states is None or self._states.stub is not content.propertyCollector._stub:
            self._states = ObjectStates(content)
        try:
            self._states.update()
        except RemoteDisconnected:  # what a server cannot tell the changes of it tells as a whole
            self._states = ObjectStates(content)
            self._states.update()
        states = {key: dict(state) for key, state in self._states.states.items() if not state.get("config.template")}
        for (kind, key), state in states.items():
            if kind == _STORE:
                self._note_store(state.pop("summary.url", None) or "", key, str(state.get("name")))
        return states

    def part_name(self, owner: Entity, kind: EntityKind, instance: str) -> str:
        """What the inventory calls an instance: a network adapter by its label, a datastore by its name."""
        if kind is EntityKind.NIC:
            return self._nics.get(owner, {}).get(instance, instance)
        if kind is EntityKind.DATASTORE:
            return self._stores.get(instance, instance)
        return instance

    def vcpu_count(self, vm: Entity) -> int | None:
        """How many vCPUs a VM has."""
        count = self.estate.inventory.get(vm, "vcpu_count")
        return None if count is None else int(count)

    def _note_store(self, url: str, key: str, name: str) -> None:
        """A datastore is an instance by the name of its folder, which its address ends with."""
        folder = url.rstrip("/").rpartition("/")[2]
        self._stores |= {key: name} | ({folder: name} if folder else {})

    def _read(self, content: Any, states: dict[Reference, State], changed: set[Reference]) -> Inventory:  # noqa: ANN401
        """Read anew what changed; until it is read what is known stays. Returned is what was read, and what is gone."""
        old = self.estate if self.version else VcenterInventory(Inventory(), self.name)
        others_stay = bool(self.version) and all(kind == _VM for kind, _ in changed)
        new = VcenterInventory(Inventory(), self.name)
        if others_stay:
            new = replace(old, inventory=Inventory(), vms={}, disks={}, objects={})
        else:
            self.reader.others(content, new)
        kept = {} if self._are_stores_others(old, new, states) else _unchanged(old, new, states, changed)
        for vm in set(old.vms.values()).difference(kept.values()):
            self._nics.pop(vm, None)
        keys = [key for kind, key in states if kind == _VM and key not in kept]
        self.reader.vms(content, new, self._note_vm, keys if kept else None)
        changes, new.inventory = new.inventory, Inventory()
        new.inventory.merge(changes)
        stays = _take_over(old, new, kept, others=others_stay)
        changes.gone = dict.fromkeys(old.inventory.facts.keys() - stays, self.name)
        self.estate = new
        return changes

    def _are_stores_others(self, old: VcenterInventory, new: VcenterInventory, states: dict[Reference, State]) -> bool:
        """Whether a datastore has another name, or lies on another LUN: disks say theirs."""
        names = {reference: state.get("name") for reference, state in self._known.items() if reference[0] == _STORE}
        is_renamed = any(reference in states and states[reference]["name"] != name for reference, name in names.items())
        return is_renamed or any(new.luns.get(name, lun) != lun for name, lun in old.luns.items())

    def _note_vm(self, _: str, vm: Entity, properties: dict[str, Any]) -> None:
        """Network adapters are instances by their device keys; the inventory has their labels."""
        devices = of(properties.get("config.hardware"), "device") or ()
        labels = {str(one.key): of(one, "deviceInfo.label") for one in devices if of(one, "macAddress") is not None}
        self._nics[vm] = {key: label for key, label in labels.items() if label}

    def _with_samples(self) -> list[tuple[Reference, Entity]]:
        """VMs that run, hosts that are connected, datastores and clusters."""
        estate = self.estate
        listed: list[tuple[Reference, Entity]] = []
        for (kind, key), state in self._known.items():
            if kind == _VM and state.get("runtime.powerState") == "poweredOn" and key in estate.vms:
                listed.append(((kind, key), estate.vms[key]))
            elif kind == "HostSystem" and state.get("runtime.connectionState") == "connected" and key in estate.hosts:
                listed.append(((kind, key), estate.hosts[key]))
            elif kind == _STORE and key in estate.datastores:
                listed.append(((kind, key), estate.datastores[key]))
            elif kind == "ClusterComputeResource":
                listed.append(((kind, key), Entity(EntityKind.CLUSTER, str(state.get("name")))))
        return listed


def _unchanged(
    old: VcenterInventory, new: VcenterInventory, states: dict[Reference, State], changed: set[Reference]
) -> dict[str, Entity]:
    """The VMs that are as they were, on hosts that are called as they were, by id."""
    hosts = {key: state.get("runtime.host") for (kind, key), state in states.items() if kind == _VM}
    return {
        key: vm
        for key, vm in old.vms.items()
        if key in hosts and (_VM, key) not in changed and vm.parent == new.hosts.get(str(hosts[key]))
    }


def _take_over(old: VcenterInventory, new: VcenterInventory, kept: dict[str, Entity], *, others: bool) -> set[Entity]:
    """Put what is known of VMs that are kept, and where it is wanted of all others but VMs, into an estate.

    Returned are these entities.
    """
    vms = set(kept.values())
    guests = {guest for guest, vm in old.inventory.links.items() if vm in vms}
    stays = set()
    for entity, facts in old.inventory.facts.items():
        vm = entity.ancestor(EntityKind.VM)
        is_of_machine = vm is not None or entity in old.inventory.links
        if (vm in vms or entity in guests) if is_of_machine else others:
            new.inventory.facts.setdefault(entity, facts)
            stays.add(entity)
    new.inventory.links |= {guest: vm for guest, vm in old.inventory.links.items() if vm in vms}
    new.vms |= kept
    new.disks |= {vm: disks for vm, disks in old.disks.items() if vm in vms}
    new.objects |= {vm: objects for vm, objects in old.objects.items() if vm in vms}
    return stays
