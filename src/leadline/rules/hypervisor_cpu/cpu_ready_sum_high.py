"""A VM's vCPUs are ready but wait for a CPU, as a sum over vCPUs whose number is not known.

Finds:
    Ready time of a whole VM above 5 % (low severity) or 80 % (medium) for at least 15 s, where nothing says how many
    vCPUs the VM has. The finding names the vCPU count from which that would be harmless: the sum divided by 5 %.

Why:
    Past its last hour vCenter keeps ready time only for the whole VM, as a sum over its vCPUs. 350 % is 44 % for each
    of 8 vCPUs, which every query feels, and 4 % for each of 80.

Do:
    Name the vCPU count: in an inventory file (`vcpu_count`), or give the VM's .vmx file, an RVTools export or `leadline
    collect vcenter`. Then the sum is judged per vCPU. Where the count is below the one named, look at CPU limits of the
    VM and of its resource pool first, then at the load of its host.

When it is wrong:
    A VM with more vCPUs than the count that is named waits for less than 5 % per vCPU, which is normal.

Sources:
    vSphere API, counter cpu.ready.summation: a roll-up over instances is their sum.
    EsxtopDrill c_map.csv: 5 % per vCPU. Judgement: few VMs have more than 16 vCPUs, of which 80 % is 5 % each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="CPU159",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("cpu_ready_pct_sum",),
    thresholds={
        "warn": Threshold(5.0, "pct", "EsxtopDrill c_map.csv"),
        "crit": Threshold(80.0, "pct", "Judgement: 5 % for each of 16 vCPUs; few VMs have more"),
        "duration": THREE_SAMPLES,
    },
    explains=("guest-run-queue-high", "guest-load-average-per-core", "guest-steal-time"),
    clears=False,
    judgement=True,
)

_SPEC = Over(metric="cpu_ready_pct_sum", noun="ready time", kinds=(EntityKind.VM,))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    for finding in over_threshold(context, _SPEC):
        whole = finding.evidence[0].value
        if whole is None:
            continue
        count = ceil(whole / context.stated_limit("warn"))
        sentence = f"harmless from {count} vCPUs on; how many it has is not known"
        evidence = (*finding.evidence, Evidence(f"{show(whole, 'pct')} / 5 % = {count} vCPUs: {sentence}"))
        summary = f"Ready time {show(whole, 'pct')} in sum on {finding.entity.label()}: {sentence}"
        yield replace(finding, summary=summary, evidence=evidence)
