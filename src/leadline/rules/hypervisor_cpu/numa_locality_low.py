"""A VM finds much of its memory on another NUMA node than the one it runs on.

Finds:
    Share of a VM's memory on its home nodes below 80 % for at least a minute, while the VM uses at least
    5 % of its vCPUs.

Why:
    Memory of another node is reached over the link between sockets: each access takes up to twice as long and the
    link has less bandwidth. A database that scans its buffer pool feels every one of them.

Do:
    Make the VM fit into one node, in vCPUs and in memory, or give it a size the nodes divide. Take CPU and memory
    affinity off, and switch CPU hot add off, which hides the nodes from the guest. A host whose nodes are unevenly
    full needs VMs moved.

When it is wrong:
    After the VM was moved between nodes locality is low for as long as its pages take to follow: minutes, for large
    VMs longer. An idle VM's locality does not matter; the least CPU use leaves it out.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): N%L above 80 is good.
    Yellow-Bricks esxtop thresholds: 80. EsxtopDrill c_map.csv differs: it warns below 90. The slides are followed.
    Judgement: a minute, since rebalancing takes that long; 5 % CPU use tells a working VM from an idle one.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

META = RuleMeta(
    code="CPU109",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("numa_local_pct",),
    uses=("cpu_used_pct",),
    thresholds={
        "warn": Threshold(80.0, "pct", "Tuning and profiling VMware (slides): N%L above 80 is good"),
        "load_min": Threshold(5.0, "pct", "Judgement: a VM below this use of its vCPUs is idle"),
        "duration": Threshold(60.0, "s", "Judgement: rebalancing of pages takes about that long"),
    },
    clears=False,  # local memory says nothing about contention for cores
)

_SPEC = Over(
    metric="numa_local_pct",
    noun="memory on the home NUMA nodes",
    kinds=(EntityKind.VM,),
    below=True,
    load=("cpu_used_pct",),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    yield from over_threshold(context, _SPEC)
