"""Automatic NUMA balancing works against static huge pages.

Finds:
    kernel.numa_balancing on in a guest that sees more than one NUMA node and has huge pages reserved.

Why:
    The kernel unmaps memory now and then to learn from the page faults which node uses it, and moves pages. Shared
    memory in static huge pages cannot be moved, so the faults cost CPU and bring nothing.

Do:
    Set kernel.numa_balancing = 0 in a file under /etc/sysctl.d, after a test under load. It can be changed back while
    the server runs.

When it is wrong:
    Where much of the memory is private to processes (sorts, hash joins) balancing can help. Measure both.

Sources:
    yaspe documentation, sp_check: 0 on production database hosts.
    Linux kernel documentation, admin-guide/sysctl/kernel: numa_balancing.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import entry_findings, huge_pages_mib

META = RuleMeta(
    code="GST134",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("guest.sysctl", "guest.numa_node_count"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""

    def judge(guest: Entity, value: float) -> tuple[str, Severity] | None:
        nodes = context.inventory.get(guest, "numa_node_count") or 1
        huge_mib = huge_pages_mib(context.inventory, guest)
        if value == 0.0 or nodes < 2 or not huge_mib > 0.0:
            return None
        return (
            f"NUMA balancing is on in {guest.label()}, which has {nodes} nodes and {huge_mib:,.0f} MiB of huge pages",
            META.severity,
        )

    yield from entry_findings(context, (EntityKind.GUEST, "sysctl"), "kernel.numa_balancing", judge)
