"""The vCPUs of a wide VM do not divide evenly over the NUMA nodes it needs.

Finds:
    VMs with more vCPUs than a node of their host has cores, whose even count the least number of nodes does not
    divide. An odd count is the finding vnuma-odd-vcpus, a VM wider than the whole host vm-vcpus-exceed-physical-cores.

Why:
    The scheduler either makes one virtual node larger than the others or uses more nodes than necessary. Memory is
    divided by nodes, not by vCPUs, so vCPUs of the larger node have less of it close by, and the guest balances load
    over nodes it takes for equal.

Do:
    Choose a vCPU count the number of nodes divides, for the fewest nodes that hold it: on nodes of 12 cores 16 vCPUs
    (8 + 8) or 36 (12 + 12 + 12), not 32.

When it is wrong:
    Sub-NUMA clustering makes nodes smaller than sockets; the node count must be the one the hypervisor sees. Another
    host of the cluster may have other nodes; it is the smallest that counts there.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): split evenly by the minimum
    number of NUMA nodes; 16 vCPUs as 8 + 8 on two nodes of 12.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import node_cores, runs
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU150",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("vm.vcpu_count", "host.core_count", "host.numa_node_count"),
    explains=("numa-locality-low",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM that may run and whose host is known."""
    inventory = context.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        host = vm.ancestor(EntityKind.HOST)
        vcpus, cores = inventory.get(vm, "vcpu_count"), node_cores(inventory, host)
        if not vcpus or not vcpus > cores or vcpus % 2 or not runs(inventory, vm):
            continue
        nodes = ceil(vcpus / cores)
        if host is None or vcpus > inventory.get(host, "core_count") or vcpus % nodes == 0:
            continue
        summary = f"The {vcpus} vCPUs of {vm.label()} do not divide over the {nodes} NUMA nodes they need"
        facts = [(vm, "vcpu_count"), (host, "core_count"), (host, "numa_node_count")]
        yield of_facts(context, vm, summary, facts)
