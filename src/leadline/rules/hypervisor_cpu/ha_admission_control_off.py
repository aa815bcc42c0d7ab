"""HA of a cluster is off, does not watch its hosts, or keeps no capacity for a failed one.

Finds:
    Clusters of which HA, its host monitoring or its admission control is off.

Why:
    Without admission control VMs are started until every host is full; when one fails, the others cannot take its VMs,
    or they are all overcommitted from then on. Without host monitoring nothing is restarted at all.

Do:
    Switch HA, host monitoring and admission control on, with capacity for one failed host reserved as a percentage.

When it is wrong:
    It slows nothing down before a host fails: hence low. Clusters whose databases replicate to another site may do
    without HA on purpose, and host monitoring is paused during network maintenance.

Sources:
    vCheck for vSphere (HA configuration of clusters).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU157",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    needs=("cluster.ha_enabled|cluster.ha_admission_control|cluster.ha_host_monitoring",),
    clears=False,
)
_FLAGS = {
    "ha_enabled": "HA",
    "ha_host_monitoring": "host monitoring of HA",
    "ha_admission_control": "admission control of HA",
}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster; where HA itself is off, its parts are not counted."""
    inventory = context.inventory
    for cluster in inventory.of_kind(EntityKind.CLUSTER):
        off = [name for name in _FLAGS if inventory.get(cluster, name) is False]
        off = ["ha_enabled"] if "ha_enabled" in off else off
        if off:
            features = " and ".join(_FLAGS[name] for name in off)
            verb = "are" if len(off) > 1 else "is"
            summary = f"{features[0].upper()}{features[1:]} {verb} off in cluster {cluster.label()}"
            yield of_facts(context, cluster, summary, [(cluster, name) for name in off])
