"""Hosts and VMs of an inventory, with the memory VMs touch where it was recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.recorded_loads import of_each, series_of, window
from leadline.estate.knowledge.placement import MIB_PER_GIB, cluster_of, database_vms, is_open, runs
from leadline.planners._memory.inputs import Memory

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity, Inventory

SETTINGS = {"cores": "core_count", "numa_nodes": "numa_node_count"}


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Memory of the hosts and VMs of an inventory, GiB.

    Attributes:
        hosts: memory of each host; empty where inputs say it.
        databases: name, memory and reservation of every VM that runs a database.
        reserved, others, active: of other VMs: reservations, memory beside them, what of that they touch.
        evidence: where it comes from.
    """

    hosts: tuple[float, ...]
    databases: tuple[tuple[str, float, float], ...] = ()
    reserved: float = 0.0
    others: float = 0.0
    active: float = 0.0
    evidence: tuple[str, ...] = ()

    @property
    def has_vms(self) -> bool:
        """Whether VMs were taken from the inventory."""
        return bool(self.databases) or self.reserved + self.others > 0


def filled(inputs: Memory, capture: Capture | None) -> tuple[Memory, MemoryUsage | None]:
    """Return the inputs, those not given from the inventory, and the memory of its hosts and VMs; None without hosts.

    Raises:
        UsageError: there are several clusters and none is named, or the one named is not there.
    """
    hosts = [] if capture is None else _hosts(inputs, capture.inventory)
    if capture is None or not hosts:
        return inputs, None
    given = inputs.model_fields_set
    sizes = {host: float(capture.inventory.get(host, "memory_mib")) / MIB_PER_GIB for host in hosts}
    smallest = min(hosts, key=lambda host: (sizes[host], host.name))
    known: dict[str, Any] = {"host_gib": round(sizes[smallest], 1), "hosts": len(hosts)}
    for key, setting in SETTINGS.items():
        value = capture.inventory.get(smallest, setting)
        if value:
            known[key] = int(value)
    known = {key: value for key, value in known.items() if key not in given}
    fact = capture.inventory.fact(smallest, "memory_mib")
    source = "" if fact is None else f"; {fact.source}"
    taken = ", ".join(f"{key} {value:,}" for key, value in known.items())
    fact_note = (f"{taken}: {smallest.name}, the smallest of {len(hosts)} hosts{source}",) if taken else ()
    usage = (
        MemoryUsage(tuple(sizes.values()))
        if given & {"others_gib", "overcommit"}
        else _memory_of(inputs, capture, sizes)
    )
    if usage.has_vms and "machines" not in given:
        known["machines"] = 0
    kept = () if given & {"host_gib", "hosts"} else usage.hosts
    return inputs.model_copy(update=known), replace(usage, hosts=kept, evidence=(*fact_note, *usage.evidence))


def _hosts(inputs: Memory, inventory: Inventory) -> list[Entity]:
    """Hosts in use of the cluster asked for, or of the only one, whose memory is known."""
    by_cluster: dict[str, list[Entity]] = {}
    for host in inventory.of_kind(EntityKind.HOST):
        if is_open(inventory, host) and inventory.get(host, "memory_mib"):
            cluster = cluster_of(inventory, host)
            by_cluster.setdefault("" if cluster is None else cluster.name, []).append(host)
    names = ", ".join(sorted(name or "none" for name in by_cluster))
    if inputs.cluster and by_cluster and inputs.cluster not in by_cluster:
        raise UsageError(
            f"plan: cluster {inputs.cluster}",
            found=f"hosts of {names}",
            expected="a cluster of the inventory",
            advice="Name one of them.",
        )
    if not inputs.cluster and len(by_cluster) > 1:
        raise UsageError(
            "plan: cluster",
            found=f"hosts of several clusters: {names}",
            expected="the cluster to plan for",
            advice="Name one with --set cluster=NAME.",
        )
    if inputs.cluster:
        return by_cluster.get(inputs.cluster, [])
    return [host for hosts in by_cluster.values() for host in hosts]


def _memory_of(inputs: Memory, capture: Capture, sizes: dict[Entity, float]) -> MemoryUsage:
    inventory = capture.inventory
    engines = database_vms(inventory)
    touched, recorded = _touched(capture)
    databases = []
    reserved = others = active = 0.0
    counts = {"others": 0, "recorded": 0, "unknown": 0}
    for vm in inventory.of_kind(EntityKind.VM):
        if vm.ancestor(EntityKind.HOST) not in sizes or not runs(inventory, vm):
            continue
        memory = float(inventory.get(vm, "memory_mib") or 0.0) / MIB_PER_GIB
        reservation = _reserved(inventory, vm, memory)
        if not memory:
            counts["unknown"] += 1
        elif vm in engines:
            databases.append((vm.name, memory, reservation))
        else:
            counts["others"] += 1
            counts["recorded"] += vm in touched
            uses = min(memory, touched.get(vm, memory * inputs.others_active_pct / 100.0))
            reserved, others = reserved + reservation, others + memory - reservation
            active += max(0.0, uses - reservation)
    names = ", ".join(sorted({source.name for source in capture.sources})) or "inventory"
    count_note = f"{len(databases)} VMs with databases and {counts['others']} others that run; {names}"
    evidence = (count_note, *_evidence(inputs, counts, recorded))
    return MemoryUsage(tuple(sizes.values()), tuple(databases), reserved, others, active, evidence)


def _reserved(inventory: Inventory, vm: Entity, memory: float) -> float:
    """Reserved memory, GiB; none where it is not known."""
    if inventory.get(vm, "memory_reservation_locked") is True:
        return memory
    return min(memory, float(inventory.get(vm, "memory_reservation_mib") or 0.0) / MIB_PER_GIB)


def _touched(capture: Capture) -> tuple[dict[Entity, float], str]:
    """Return the memory each VM touches, GiB (95th percentile of the hypervisor's estimate), and where it is from."""
    groups = series_of(capture, (("memory_touched_mib",),), EntityKind.VM)
    touched = {vm: load.peak / MIB_PER_GIB for vm, load in of_each(capture, groups).items()}
    return touched, window(capture, groups) if groups else ""


def _evidence(inputs: Memory, counts: dict[str, int], recorded: str) -> list[str]:
    evidence = []
    if counts["unknown"]:
        evidence.append(f"{counts['unknown']} VMs that run have no memory in it and are left out")
    if counts["recorded"]:
        evidence.append(f"p95 of memory_touched_mib of {counts['recorded']} other VMs, {recorded}")
    if counts["others"] > counts["recorded"]:
        count = counts["others"] - counts["recorded"]
        evidence.append(
            f"what {count} other VMs touch was not recorded: {inputs.others_active_pct:g} % of their memory"
        )
    return evidence
