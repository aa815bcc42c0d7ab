"""A VM has more vCPUs than a NUMA node of its host has cores.

Finds:
    VMs with more vCPUs than the host has cores per NUMA node: medium, or low where the VM is spread evenly and its
    guest can see the nodes (more than 8 vCPUs, no CPU hot add). Memory beyond a node is named with it. A VM
    that exceeds a node by its memory alone is the finding vm-memory-imbalanced-vs-vnuma, one wider than the whole host
    vm-vcpus-exceed-physical-cores.

Why:
    Such a VM is split over nodes. Part of its memory is then always far from the vCPU that wants it. The guest
    can plan for that only if it is shown the nodes, which by default happens from 9 vCPUs on.

Do:
    Fit the VM into one node where its load allows: fewer vCPUs that are busy serve a database better than many idle
    ones. Where it must be wider, use an even count the number of nodes divides and leave CPU hot add off.

When it is wrong:
    A wide VM is a legitimate choice for a large database that partitions its memory by node. The host's node count
    must be the one the hypervisor sees; a core count derived from hyper-threads is a guess and said to be one.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): keep CPU and memory in one
    node; larger VMs are acceptable, virtual NUMA is exposed to them. Architecting Microsoft SQL Server on VMware
    vSphere. vSphere Resource Management, Using Virtual NUMA: from 9 vCPUs by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import memory_text, node_cores, node_memory_mib, runs
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU149",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    catalogue=("vnuma-min-vcpu-9",),
    needs=("vm.vcpu_count", "host.core_count", "host.numa_node_count"),
    thresholds={
        "warn": Threshold(1.0, "ratio", "Virtualizing large databases: VMware CPU capacity planning"),
        "vnuma": Threshold(8.0, "count", "vSphere Resource Management: virtual NUMA from 9 vCPUs (numa.vcpu.min)"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM that may run and whose host is known."""
    inventory = context.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        host = vm.ancestor(EntityKind.HOST)
        vcpus, cores = inventory.get(vm, "vcpu_count"), node_cores(inventory, host)
        if not vcpus or not vcpus > context.limit("warn") * cores or not runs(inventory, vm):
            continue
        if host is None or vcpus > inventory.get(host, "core_count"):
            continue
        nodes = ceil(vcpus / cores)
        summary = f"{vm.label()} has {vcpus} vCPUs, a NUMA node of its host has {cores:g} cores"
        memory, of_node = inventory.get(vm, "memory_mib"), node_memory_mib(inventory, host)
        if memory and memory > of_node:
            summary += f"; its {memory_text(memory)} exceed the node's {memory_text(of_node)} too"
        facts = [(vm, "vcpu_count"), (vm, "memory_mib"), (host, "core_count"), (host, "numa_node_count")]
        spread = vcpus % nodes == 0 and _shown(context, vm, vcpus)
        yield of_facts(context, vm, summary, facts, severity=META.severity.lowered() if spread else META.severity)


def _shown(context: RuleContext, vm: Entity, vcpus: int) -> bool:
    """Whether the guest sees virtual nodes: as read from the configuration, else by the defaults."""
    inventory = context.inventory
    known = inventory.fact(vm, "vnuma_node_count")
    if known is not None and not known.guessed:
        return bool(known.value > 1)
    hot_add = inventory.get(vm, "cpu_hot_add") is True and inventory.get(vm, "vnuma_with_hot_add") is not True
    return vcpus > context.limit("vnuma") and not hot_add
