"""Hosts and VMs of inventories and recordings, by cluster: what hosts have, and what each VM counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING

from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.placement import MIB_PER_GIB, cluster_of, database_vms, drs_rules, is_open, running_vms
from leadline.planners._cpu.packing import Box, Free, Host, split

if TYPE_CHECKING:
    from leadline.core.model.entities import Entity, Inventory
    from leadline.planners._cpu.recorded import Sized

DATABASE, RECORDED, CONFIGURED = "database: a core per vCPU", "peak recorded / target", "vCPUs / vcpus_per_core"


@dataclass(frozen=True, slots=True)
class Counting:
    """Inputs for counting: how many cores a VM counts, and what hosts keep for themselves.

    Attributes:
        target_pct: use at peak, percent.
        vcpus_per_core: of VMs that are neither recorded nor known to run a database.
        storage_cores, own_gib: of a host, kept for hyperconverged storage and the hypervisor.
        socket_nodes: NUMA nodes of a socket, where an inventory does not say.
        spare_hosts: hosts that may fail.
    """

    target_pct: float
    vcpus_per_core: float
    storage_cores: int
    own_gib: float
    socket_nodes: int
    spare_hosts: int


@dataclass(frozen=True, slots=True)
class EstateHost:
    """A host with NUMA nodes of one size; ``has_known_nodes`` is False where the number of nodes is not known."""

    entity: Entity
    cores: int
    gib: float
    sockets: int
    node: tuple[float, float]
    nodes: int
    has_known_nodes: bool

    @property
    def empty(self) -> Host:
        """Its nodes without VMs."""
        return (self.node,) * self.nodes


@dataclass(frozen=True, slots=True)
class Member:
    """A VM on a host: as it is and right-sized, and how its cores were counted."""

    name: str
    host: int
    vcpus: int
    needed: int
    gib: float
    now: Box
    then: Box
    how: str


@dataclass(frozen=True, slots=True)
class CpuEstate:
    """A cluster of which the inventory knows hosts and VMs.

    Attributes:
        name: of the cluster; empty when its hosts name none.
        servers: hosts that can take VMs.
        members: VMs that run on them.
        missing: hosts of the cluster that are not known, or not their cores.
        together: rules that keep VMs together, which are not counted.
        is_ha_off: vSphere HA is known to be off.
        is_vsan: hosts carry vSAN.
    """

    name: str
    servers: tuple[EstateHost, ...]
    members: tuple[Member, ...]
    missing: int
    together: int
    is_ha_off: bool
    is_vsan: bool

    @property
    def empty(self) -> Free:
        """All hosts without VMs."""
        return tuple(server.empty for server in self.servers)

    @property
    def at(self) -> tuple[int, ...]:
        """Host of each VM."""
        return tuple(member.host for member in self.members)


def estates(inventory: Inventory, sizes: Sequence[Sized], counting: Counting) -> list[CpuEstate]:
    """Every cluster with hosts whose cores are known and VMs that run on them."""
    by_cluster: dict[Entity | None, list[EstateHost]] = {}
    closed: dict[Entity | None, int] = {}
    unknown: dict[Entity | None, int] = {}
    for host in inventory.of_kind(EntityKind.HOST):
        cluster = cluster_of(inventory, host)
        if not is_open(inventory, host):
            closed[cluster] = closed.get(cluster, 0) + 1
        elif inventory.get(host, "core_count"):
            by_cluster.setdefault(cluster, []).append(_server(inventory, host, counting))
        else:
            unknown[cluster] = unknown.get(cluster, 0) + 1
    known_estates, sized_vms = [], {sized.vm: sized for sized in sizes}
    of_vms = _Vms(inventory, running_vms(inventory), database_vms(inventory), sized_vms)
    for cluster, servers in by_cluster.items():
        members = _members(of_vms, cluster, servers, counting)
        host_count = None if cluster is None else inventory.get(cluster, "host_count")
        unseen = 0 if host_count is None else int(host_count) - len(servers) - closed.get(cluster, 0)
        missing = max(unseen, unknown.get(cluster, 0))
        is_ha_off, is_vsan = (
            cluster is not None and inventory.get(cluster, name) is value
            for name, value in (("ha_enabled", False), ("vsan_enabled", True))
        )
        together, name = len(drs_rules(inventory, cluster, "together")), "" if cluster is None else cluster.name
        if members:
            known_estates.append(CpuEstate(name, tuple(servers), tuple(members), missing, together, is_ha_off, is_vsan))
    return known_estates


def _server(inventory: Inventory, host: Entity, counting: Counting) -> EstateHost:
    cores, sockets = int(inventory.get(host, "core_count")), int(inventory.get(host, "socket_count") or 0)
    memory, node_count = inventory.get(host, "memory_mib"), inventory.get(host, "numa_node_count")
    nodes = int(node_count) if node_count else max(sockets, 1) * counting.socket_nodes
    gib = float(memory) / MIB_PER_GIB if memory else inf
    node_cores = max(cores // nodes - ceil(counting.storage_cores / nodes), 0)
    return EstateHost(
        host, cores, gib, sockets, (float(node_cores), (gib - counting.own_gib) / nodes), nodes, bool(node_count)
    )


@dataclass(frozen=True, slots=True)
class _Vms:
    inventory: Inventory
    running: dict[Entity, list[Entity]]
    databases: set[Entity]
    sized: dict[Entity, Sized]


def _members(vms: _Vms, cluster: Entity | None, servers: list[EstateHost], counting: Counting) -> list[Member]:
    inventory = vms.inventory
    rules = drs_rules(inventory, cluster, "separate")
    shapes = list({(server.node, server.nodes): None for server in servers})
    members = []
    for position, server in enumerate(servers):
        for vm in vms.running.get(server.entity, ()):
            vcpus, memory = int(inventory.get(vm, "vcpu_count")), inventory.get(vm, "memory_mib")
            gib, sized = float(memory) / MIB_PER_GIB if memory else 0.0, vms.sized.get(vm)
            needed = vcpus if sized is None else sized.needed
            now, then, how = _counted(vcpus, needed, sized, vm in vms.databases, counting)
            apart = frozenset(rule for rule, names in rules.items() if vm.name in names)
            box_now = _box(vm.name, vcpus, now, gib, apart, shapes)
            box_then = _box(vm.name, needed, then, gib, apart, shapes)
            members.append(Member(vm.name, position, vcpus, needed, gib, box_now, box_then, how))
    return members


def _counted(
    vcpus: int, needed: int, sized: Sized | None, is_database: bool, counting: Counting
) -> tuple[float, float, str]:
    """Return the cores a VM counts as it is and right-sized, and the rule by which they are counted."""
    if is_database:
        return float(vcpus), float(needed), DATABASE
    if sized is not None:
        cores = 100.0 * sized.cores / counting.target_pct
        return cores, cores, RECORDED
    cores = vcpus / counting.vcpus_per_core
    return cores, cores, CONFIGURED


def _box(
    name: str,
    vcpus: int,
    cores: float,
    gib: float,
    apart: frozenset[str],
    shapes: list[tuple[tuple[float, float], int]],
) -> Box:
    """Return the VM as a box over the NUMA nodes it needs on each kind of host; all nodes where it needs more."""
    fits = (split(vcpus, gib, node, nodes) for node, nodes in shapes)
    counts = sorted({nodes if fit is None else fit[1] for fit, (_, nodes) in zip(fits, shapes, strict=True)})
    return Box(name, cores, gib, counts[0], apart, tuple(counts[1:]))


def room_text(host: Host) -> str:
    """Return the free cores and memory of a host as text."""
    cores = sum(max(free, 0.0) for free, _ in host)
    most = max(free for free, _ in host)
    gib = sum(max(free, 0.0) for _, free in host)
    memory = f", {gib:,.0f} GiB" if isfinite(gib) else ""
    return f"{cores:.3g} cores ({max(most, 0.0):.3g} of one node){memory}"


def box_text(box: Box) -> str:
    """Return the cores, memory and nodes of a VM as text."""
    memory = f", {box.gib:,.0f} GiB" if box.gib else ""
    return f"{box.name} ({box.cores:.3g} cores{memory}, {box.nodes} node{'s' * (box.nodes > 1)})"
