"""What runs where: VMs on hosts, hosts in clusters, databases in VMs, and how large a NUMA node of a host is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable


MIB_PER_GIB = 1024.0
_TIER_ONE = re.compile(r"(?:tier[\s_-]*)?1|prod(?:uction)?|mission[\s_-]*critical", re.IGNORECASE)


def runs(inventory: Inventory, vm: Entity) -> bool:
    """False for a template and for a VM known to be off or suspended."""
    state = inventory.get(vm, "power_state")
    return inventory.get(vm, "template") is not True and (state is None or str(state).casefold() == "on")


def running_vms(inventory: Inventory) -> dict[Entity, list[Entity]]:
    """VMs that run and whose vCPU count is known, by host; VMs whose host is not known are left out."""
    vms_by_host: dict[Entity, list[Entity]] = {}
    for vm in inventory.of_kind(EntityKind.VM):
        host = vm.ancestor(EntityKind.HOST)
        if host is not None and inventory.get(vm, "vcpu_count") is not None and runs(inventory, vm):
            vms_by_host.setdefault(host, []).append(vm)
    return vms_by_host


def vcpu_sum(inventory: Inventory, vms: Iterable[Entity]) -> int:
    """Number of vCPUs of VMs; those whose count is not known add none."""
    return sum(int(inventory.get(vm, "vcpu_count") or 0) for vm in vms)


def hosts_by_cluster(inventory: Inventory) -> dict[Entity, list[Entity]]:
    """Hosts whose cluster is named, by cluster; a cluster that is only named by its hosts is made from its name."""
    by_cluster: dict[Entity, list[Entity]] = {}
    for host in inventory.of_kind(EntityKind.HOST):
        cluster = cluster_of(inventory, host)
        if cluster is not None:
            by_cluster.setdefault(cluster, []).append(host)
    return by_cluster


def cluster_of(inventory: Inventory, host: Entity) -> Entity | None:
    """The cluster of a host, or None when it is not known."""
    name = inventory.get(host, "cluster")
    if name is None:
        return host.ancestor(EntityKind.CLUSTER)
    named = Entity(EntityKind.CLUSTER, str(name))
    return named if named in inventory.facts else next(iter(inventory.named(named.kind, named.name)), named)


def hosts_of(inventory: Inventory, cluster: Entity) -> list[Entity]:
    """Hosts that name the cluster as theirs, or are part of it."""
    members = [host for host in inventory.members(cluster.name) if cluster_of(inventory, host) == cluster]
    parts = inventory.children(cluster, EntityKind.HOST)
    return members + [host for host in parts if inventory.get(host, "cluster") is None]


def database_vms(inventory: Inventory) -> set[Entity]:
    """VMs known to run a database: an engine was found in their guest, or a disk's role (not guessed) is one's."""
    vms: set[Entity] = set()
    for database in inventory.of_kind(EntityKind.DATABASE):
        guest = database.ancestor(EntityKind.GUEST)
        vm = database.ancestor(EntityKind.VM) if guest is None else inventory.vm_of(guest)
        if vm is not None:
            vms.add(vm)
    for disk in inventory.of_kind(EntityKind.VIRTUAL_DISK):
        role, vm = inventory.fact(disk, "role"), disk.ancestor(EntityKind.VM)
        if vm is not None and role is not None and not role.guessed and role.value in DATABASE_ROLES:
            vms.add(vm)
    return vms


def production_databases(inventory: Inventory) -> tuple[set[Entity], set[Entity]]:
    """Database VMs of the first tier, and those whose tier is not known; those of another tier are in neither."""
    tiers = {vm: is_tier_one(inventory, vm) for vm in database_vms(inventory)}
    return {vm for vm, first in tiers.items() if first}, {vm for vm, first in tiers.items() if first is None}


def is_tier_one(inventory: Inventory, vm: Entity) -> bool | None:
    """Whether the business depends on a VM, as its tier says; None when no tier is known."""
    tier = inventory.get(vm, "tier")
    return None if tier is None else _TIER_ONE.fullmatch(str(tier).strip().removesuffix(".0")) is not None


def drs_rules(inventory: Inventory, cluster: Entity | None, kind: str) -> dict[str, tuple[str, ...]]:
    """DRS rules of a kind (``separate`` or ``together``): names of VMs, by the rule's name."""
    settings = None if cluster is None else inventory.get(cluster, "drs_rules")
    names_by_rule: dict[str, tuple[str, ...]] = {}
    for rule, text in settings.items() if isinstance(settings, dict) else ():
        word, _, names = str(text).partition(":")
        if word.strip().casefold() == kind:
            names_by_rule[str(rule)] = tuple(name for part in names.split(",") if (name := part.strip()))
    return names_by_rule


def is_open(inventory: Inventory, host: Entity) -> bool:
    """Whether a host can take VMs: connected, as far as is known, and not in maintenance."""
    state = str(inventory.get(host, "connection_state") or "connected").casefold()
    return inventory.get(host, "maintenance_mode") is not True and state == "connected"


def kernel_flag(inventory: Inventory, host: Entity, name: str) -> bool | None:
    """Whether a VMkernel boot setting of a host is on; None when it is not known or no flag."""
    settings = inventory.get(host, "kernel_settings")
    text = str(settings.get(name)).strip().casefold() if isinstance(settings, dict) else ""
    return {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}.get(text)


def node_cores(inventory: Inventory, host: Entity | None) -> float:
    """Cores of one NUMA node of a host; NaN when cores or nodes are not known."""
    return _per_node(inventory, host, "core_count")


def node_memory_mib(inventory: Inventory, host: Entity | None) -> float:
    """Memory of one NUMA node of a host in MiB, the hypervisor's own share included; NaN when not known."""
    return _per_node(inventory, host, "memory_mib")


def memory_text(mib: float) -> str:
    """An amount of memory in MiB for people, in GiB."""
    return show(mib / MIB_PER_GIB, "gib")


def _per_node(inventory: Inventory, host: Entity | None, setting: str) -> float:
    whole = None if host is None else inventory.get(host, setting)
    nodes = None if host is None else inventory.get(host, "numa_node_count")
    return float(whole) / float(nodes) if whole and nodes else float("nan")
