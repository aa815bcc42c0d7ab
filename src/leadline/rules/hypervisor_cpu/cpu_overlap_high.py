"""System services of the hypervisor interrupt a VM's vCPUs to work for others.

Finds:
    Overlap time per vCPU above 5 % (informative) or 10 % (low) for at least 15 s.

Why:
    Interrupts and bottom halves run on whatever core they hit, on top of the vCPU scheduled there. The vCPU loses the
    time without being descheduled, so neither the guest nor ready time shows it. Much of it says the host is busy with
    I/O, its own or a neighbour's.

Do:
    Find the VM with the high system time or I/O rate on the host and move it, or the database, elsewhere. Keep cores
    of the host free for I/O processing.

When it is wrong:
    A database that does the I/O itself interrupts its own vCPUs; then the system time of the same VM is high as well,
    and there is no neighbour to move.

Sources:
    VMware, Interpreting esxtop statistics: %OVRLP is time of system services that belong to other worlds; no number.
    Judgement: 5 % and 10 %, as for ready time, which costs a vCPU as much; low, because the counter alone does not
    tell who caused it.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.vcpu_time import vcpu_time

META = RuleMeta(
    code="CPU132",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    causes=("cpu-taken",),
    needs=("cpu_overlap_pct",),
    thresholds={
        "warn": Threshold(5.0, "pct", "Judgement: the warning limit of ready time"),
        "crit": Threshold(10.0, "pct", "Judgement: the critical limit of ready time"),
        "duration": THREE_SAMPLES,
    },
    clears=False,
    judgement=True,
)

_SPEC = vcpu_time("cpu_overlap_pct", "overlap time")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; the worst vCPUs are the evidence."""
    yield from over_threshold(context, _SPEC)
