"""Virtuozzo Storage keeps fewer replicas than three, or accepts writes with one.

Finds:
    Virtuozzo Storage clusters whose replication is below 3 normal and 2 minimum.

Why:
    With two replicas a failed disk leaves one copy until the rebuild is done; with a minimum of one a write is
    acknowledged that exists once. Reads are spread over fewer disks as well.

Do:
    Set 3:2 for VMs and databases (`vstorage set-attr replicas=3:2`), with at least five nodes, and wait for the copies
    to be made before the next change.

When it is wrong:
    Scratch data and test clusters may live with 2:1.

Sources:
    Virtuozzo Storage performance tests: 3:2 as the standard. Virtuozzo installation requirements: three replicas, two
    needed for writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST143",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("cluster.vstorage_replicas",),
    thresholds={
        "normal": Threshold(3.0, "count", "Virtuozzo Storage performance tests"),
        "minimum": Threshold(2.0, "count", "Virtuozzo Storage performance tests"),
    },
    clears=False,
)
_REPLICAS = re.compile(r"(\d+)\s*:\s*(\d+)")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""

    def judge(cluster: Entity, fact: Fact) -> tuple[str, Severity] | None:
        match = _REPLICAS.fullmatch(str(fact.value).strip())
        if match is None:
            return None
        if int(match[1]) >= context.limit("normal") and int(match[2]) >= context.limit("minimum"):
            return None
        wanted = f"{context.limit('normal'):.0f}:{context.limit('minimum'):.0f}"
        return f"{cluster.label()} keeps {fact.value} replicas, not {wanted}", META.severity

    yield from by_setting(context, EntityKind.CLUSTER, "vstorage_replicas", judge)
