"""Memory hot add is on for a VM that spans NUMA nodes.

Finds:
    VMs with memory hot add whose vCPUs do not fit one NUMA node of their host, or that are known to have several
    virtual NUMA nodes.

Why:
    Memory that is added to a running VM may all land on its first virtual node. A database that was balanced over
    nodes then reads much of it from afar, and the guest keeps structures for memory that may never come.

Do:
    Switch memory hot add off at the next power-off, unless it is really used. Size the memory for the peak instead; it
    can be changed at any restart. After memory was added hot, restart the VM soon.

When it is wrong:
    Newer hypervisors spread what is added over the nodes. Until memory is added nothing is wrong; CPU hot add, which
    hides the nodes from the guest, is another matter.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere, memory hot add and NUMA.
    Judgement: not re-read; the share of remote memory it causes is given nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC141",
    layer=Layer.VM,
    severity=Severity.LOW,
    needs=("vm.memory_hot_add",),
    thresholds={"nodes": Threshold(1.0, "count", "Judgement: more than one node is wide")},
    explains=("numa-locality-low",),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        nodes = _nodes(context, vm) if fact.value is True else None
        if nodes is None or nodes <= context.limit("nodes"):
            return None
        return f"Memory hot add is on for {vm.label()}, which spans NUMA nodes", META.severity

    yield from by_setting(context, EntityKind.VM, "memory_hot_add", judge, ("vnuma_node_count", "vcpu_count"))


def _nodes(context: RuleContext, vm: Entity) -> float | None:
    """How many nodes the VM has, or how many of its host's its vCPUs fill; None when not known."""
    node_count = context.inventory.get(vm, "vnuma_node_count")
    if node_count is not None:
        return float(node_count)
    host, vcpus = vm.ancestor(EntityKind.HOST), context.inventory.get(vm, "vcpu_count")
    cores = None if host is None else context.inventory.get(host, "core_count")
    nodes = None if host is None else context.inventory.get(host, "numa_node_count")
    return vcpus * nodes / cores if vcpus and cores and nodes else None
