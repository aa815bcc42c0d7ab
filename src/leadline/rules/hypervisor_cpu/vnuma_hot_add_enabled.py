"""CPU hot add is on for a wide VM, which hides the NUMA nodes from its guest.

Finds:
    VMs with CPU hot add and more vCPUs than a node of their host has cores (high), or more than 8 where the
    host's nodes are not known (medium) or would hold the VM (low). VMs of hardware version 20 that expose virtual NUMA
    with hot add are left out.

Why:
    With hot add the guest is shown one flat node, since vCPUs could be added at any time. Its scheduler and the
    database's memory partitioning then know nothing of the nodes the VM really runs on, and half of all memory
    accesses may go to the far node.

Do:
    Switch CPU hot add off with the VM powered off (`vcpu.hotadd = "FALSE"`). On vSphere 8 with hardware version 20,
    virtual NUMA can be exposed with hot add instead; verify inside the guest that it sees the nodes.

When it is wrong:
    A VM that fits into one node on every host of its cluster loses nothing. Some audits expect hot add on everywhere;
    for wide database VMs they are wrong.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): no hot add unless virtual NUMA
    may be lost. vSphere Resource Management, Using Virtual NUMA. W. Lam, vNUMA and CPU hot add in vSphere 8 (2022).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import node_cores
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU152",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    catalogue=("vnuma-min-vcpu-9",),
    needs=("vm.cpu_hot_add", "vm.vcpu_count"),
    thresholds={
        "vnuma": Threshold(8.0, "count", "vSphere Resource Management: virtual NUMA from 9 vCPUs (numa.vcpu.min)"),
        "hardware": Threshold(20.0, "count", "W. Lam, vNUMA and CPU hot add in vSphere 8: hardware version 20"),
    },
    explains=("numa-locality-low",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    inventory = context.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        vcpus, host = inventory.get(vm, "vcpu_count"), vm.ancestor(EntityKind.HOST)
        if inventory.get(vm, "cpu_hot_add") is not True or not vcpus or _exposed(context, vm):
            continue
        cores = node_cores(inventory, host)
        if not vcpus > cores and vcpus <= context.limit("vnuma"):
            continue
        unknown = Severity.MEDIUM if isnan(cores) else Severity.LOW
        node = "" if isnan(cores) else f"; a NUMA node of its host has {cores:g} cores"
        facts = [(vm, "cpu_hot_add"), (vm, "vcpu_count"), (vm, "hardware_version"), (host, "core_count")]
        yield of_facts(
            context,
            vm,
            f"CPU hot add of {vm.label()} hides the NUMA nodes from its {vcpus} vCPUs{node}",
            facts,
            severity=META.severity if vcpus > cores else unknown,
        )


def _exposed(context: RuleContext, vm: Entity) -> bool:
    hardware = context.inventory.get(vm, "hardware_version")
    new = hardware is None or hardware >= context.limit("hardware")
    return new and context.inventory.get(vm, "vnuma_with_hot_add") is True
