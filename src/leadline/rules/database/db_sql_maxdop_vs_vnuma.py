"""SQL Server lets one query run on more CPUs than a NUMA node of the VM has.

Finds:
    max degree of parallelism above the CPUs of a virtual NUMA node; or at 0 (all CPUs) in a VM of several virtual NUMA
    nodes, or of more than 8 CPUs.

Why:
    Threads of a query that spans nodes read each other's memory across the socket link. And one query on all CPUs of a
    wide VM makes all others wait, shows as CXPACKET waits, and needs all vCPUs to be scheduled together.

Do:
    Set max degree of parallelism to the CPUs of one virtual NUMA node, 8 at most, and raise cost threshold for
    parallelism from 5 so that small queries stay on one CPU. Single databases and queries may have values of their own.

When it is wrong:
    A data warehouse with few users may want every CPU for one query. Where the number of virtual nodes is not known,
    only the width of the VM is judged.

Sources:
    Microsoft SQL Server documentation, "Configure the max degree of parallelism".
    Judgement: 0 is called wide above 8 CPUs, the largest value usually advised.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import NAN, by_parameter, machine_fact, number_of

META = RuleMeta(
    code="DBS125",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.parameters", "vm.vcpu_count|guest.cpu_count"),
    thresholds={"wide": Threshold(8.0, "count", "Microsoft SQL Server documentation: usually 8 at most")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per SQL Server instance."""

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        degree, cpus, nodes = number_of(value), *_shape(context.inventory, database)
        per_node = cpus / nodes
        if degree > 0:
            if not degree > per_node or nodes == 1:
                return None
            summary = f"{database.label()} runs a query on up to {degree:.0f} CPUs, its NUMA nodes have {per_node:.0f}"
            return summary, META.severity
        if degree < 0 or not (nodes > 1 or cpus > context.limit("wide")):
            return None
        where = f"{cpus:.0f} CPUs" + (f" in {nodes:.0f} NUMA nodes" if nodes > 1 else "")
        return f"{database.label()} lets one query take all {where}", META.severity

    yield from by_parameter(context, "sqlserver", "max degree of parallelism", judge)


def _shape(inventory: Inventory, database: Entity) -> tuple[float, float]:
    """CPUs and NUMA nodes of the machine; NaN where they are not known."""
    cpus = machine_fact(inventory, database, "cpu_count", "vcpu_count")
    nodes = machine_fact(inventory, database, "numa_node_count", "vnuma_node_count")
    count = NAN if nodes is None or not nodes.value else float(nodes.value)
    return (NAN if cpus is None else float(cpus.value)), count
