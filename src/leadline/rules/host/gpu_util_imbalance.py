"""A graphics processor of a host is at its limit, in computing time or in memory.

Finds:
    Utilisation or memory use of a GPU above 90 % (informative) or 98 % (low) for at least ten minutes.

Why:
    Beyond that jobs queue for the card, and VMs whose profile needs more memory than is free do not start. For a
    database beside them it means that the host's GPU work will last longer, not that the database is slow.

Do:
    Add a card, move a VM with a vGPU to a host whose cards are idle, or run the jobs one after the other.

When it is wrong:
    A training job is meant to use the whole card; nobody waits for it but its owner.

Sources:
    VMware vSphere performance counters gpu.utilization and gpu.mem.usage (meaning only, no limit).
    Judgement: 90 %, 98 % and ten minutes; no source gives a number.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_any

META = RuleMeta(
    code="HST171",
    layer=Layer.HOST,
    severity=Severity.LOW,
    needs=("gpu_util_pct|gpu_memory_used_pct",),
    thresholds={
        "warn": Threshold(90.0, "pct", "Judgement: jobs begin to queue"),
        "crit": Threshold(98.0, "pct", "Judgement: nothing is left"),
        "duration": Threshold(600.0, "s", "Judgement: less is one job"),
    },
    clears=False,
    judgement=True,
)

_KINDS = (EntityKind.HOST, EntityKind.ADAPTER)
_SPECS = (
    Over("gpu_util_pct", "GPU utilisation", kinds=_KINDS),
    Over("gpu_memory_used_pct", "GPU memory in use", kinds=_KINDS),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per card, or per host where cards are not told apart."""
    yield from over_any(context, _SPECS)
