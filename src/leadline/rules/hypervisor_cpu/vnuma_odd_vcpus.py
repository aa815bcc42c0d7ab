"""A VM that is wider than a NUMA node of its host has an odd number of vCPUs.

Finds:
    VMs with more vCPUs than their host has cores per NUMA node, and an odd number of them.

Why:
    Such a VM is split over several nodes and shows its guest as many virtual nodes. An odd number cannot be split
    evenly: one node holds more vCPUs than the other, memory is shared out unevenly, and the guest's scheduler and the
    database's memory partitioning work against a lopsided topology.

Do:
    Set an even vCPU count that the number of nodes divides, or one that fits into a single node.

When it is wrong:
    Hosts with sub-NUMA clustering have smaller nodes than their sockets suggest; the node count must be the one the
    hypervisor sees. The size of the effect depends on the database: nobody has published a number.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): no odd vCPU count once the VM
    exceeds a physical NUMA node.
    Judgement: medium, because the effect is a matter of degree and no measurement of it is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="CPU108",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("vm.vcpu_count", "host.core_count", "host.numa_node_count"),
    explains=("numa-locality-low",),
    clears=False,  # an even count says nothing about contention
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM whose host is known."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        host = vm.ancestor(EntityKind.HOST)
        cores = None if host is None else context.inventory.get(host, "core_count")
        nodes = None if host is None else context.inventory.get(host, "numa_node_count")
        if not cores or not nodes or fact.value % 2 == 0 or fact.value <= cores / nodes:
            return None
        return (
            f"{vm.label()} has {fact.value} vCPUs, an odd number, over NUMA nodes of {cores / nodes:g} cores",
            META.severity,
        )

    yield from by_setting(context, EntityKind.VM, "vcpu_count", judge)
