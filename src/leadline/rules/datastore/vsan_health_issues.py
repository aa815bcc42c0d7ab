"""vSAN's own health check is not green.

Finds:
    Clusters whose overall vSAN health is red (medium) or yellow (low).

Why:
    The check knows of failed devices, partitions, unsupported drivers and objects without redundancy. What it reports
    is often the cause of slowness, and always worth fixing before tuning.

Do:
    Open the cluster's vSAN health page, follow the failing checks from the top, and check again.

When it is wrong:
    One outdated list of compatible hardware makes the whole cluster yellow. Red may be about stretched-cluster
    settings that have nothing to do with speed.

Sources:
    vSAN Management API reference: overall health and its colours.
    Judgement: the check does not say what slows I/O, hence medium at most.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST123",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("cluster.vsan_health",),
    clears=False,
    judgement=True,
)
_SEVERITY = {"red": Severity.MEDIUM, "yellow": Severity.LOW}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""

    def judge(cluster: Entity, fact: Fact) -> tuple[str, Severity] | None:
        severity = _SEVERITY.get(str(fact.value).casefold())
        return None if severity is None else (f"vSAN health of {cluster.label()} is {fact.value}", severity)

    yield from by_setting(context, EntityKind.CLUSTER, "vsan_health", judge)
