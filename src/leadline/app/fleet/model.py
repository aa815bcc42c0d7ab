"""Fleets of worker VMs: what is asked for, what a vCenter offers, where each worker goes, and all that speaks against.

Nothing here talks to a vCenter. Sizes are bytes; ids are vCenter's own (`host-12`).

Sources: vSphere Web Services API reference: VirtualMachineCloneSpec, ParaVirtualSCSIController, PrivilegePolicyDef;
vSphere Security, "Required Privileges for Common Tasks".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

FULL_SHARE = 0.8  # of a datastore, at most used when all workers are full. Source: VMware's slack space of vSAN
CONTROLLERS_MAX = 4  # SCSI controllers of a VM. Source: vSphere Configuration Maximums
DISKS_MAX = 15  # of a controller, on hardware of every version. Source: vSphere Configuration Maximums
WORKERS_MAX = 200  # Judgement: more are not made by one command
MARK = "leadline.fleet"  # key in a worker's extraConfig; its value is the fleet's id
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")

# Privileges, by what they are needed on. A VM that is no template is cloned with another one.
PRIVILEGES = {
    "template": ("VirtualMachine.Provisioning.DeployTemplate",),
    "vm": ("VirtualMachine.Provisioning.Clone",),
    "folder": (
        "VirtualMachine.Inventory.CreateFromExisting",
        "VirtualMachine.Inventory.Delete",
        "VirtualMachine.Config.AddNewDisk",
        "VirtualMachine.Config.AddRemoveDevice",
        "VirtualMachine.Config.AdvancedConfig",
        "VirtualMachine.Interact.PowerOn",
        "VirtualMachine.Interact.PowerOff",
    ),
    "pool": ("Resource.AssignVMToPool",),
    "datastore": ("Datastore.AllocateSpace",),
    "network": ("Network.Assign",),
}


@dataclass(frozen=True, slots=True)
class FleetSpec:
    """What is asked for; an empty tuple or None leaves the choice."""

    template: str
    count: int
    disk_count: int
    disk_bytes: int
    controller_count: int | None = None
    cluster: str | None = None
    hosts: tuple[str, ...] = ()
    datastores: tuple[str, ...] = ()
    network: str | None = None
    pool: str | None = None
    folder: str | None = None
    prefix: str = "leadline"
    policy: str | None = None

    def names(self) -> list[str]:
        """Of the workers."""
        return [f"{self.prefix}-{number:02d}" for number in range(1, min(self.count, WORKERS_MAX) + 1)]


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """A VM or template; ``provisioned_bytes`` is what its disks may grow to, ``buses`` are the SCSI buses taken."""

    id: str
    name: str
    is_template: bool
    is_off: bool
    has_tools: bool
    provisioned_bytes: int
    memory_bytes: int
    nic_count: int
    networks: frozenset[str]
    buses: frozenset[int]
    disk_count: int = 1


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A host; ``unusable`` says why nothing can be started there, empty when it can."""

    id: str
    name: str
    cluster: str
    unusable: str
    networks: frozenset[str]
    pool: str


@dataclass(frozen=True, slots=True)
class DatastoreFacts:
    """A datastore with the hosts that may write to it."""

    id: str
    name: str
    unusable: str
    capacity_bytes: int
    free_bytes: int
    hosts: frozenset[str]


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """A network or distributed port group; ``kind`` is vCenter's type."""

    id: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """A resource pool with the hosts it is made of."""

    id: str
    name: str
    hosts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Offer:
    """What the vCenter has of what a fleet needs."""

    can_clone: bool
    templates: tuple[TemplateFacts, ...]
    hosts: tuple[HostFacts, ...]
    datastores: tuple[DatastoreFacts, ...]
    networks: tuple[NetworkFacts, ...]
    pools: tuple[PoolFacts, ...]
    folders: tuple[str, ...]  # ids of those that go by the name asked for
    vm_names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that speaks against: on what, what was found, what to do."""

    where: str
    found: str
    advice: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one worker goes; ids, and names to show."""

    name: str
    host: HostFacts
    datastore: DatastoreFacts
    pool: str


@dataclass(slots=True)
class FleetPlan:
    """What will be made, when there are no problems."""

    spec: FleetSpec
    placements: list[Placement] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    template: TemplateFacts | None = None
    network: NetworkFacts | None = None
    folder: str | None = None
    controllers: list[int] = field(default_factory=list)  # disks on each, on buses the template leaves free
    worker_bytes: int = 0

    def entities(self) -> dict[str, set[str]]:
        """Ids by the key of `PRIVILEGES` they need."""
        ids_by_key = {
            "pool": {placement.pool for placement in self.placements},
            "datastore": {placement.datastore.id for placement in self.placements},
            "folder": {self.folder} if self.folder else set(),
            "network": {self.network.id} if self.network else set(),
        }
        if self.template is not None:
            ids_by_key["template" if self.template.is_template else "vm"] = {self.template.id}
        return {key: ids for key, ids in ids_by_key.items() if ids}


