"""vSAN's memory on a host runs out.

Finds:
    Use of vSAN's heaps or slabs on a host above 85 % (medium) or 95 % (high) for at least 60 s.

Why:
    vSAN keeps its metadata and the requests under way in memory of its own. When that is used up it cannot accept
    requests and answers with memory or slab congestion, however quick the disks are.

Do:
    Add memory to the host, or take disk groups, devices or components from it: what vSAN needs grows with their number.
    Check for a known leak of the version in use and update.

When it is wrong:
    Some heaps are full by design on a host without load; a finding without congestion on the same host is a warning
    only.

Sources:
    RVC vSAN Observer graphs.js: marks memory use from these limits.
    Judgement: 60 s is two samples of 30 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

META = RuleMeta(
    code="DST111",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("vsan_memory_heap_pct",),
    thresholds={
        "warn": Threshold(85.0, "pct", "RVC vSAN Observer graphs.js"),
        "crit": Threshold(95.0, "pct", "RVC vSAN Observer graphs.js"),
        "duration": TWO_SAMPLES,
    },
    explains=("vsan-congestion-high", "vsan-client-latency-high", "vsan-oio-high", *GUEST_WAITS_FOR_DISK),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    yield from over_threshold(context, Over("vsan_memory_heap_pct", "use of vSAN's heaps and slabs"))
