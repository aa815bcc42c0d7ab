"""vCPUs stand still until the hypervisor has read their memory back from its swap file.

Finds:
    Swap-wait time per vCPU above 0 % (warning) or 5 % (critical) for at least 15 s; of low severity below 0.5 %.

Why:
    When the host was short of memory it swapped out guest pages without asking the guest. A vCPU that touches such
    a page stops until a disk has read it: milliseconds for what the database took for a memory access. A buffer pool
    in swap is slower than no buffer pool.

Do:
    Take memory overcommitment off the host: move VMs away, and reserve all memory of the database VM. Pages that were
    swapped out come back only when they are touched: after the shortage is over, restart the VM in a quiet hour or
    move it to another host and let it touch its memory.

When it is wrong:
    The time counts what is read back now; the shortage itself may lie hours back. Check the host's swap rates
    (mem-swap-rate-nonzero) for whether it still goes on.

Sources:
    Yellow-Bricks esxtop thresholds: 5 %. EsxtopDrill c_map.csv: anything above 0.
    Judgement: 15 s is three samples of esxtop's default 5 s; 0.5 %, 5 ms of each second, nobody feels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.vcpu_time import vcpu_time

META = RuleMeta(
    code="CPU104",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.CRITICAL,
    causes=("swapping",),
    needs=("cpu_swap_wait_pct",),
    thresholds={
        "warn": Threshold(0.0, "pct", "EsxtopDrill c_map.csv"),
        "crit": Threshold(5.0, "pct", "Yellow-Bricks esxtop thresholds"),
        "felt": Threshold(0.5, "pct", "Judgement: 5 ms of each second"),
        "duration": THREE_SAMPLES,
    },
    explains=("guest-run-queue-high", "guest-load-average-per-core", "guest-steal-time", "cpu-vmwait-high"),
    clears=False,  # no waiting for swap says nothing about contention for cores
)

_SPEC = vcpu_time("cpu_swap_wait_pct", "time waiting for hypervisor swap")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; the worst vCPUs are the evidence."""
    for finding in over_threshold(context, _SPEC):
        is_felt = (finding.evidence[0].value or 0.0) >= context.limit("felt")
        yield finding if is_felt else replace(finding, severity=Severity.LOW)