def plan_fleet(spec: FleetSpec, offer: Offer) -> FleetPlan:
    """Choose host and datastore of each worker, and list every problem of the fleet."""
    plan = FleetPlan(spec)
    plan.problems += _of_spec(spec, offer)
    plan.template = _template(spec, offer, plan.problems)
    hosts = _hosts(spec, offer, plan.problems)
    stores = _datastores(spec, offer, hosts, plan.problems)
    pool = _pool(spec, offer, hosts, plan.problems)
    plan.folder = _folder(spec, offer, plan.problems)
    plan.network = _network(spec, offer, plan.template, hosts, plan.problems)
    plan.placements = _placements(spec, hosts, stores, pool, plan.problems)
    if plan.template is not None:
        plan.controllers = _controllers(spec, plan.template, plan.problems)
        template = plan.template
        plan.worker_bytes = template.provisioned_bytes + template.memory_bytes + spec.disk_count * spec.disk_bytes
        plan.problems += _space(plan)
    return plan


def spread(disk_count: int, controller_count: int) -> list[int]:
    """Disks on each controller, as even as can be, none without.

    >>> spread(5, 2), spread(1, 4)
    ([3, 2], [1])
    """
    used = min(disk_count, controller_count)
    return [disk_count // used + (index < disk_count % used) for index in range(used)] if used else []


def _of_spec(spec: FleetSpec, offer: Offer) -> Iterator[Problem]:
    if not offer.can_clone:
        yield Problem("vCenter", "a single ESXi host, which cannot clone", "Name the vCenter that manages it.")
    if not 1 <= spec.count <= WORKERS_MAX:
        yield Problem("count", str(spec.count), f"From 1 to {WORKERS_MAX}.")
    if not _NAME.fullmatch(spec.prefix):
        yield Problem("name_prefix", repr(spec.prefix), "Letters, digits, `-`, `_` and `.`, at most 60.")
    taken = [name for name in spec.names() if name in offer.vm_names]
    if taken:
        shown = ", ".join(taken[:3]) + (" ..." if len(taken) > 3 else "")
        yield Problem("name_prefix", f"VMs of these names are there: {shown}", "Choose another.")


def _template(spec: FleetSpec, offer: Offer, problems: list[Problem]) -> TemplateFacts | None:
    where = f"template {spec.template}"
    if len(offer.templates) != 1:
        problem = "not there" if not offer.templates else f"{len(offer.templates)} of that name"
        problems.append(Problem(where, problem, "Its name, or its path as DC/vm/folder/name."))
        return None
    template = offer.templates[0]
    if not template.is_off:
        problems.append(Problem(where, "it is powered on", "Power it off, or make it a template."))
    if not template.has_tools:
        advice = "Install open-vm-tools in it and start it once: the address of a worker is told by them."
        problems.append(Problem(where, "no VMware Tools", advice))
    if template.nic_count == 0:
        problems.append(Problem(where, "no network adapter", "Add one: fio is reached over it."))
    return template


def _hosts(spec: FleetSpec, offer: Offer, problems: list[Problem]) -> list[HostFacts]:
    inside = [host for host in offer.hosts if spec.cluster in (None, host.cluster)]
    if spec.cluster is not None and not inside:
        problems.append(Problem(f"cluster {spec.cluster}", "not there, or without hosts", "Name another."))
    if not spec.hosts:
        usable = [host for host in inside if not host.unusable]
        if inside and not usable:
            problems.append(Problem("hosts", "none that can run VMs", "Name others under place.hosts."))
        return usable
    by_name = {host.name: host for host in inside}
    chosen = []
    for name in spec.hosts:
        host = by_name.get(name)
        if host is None:
            place = "there" if spec.cluster is None else f"in {spec.cluster}"
            problems.append(Problem(f"host {name}", f"not {place}", "Its name as vCenter shows it."))
        elif host.unusable:
            problems.append(Problem(f"host {name}", host.unusable, "Name another."))
        else:
            chosen.append(host)
    return chosen


def _datastores(spec: FleetSpec, offer: Offer, hosts: list[HostFacts], problems: list[Problem]) -> list[DatastoreFacts]:
    ids = {host.id for host in hosts}
    stores = []
    for name in spec.datastores:
        same = [store for store in offer.datastores if store.name == name]
        where = f"datastore {name}"
        if not same:
            problems.append(Problem(where, "not there", "Its name as vCenter shows it."))
        elif same[0].unusable:
            problems.append(Problem(where, same[0].unusable, "Name another."))
        elif hosts and not any(store.hosts & ids for store in same):
            problems.append(Problem(where, "no host of the fleet can write to it", "Name hosts that have mounted it."))
        else:
            stores += [store for store in same if store.hosts & ids]
    return stores


def _pool(spec: FleetSpec, offer: Offer, hosts: list[HostFacts], problems: list[Problem]) -> PoolFacts | None:
    if spec.pool is None:
        return None
    same = [pool for pool in offer.pools if pool.name == spec.pool and any(host.id in pool.hosts for host in hosts)]
    where = f"resource pool {spec.pool}"
    if not same or len(same) > 1:
        problem = "not there for these hosts" if not same else f"{len(same)} of that name"
        problems.append(Problem(where, problem, "Name cluster or hosts with it."))
        return None
    outside = [host.name for host in hosts if host.id not in same[0].hosts]
    if outside:
        problems.append(Problem(where, f"hosts outside it: {', '.join(outside)}", "Name only hosts of its cluster."))
    return same[0]


def _folder(spec: FleetSpec, offer: Offer, problems: list[Problem]) -> str | None:
    if len(offer.folders) == 1:
        return offer.folders[0]
    where = "folder" if spec.folder is None else f"folder {spec.folder}"
    problem = "not there" if not offer.folders else f"{len(offer.folders)} of that name"
    if offer.templates or spec.folder is not None:  # without a template its folder is not known either
        problems.append(Problem(where, problem, "Its name, or its path as DC/vm/folder."))
    return None


def _network(
    spec: FleetSpec,
    offer: Offer,
    template: TemplateFacts | None,
    hosts: list[HostFacts],
    problems: list[Problem],
) -> NetworkFacts | None:
    names = {offered.id: offered.name for offered in offer.networks}
    chosen, wanted = None, template.networks if template is not None else frozenset[str]()
    if spec.network is not None:
        same = [offered for offered in offer.networks if offered.name == spec.network]
        if len(same) != 1:
            problem = "not there" if not same else f"{len(same)} of that name"
            problems.append(Problem(f"network {spec.network}", problem, "Its name as vCenter shows it."))
            return None
        chosen = same[0]
        if chosen.kind == "OpaqueNetwork":
            problems.append(Problem(f"network {chosen.name}", "an NSX opaque network", "Set it in the template."))
        wanted = frozenset({chosen.id})
    for network in sorted(wanted):
        without = [host.name for host in hosts if network not in host.networks]
        if without:
            problem = f"not on {', '.join(without[:3])}"
            problems.append(
                Problem(f"network {names.get(network, network)}", problem, "Name other hosts or another network.")
            )
    return chosen


def _placements(
    spec: FleetSpec,
    hosts: list[HostFacts],
    stores: list[DatastoreFacts],
    pool: PoolFacts | None,
    problems: list[Problem],
) -> list[Placement]:
    """Hosts in turn; the datastore is the next in turn that the host can write to, the least used so far."""
    used: Counter[str] = Counter()
    placed, lonely = [], set()
    for index, name in enumerate(spec.names() if hosts and stores else ()):
        host = hosts[index % len(hosts)]
        near = [datastore for datastore in stores if host.id in datastore.hosts]
        if not near:
            lonely.add(host.name)
            continue
        store = min(near, key=lambda datastore: used[datastore.id])
        used[store.id] += 1
        placed.append(Placement(name, host, store, host.pool if pool is None else pool.id))
    for host_name in sorted(lonely):
        problem = "it can write to none of the datastores"
        problems.append(Problem(f"host {host_name}", problem, "Name hosts that have mounted them."))
    return placed


def _controllers(spec: FleetSpec, template: TemplateFacts, problems: list[Problem]) -> list[int]:
    free = CONTROLLERS_MAX - len(template.buses)
    if spec.controller_count is not None and not 1 <= spec.controller_count <= free:
        problem = f"{spec.controller_count}, the template leaves room for {free}"
        problems.append(Problem("disks.controllers", problem, "A VM has at most four SCSI controllers."))
        return []
    counts = spread(spec.disk_count, spec.controller_count or free)
    if spec.disk_count and (not counts or max(counts) > DISKS_MAX):
        problems.append(
            Problem("disks.count", f"{spec.disk_count} on {free} controllers", f"At most {DISKS_MAX} on each.")
        )
        return []
    return counts


def _space(plan: FleetPlan) -> Iterator[Problem]:
    counts = Counter(placement.datastore.id for placement in plan.placements)
    stores = {placement.datastore.id: placement.datastore for placement in plan.placements}
    for key, count in sorted(counts.items()):
        store = stores[key]
        usable = store.free_bytes - (1.0 - FULL_SHARE) * store.capacity_bytes
        needed = count * plan.worker_bytes
        if needed > usable:
            problem = f"{max(usable, 0.0) / 2**30:.1f} GiB may be used, {needed / 2**30:.1f} GiB are needed"
            advice = "Fewer or smaller disks, fewer workers or more datastores; a fifth stays free."
            yield Problem(f"datastore {store.name}", problem, advice)


def of_privileges(refused: Iterable[tuple[str, str]]) -> list[Problem]:
    """Problems of privileges the account has not: (privilege, name of what it is missing on)."""
    missing: dict[str, set[str]] = {}
    for privilege, name in refused:
        missing.setdefault(name, set()).add(privilege)
    return [
        Problem(
            f"privileges on {name}", f"missing {', '.join(sorted(privileges))}", "Give them to a role of the account."
        )
        for name, privileges in sorted(missing.items())
    ]
