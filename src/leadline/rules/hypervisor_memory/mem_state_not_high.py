"""The host's free memory is below what the hypervisor wants to keep.

Finds:
    A free-memory state of a host other than "high" (0) for at least 15 s: medium in the first state below it, high in
    the lower ones.

Why:
    The hypervisor keeps a share of memory free and gets more drastic as it sinks: first it breaks up large pages so
    that equal ones can be shared, then it balloons, then compresses and swaps, and in the lowest state it stops VMs
    from getting memory at all. Each state has its own price, and all of them fall on whoever uses memory most.

Do:
    Free memory on the host: move VMs off it, shrink VMs that were given more than they use, take a host out of
    maintenance mode, or add memory. Reserve the memory of the database VMs, then others give it up first.

When it is wrong:
    The first state below "high" is "clear" since vSphere 6.0 (large pages are broken up, nothing else) and "soft"
    (ballooning) before; recordings do not tell which, so it counts as medium. A state that lasts for seconds while a
    VM powers on is not a shortage: the duration leaves it out.

Sources:
    VMware, Interpreting esxtop statistics (KB 382249): the states and what each does. EsxtopDrill c_map.csv: any
    other state than high.
    Judgement: medium for the first state, as it may only be "clear"; 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="MEM133",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.HIGH,
    causes=("memory-short",),
    needs=("host_memory_state_count",),
    thresholds={
        "warn": Threshold(0.0, "count", "EsxtopDrill c_map.csv: 0 is high"),
        "crit": Threshold(1.0, "count", "Judgement: state 1 may be clear, in which nobody is ballooned yet"),
        "duration": THREE_SAMPLES,
    },
    explains=("mem-compression-active", "mem-swapped-nonzero"),
)

_SPEC = Over("host_memory_state_count", "free-memory state", kinds=(EntityKind.HOST,))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    yield from over_threshold(context, _SPEC)
