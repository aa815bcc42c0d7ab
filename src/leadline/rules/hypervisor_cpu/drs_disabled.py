"""DRS is off in a cluster, or only makes suggestions.

Finds:
    Clusters of two or more hosts in which DRS is off or its automation level is manual.

Why:
    VMs stay where they were started. When one host fills up, nothing moves load to the others, and a database waits
    for cores on its host while the next one is idle.

Do:
    Switch DRS on, at least partially automated, with rules that keep large databases apart. Very wide VMs can be left
    at manual by an override of their own.

When it is wrong:
    A cluster whose VMs are placed by hand and watched, or whose licences do not include DRS, has no choice. Off does
    not mean that the hosts are unevenly loaded: compare them.

Sources:
    vCheck for vSphere (DRS state of clusters).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import hosts_by_cluster
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU141",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("cluster.drs_enabled|cluster.drs_automation",),
    clears=False,
)
_HOST_COUNT_MIN = 2  # with one host there is nowhere to move to


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    known = hosts_by_cluster(context.inventory)
    for cluster in context.inventory.of_kind(EntityKind.CLUSTER):
        count = context.inventory.get(cluster, "host_count")
        count = len(known.get(cluster, [])) if count is None else count
        state = _state(context, cluster)
        if state is not None and not 0 < count < _HOST_COUNT_MIN:
            facts = [(cluster, name) for name in ("drs_enabled", "drs_automation", "host_count")]
            yield of_facts(context, cluster, f"DRS of cluster {cluster.label()} {state}", facts)


def _state(context: RuleContext, cluster: Entity) -> str | None:
    if context.inventory.get(cluster, "drs_enabled") is False:
        return "is off"
    automation = str(context.inventory.get(cluster, "drs_automation")).casefold()
    return "only makes suggestions (manual)" if automation == "manual" else None
