"""A VM's vCPUs fit into a NUMA node of its host, but its memory does not.

Finds:
    VMs with no more vCPUs than a node has cores and more memory than a node has, whose configuration gives them one
    virtual node.

Why:
    The scheduler keeps the vCPUs on one node and puts what does not fit there on others. The guest sees one flat
    memory and spreads a buffer pool over all of it, so a fixed share of accesses is remote and nothing in the guest
    can do anything about it.

Do:
    Reduce the memory to what a node holds, some GiB less for the hypervisor. Where the database needs it all, give the
    VM two virtual nodes on purpose (numa.vcpu.maxPerVirtualNode, or the virtual topology of vSphere 8), so that guest
    and database see what is near.

When it is wrong:
    A database that uses less than it was given may never leave the node: memory locality tells. The size of a node is
    taken as the host's memory divided by its nodes; unevenly equipped sockets are not known.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere: memory of a VM within a node, or virtual nodes for it.
    Judgement: medium, because only a part of the memory is remote; no number of the loss is published.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import memory_text, node_cores, node_memory_mib, runs
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU155",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("vm.vcpu_count", "vm.memory_mib", "host.core_count", "host.numa_node_count", "host.memory_mib"),
    thresholds={"warn": Threshold(1.0, "ratio", "Architecting Microsoft SQL Server on VMware vSphere")},
    explains=("numa-locality-low",),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM that may run and whose host is known."""
    inventory = context.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        host = vm.ancestor(EntityKind.HOST)
        vcpus, memory = inventory.get(vm, "vcpu_count"), inventory.get(vm, "memory_mib")
        of_node = node_memory_mib(inventory, host)
        if not vcpus or not memory or not vcpus <= node_cores(inventory, host) or not runs(inventory, vm):
            continue
        if not memory > context.limit("warn") * of_node or (inventory.get(vm, "vnuma_node_count") or 1) > 1:
            continue
        summary = (
            f"{vm.label()} has {memory_text(memory)}, a NUMA node of its host {memory_text(of_node)}; "
            f"its {vcpus} vCPUs fit into one"
        )
        settings = ((vm, "memory_mib"), (vm, "vcpu_count"), (host, "memory_mib"), (host, "numa_node_count"))
        yield of_facts(context, vm, summary, settings)
