"""The processors of a host are divided into several NUMA nodes each.

Finds:
    Hosts with more NUMA nodes than processor packages: AMD processors with NPS 2 or 4, or Intel's sub-NUMA clustering.

Why:
    A node then has only a part of a socket's cores and memory. VMs sized to fit "one socket" are split over nodes, and
    everything computed from sockets is wrong by that factor.

Do:
    Size VMs by the nodes the hypervisor reports. For database hosts NPS1 (sub-NUMA clustering off) in the firmware is
    the usual choice; change it host by host with the cluster evacuated.

When it is wrong:
    Small VMs that fit into a part of a socket gain bandwidth from smaller nodes. It is a property of the host, not a
    fault.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): AMD has several nodes per
    processor, review the layout. Performance Best Practices for VMware vSphere: compute node sizes from the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU154",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    needs=("host.numa_node_count", "host.socket_count"),
    thresholds={"warn": Threshold(1.0, "ratio", "Virtualizing large databases: nodes per processor package")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    inventory = context.inventory
    for host in inventory.of_kind(EntityKind.HOST):
        nodes, sockets = inventory.get(host, "numa_node_count"), inventory.get(host, "socket_count")
        if not nodes or not sockets or nodes <= context.limit("warn") * sockets:
            continue
        summary = f"{host.label()} has {nodes} NUMA nodes in {sockets} socket{'s' if sockets > 1 else ''}"
        facts = [(host, "numa_node_count"), (host, "socket_count"), (host, "core_count"), (host, "cpu_model")]
        yield of_facts(context, host, summary, facts)
