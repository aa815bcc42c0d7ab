"""The sockets a VM shows its guest do not mirror the NUMA nodes it runs on.

Finds:
    VMs wider than a node of their host whose cores per socket differ from vCPUs divided by nodes (low), and VMs that
    fit into a node and do not show all vCPUs as one socket (informative). A layout chosen at power-on is left alone.

Why:
    Guests and databases take sockets for boundaries of caches and memory, and some limit themselves to a number of
    sockets. A layout unlike the hardware misleads them. On ESXi before 6.5 it also decided the virtual NUMA nodes.

Do:
    Set cores per socket to the vCPU count where the VM fits into a node, else to vCPUs divided by nodes; with
    hardware version 20 leave it to be chosen at power-on. Check licences first: some are counted per socket. Never
    change it on many VMs at once.

When it is wrong:
    The same article also says the opposite (one core per socket), in an older correction: from ESXi 6.5 on the two
    are independent and the effect is small, so this is low and nothing to hurry about. Editions limited to a number
    of sockets or cores may dictate the layout.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): both statements; vCPUs as cores
    of one socket until a node is exceeded is the later one. Architecting Microsoft SQL Server on VMware vSphere.
    Judgement: informative within a node, where only the view of caches and licences depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, isnan

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import node_cores, runs
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU151",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    needs=("vm.cores_per_socket", "vm.vcpu_count", "host.core_count", "host.numa_node_count"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM that may run; counts that do not divide over nodes, or exceed the host, are other rules'."""
    inventory = context.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        host = vm.ancestor(EntityKind.HOST)
        vcpus, width = inventory.get(vm, "vcpu_count"), inventory.get(vm, "cores_per_socket")
        cores = node_cores(inventory, host)
        if not vcpus or not width or host is None or isnan(cores) or not runs(inventory, vm):
            continue
        nodes = ceil(vcpus / cores)
        automatic = inventory.get(vm, "cores_per_socket_automatic") is True
        if automatic or vcpus > inventory.get(host, "core_count") or vcpus % nodes or width == vcpus // nodes:
            continue
        summary = (
            f"{vm.label()} shows its {vcpus} vCPUs as {_sockets(ceil(vcpus / width))} of {width}; "
            f"its host holds them in {nodes} NUMA node{'s' if nodes > 1 else ''}"
        )
        facts = [(vm, "cores_per_socket"), (vm, "vcpu_count"), (host, "core_count"), (host, "numa_node_count")]
        yield of_facts(context, vm, summary, facts, severity=META.severity if nodes > 1 else Severity.INFO)


def _sockets(count: int) -> str:
    return f"{count} socket{'s' if count > 1 else ''}"
