"""The scheduler keeps moving a VM between the NUMA nodes of its host.

Finds:
    More than 5 (informative) or 10 (low) NUMA migrations of a VM in each sample for at least 15 s.

Why:
    After each move the VM's memory is on the node it left, until it has been copied behind it. A VM that is moved
    again and again works on remote memory most of the time, and the copying loads the link between the sockets.

Do:
    Give the VM a size its node holds, in vCPUs and memory, and balance the host: a few VMs that fill one node push
    the others around. Take CPU and NUMA affinity off.

When it is wrong:
    After a vMotion or when many VMs start, moves are normal for some minutes. The limit is per sample, as its source
    gives it: a recording with long intervals collects more moves per sample.

Sources:
    EsxtopDrill c_map.csv: 5 warning, 10 critical per sample.
    Judgement: 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="CPU135",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    needs=("numa_rebalance_count",),
    thresholds={
        "warn": Threshold(5.0, "count", "EsxtopDrill c_map.csv"),
        "crit": Threshold(10.0, "count", "EsxtopDrill c_map.csv"),
        "duration": THREE_SAMPLES,
    },
    explains=("numa-locality-low",),
    clears=False,
)

_SPEC = Over(metric="numa_rebalance_count", noun="NUMA migrations per sample", kinds=(EntityKind.VM,))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    yield from over_threshold(context, _SPEC)
