"""Node interleaving hides a server's NUMA nodes.

Finds:
    Hosts with more than one processor and only one NUMA node.

Why:
    With interleaving the BIOS spreads every stretch of memory over all processors. Half of all accesses of a
    two-socket server then cross the link between processors, and the scheduler can do nothing about it because it
    sees one node.

Do:
    Turn node interleaving off in the BIOS (some call it "NUMA: enabled", "memory interleaving: channel").

When it is wrong:
    A few old servers have one memory controller for two processors.

Sources:
    Performance Best Practices for VMware vSphere: node interleaving off.
    Judgement: known of the field, not re-read at its source.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="HST105",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host.numa_node_count", "host.socket_count"),
    thresholds={"sockets": Threshold(1.0, "count", "Performance Best Practices for VMware vSphere")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        sockets = context.inventory.get(host, "socket_count")
        if sockets is None or context.inventory.get(host, "numa_node_count") != 1:
            continue
        if sockets > context.limit("sockets"):
            summary = f"{host.label()} shows one NUMA node for {sockets} processors"
            yield of_facts(context, host, summary, [(host, "numa_node_count"), (host, "socket_count")])
