"""The estate of a live vCenter: what the collector reads at the start, and what changed since.

vCenter tells which names, hosts and states changed. A VM that moved, was reconfigured, started or stopped is then read
anew; when hosts, datastores or clusters changed everything is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.client import RemoteDisconnected
from typing import Any

from leadline.collectors import _vcenter_vm as machines
from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_live.states import ObjectStates, Reference, State
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import id_of, objects, of

Reader = Callable[[Any, VcenterInventory, Callable[[str, Entity, dict[str, Any]], None]], None]


@dataclass(slots=True)
class LiveEstate:
    """The inventory, and who is behind vCenter's ids and the names of instances.

    Attributes:
        name: of the source of settings.
        read: reads a whole inventory, and tells of the properties of each VM.
        estate: the inventory as it is now.
        version: counts its changes.
        on: the objects that have samples now, by reference.
    """

    name: str
    read: Reader
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
        if not self.version or any(kind != "VirtualMachine" for kind, _ in changed):
            changes = self._read_all(content)
        else:
            changes = self._read_vms(content, {key for _, key in changed}, {key for _, key in states})
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
            if kind == "Datastore":
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

    def _read_all(self, content: Any) -> Inventory:  # noqa: ANN401
        self._nics.clear()
        estate = VcenterInventory(Inventory(), self.name)
        self.read(content, estate, self._note_vm)
        changes = Inventory()
        changes.merge(estate.inventory)
        if self.version:
            changes.gone = dict.fromkeys(self.estate.inventory.facts, self.name)
        self.estate = estate
        return changes

    def _read_vms(self, content: Any, changed: set[str], there: set[str]) -> Inventory:  # noqa: ANN401
        """Read some VMs anew; what was known of them before is dropped, but not before they are read."""
        from pyVmomi import vim  # noqa: PLC0415

        old = self.estate
        gone = {vm for key in changed if (vm := old.vms.get(key)) is not None}
        whole = Inventory()
        for entity, facts in old.inventory.facts.items():
            if entity.ancestor(EntityKind.VM) not in gone:
                whole.facts[entity] = facts
        whole.links |= {guest: vm for guest, vm in old.inventory.links.items() if vm not in gone}
        for guest in old.inventory.links.keys() - whole.links.keys():
            whole.facts.pop(guest, None)
        known = old.inventory.facts.keys() - whole.facts.keys()
        fresh = replace(old, inventory=Inventory(), vms={}, disks={}, objects={})
        stub = content.propertyCollector._stub
        wanted = [vim.VirtualMachine(key, stub) for key in sorted(changed & there)]
        now = machines.now_utc()
        for reference, properties in objects(
            content, vim.VirtualMachine, machines.PROPERTIES, wanted, refused=old.refused
        ):
            vm = fresh.vms[id_of(reference)] = machines.add_vm(fresh, properties, now)
            self._note_vm(id_of(reference), vm, properties)
        for key in changed:
            old.vms.pop(key, None)
        for vm in gone:
            old.disks.pop(vm, None)
            old.objects.pop(vm, None)
        for vm in gone.difference(fresh.vms.values()):
            self._nics.pop(vm, None)
        whole.merge(fresh.inventory)
        old.inventory = whole
        old.vms |= fresh.vms
        old.disks |= fresh.disks
        old.objects |= fresh.objects
        fresh.inventory.gone = dict.fromkeys(known, self.name)
        return fresh.inventory

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
            if kind == "VirtualMachine" and state.get("runtime.powerState") == "poweredOn" and key in estate.vms:
                listed.append(((kind, key), estate.vms[key]))
            elif kind == "HostSystem" and state.get("runtime.connectionState") == "connected" and key in estate.hosts:
                listed.append(((kind, key), estate.hosts[key]))
            elif kind == "Datastore" and key in estate.datastores:
                listed.append(((kind, key), estate.datastores[key]))
            elif kind == "ClusterComputeResource":
                listed.append(((kind, key), Entity(EntityKind.CLUSTER, str(state.get("name")))))
        return listed
