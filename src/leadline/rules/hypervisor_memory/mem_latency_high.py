"""A VM waits for memory that the hypervisor swapped out or compressed.

Finds:
    Time a VM waits for swapped or compressed pages above 0 % (low) or 1 % (medium) for at least 15 s.

Why:
    This is the price of a memory shortage as the VM pays it: its vCPU stands still until the page is read back or
    unpacked. The guest sees a memory access that takes milliseconds and cannot tell why.

Do:
    As for swapping: reserve all memory of the database VM, take memory limits off it, reduce the overcommitment of
    the host. Move the VM to a host with free memory to bring back the pages that are still out.

When it is wrong:
    The last pages of a shortage that is over come back on first use: the time falls to 0 by itself.

Sources:
    VMware, Interpreting esxtop statistics (KB 382249): anything above 0 is waiting.
    Judgement: the limits are common knowledge of the field, not re-read at their source. 15 s is three samples of
    esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="MEM134",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.MEDIUM,
    causes=("memory-short", "swapping"),
    needs=("memory_latency_pct",),
    thresholds={
        "warn": Threshold(0.0, "pct", "VMware, Interpreting esxtop statistics (KB 382249)"),
        "crit": Threshold(1.0, "pct", "VMware, Interpreting esxtop statistics (KB 382249)"),
        "duration": THREE_SAMPLES,
    },
    clears=False,  # a VM that does not wait now may be ballooned
    judgement=True,
)

_SPEC = Over("memory_latency_pct", "time waiting for memory", kinds=(EntityKind.VM,))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    yield from over_threshold(context, _SPEC)
