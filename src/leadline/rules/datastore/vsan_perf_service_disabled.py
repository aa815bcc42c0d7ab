"""The vSAN performance service is off: nobody can see what vSAN does.

Finds:
    Clusters with vSAN whose performance service is off.

Why:
    Latency of cluster, host, disk group and device, congestion and resync are recorded by this service alone, for 90
    days. Without it an incident cannot be explained afterwards.

Do:
    Switch it on in the cluster's vSAN services; it needs a policy for its database object and little space. Use its
    network diagnostic mode during incidents.

When it is wrong:
    A cluster watched by another tool that reads the hosts directly loses less.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: switch it on; it is the default from 6.7.
    VMware, Troubleshooting vSAN performance: starts from its charts.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import flag_is

META = RuleMeta(
    code="DST122",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("cluster.vsan_performance_service",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    setting = (EntityKind.CLUSTER, "vsan_performance_service")
    yield from flag_is(
        context,
        setting,
        False,
        "The vSAN performance service of {name} is off",
        keep=lambda cluster: context.inventory.get(cluster, "vsan_enabled") is not False,
    )
