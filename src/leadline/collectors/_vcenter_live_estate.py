"""The estate of a live vCenter: what the collector reads at the start, and what changed since.

Every minute the names, hosts and states of VMs and hosts are asked for again, which is little. A VM that moved, was
reconfigured, started or stopped is then read anew; when hosts, datastores or clusters changed everything is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leadline.collectors import _vcenter_vm as machines
from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import id_of, objects, of

Reference = tuple[str, str]  # type and id of a managed object
Reader = Callable[[Any, VcenterInventory, Callable[[str, Entity, dict[str, Any]], None]], None]
_VM_STATE = ["name", "runtime.host", "runtime.powerState", "config.template", "config.changeVersion"]
_HOST_STATE = ["name", "runtime.connectionState", "runtime.powerState"]
_OTHERS = ("Datastore", "ClusterComputeResource")


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
    _states: dict[Reference, tuple[Any, ...]] = field(default_factory=dict)
    _nics: dict[Entity, dict[str, str]] = field(default_factory=dict)
    _stores: dict[str, str] = field(default_factory=dict)

    def refresh(self, content: Any) -> bool:  # noqa: ANN401
        """Read what changed; whether anything did."""
        states = self._asked_states(content)
        if states == self._states and self.version:
            return False
        changed = {key for key in states.keys() | self._states.keys() if states.get(key) != self._states.get(key)}
        if not self.version or any(kind != "VirtualMachine" for kind, _ in changed):
            self._read_all(content)
        else:
            self._read_vms(content, {key for _, key in changed}, {key for _, key in states})
        self._states = states
        self.on = dict(self._with_samples())
        self.version += 1
        return True

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

    def _asked_states(self, content: Any) -> dict[Reference, tuple[Any, ...]]:  # noqa: ANN401
        from pyVmomi import vim  # noqa: PLC0415 - 0.5 s that only what talks to vCenter needs

        refused: Any = VcenterInventory(Inventory(), self.name).refused
        ask = partial(objects, content, refused=refused)
        states: dict[Reference, tuple[Any, ...]] = {}
        asked = [(vim.VirtualMachine, _VM_STATE), (vim.HostSystem, _HOST_STATE), (vim.Datastore, ["name", "summary"])]
        if content.about.apiType == "VirtualCenter":
            asked.append((vim.ClusterComputeResource, ["name"]))
        for type_of, names in asked:
            kind = type_of.__name__.rpartition(".")[2]
            for reference, properties in ask(type_of, names):
                key = id_of(reference)
                if kind == "Datastore":
                    name = str(properties.get("name"))
                    self._note_store(str(of(properties.get("summary"), "url") or ""), key, name)
                    states[kind, key] = (name,)
                elif kind == "VirtualMachine" and properties.get("config.template"):
                    continue
                else:
                    states[kind, key] = tuple(_plain(properties.get(name)) for name in names)
        return states

    def _note_store(self, url: str, key: str, name: str) -> None:
        """A datastore is an instance by the name of its folder, which its address ends with."""
        folder = url.rstrip("/").rpartition("/")[2]
        self._stores |= {key: name} | ({folder: name} if folder else {})

    def _read_all(self, content: Any) -> None:  # noqa: ANN401
        self._nics.clear()
        estate = VcenterInventory(Inventory(), self.name)
        self.read(content, estate, self._note_vm)
        self.estate = estate

    def _read_vms(self, content: Any, changed: set[str], there: set[str]) -> None:  # noqa: ANN401
        """Read some VMs anew; what was known of them before is dropped."""
        from pyVmomi import vim  # noqa: PLC0415

        old = self.estate
        gone = {vm for key in changed if (vm := old.vms.pop(key, None)) is not None}
        whole = Inventory()
        for entity, facts in old.inventory.facts.items():
            if entity.ancestor(EntityKind.VM) not in gone:
                whole.facts[entity] = facts
        whole.links |= {guest: vm for guest, vm in old.inventory.links.items() if vm not in gone}
        for guest in old.inventory.links.keys() - whole.links.keys():
            whole.facts.pop(guest, None)
        for vm in gone:
            self._nics.pop(vm, None)
            old.disks.pop(vm, None)
        old.inventory = whole
        stub = content.propertyCollector._stub
        wanted = [vim.VirtualMachine(key, stub) for key in sorted(changed & there)]
        now = machines.now_utc()
        for reference, properties in objects(
            content, vim.VirtualMachine, machines.PROPERTIES, wanted, refused=old.refused
        ):
            vm = old.vms[id_of(reference)] = machines.add_vm(old, properties, now)
            self._note_vm(id_of(reference), vm, properties)

    def _note_vm(self, _: str, vm: Entity, properties: dict[str, Any]) -> None:
        """Network adapters are instances by their device keys; the inventory has their labels."""
        devices = of(properties.get("config.hardware"), "device") or ()
        labels = {str(one.key): of(one, "deviceInfo.label") for one in devices if of(one, "macAddress") is not None}
        self._nics[vm] = {key: label for key, label in labels.items() if label}

    def _with_samples(self) -> list[tuple[Reference, Entity]]:
        """VMs that run, hosts that are connected, datastores and clusters."""
        estate = self.estate
        listed: list[tuple[Reference, Entity]] = []
        for (kind, key), state in self._states.items():
            if kind == "VirtualMachine" and state[2] == "poweredOn" and key in estate.vms:
                listed.append(((kind, key), estate.vms[key]))
            elif kind == "HostSystem" and state[1] == "connected" and key in estate.hosts:
                listed.append(((kind, key), estate.hosts[key]))
            elif kind == "Datastore" and key in estate.datastores:
                listed.append(((kind, key), estate.datastores[key]))
            elif kind == "ClusterComputeResource":
                listed.append(((kind, key), Entity(EntityKind.CLUSTER, str(state[0]))))
        return listed


def _plain(value: Any) -> Any:  # noqa: ANN401
    """A property as a value that can be compared: the id of an object, else its text."""
    if value is None:
        return None
    return id_of(value) if hasattr(value, "_GetMoId") else str(value)
