"""vCPUs are blocked on something the hypervisor does for them, with work left to do.

Finds:
    Blocked time (idle not counted) per vCPU above 10 % (low) or 20 % (medium) for at least 15 s. Only vCPUs are looked
    at; the VM's helper worlds wait by nature.

Why:
    A vCPU that issues a request through an emulated path, or touches a page the hypervisor has swapped out, stands
    still until it is served. A guest that waits for its disk normally goes idle instead; blocked vCPUs mean that the
    wait happens below it, where the guest cannot use the time for other work.

Do:
    Look at swap wait first: if it is there, free memory on the host and reserve the VM's. Then at the latency of the
    VM's disks and at snapshots, and at controllers and network adapters that are not paravirtual.

When it is wrong:
    Waiting for a debugger, a suspended console, snapshot creation or vMotion blocks vCPUs as well; the duration
    filters most of it. Monitoring tools differ in whether helper worlds are in a VM's sum; that sum is not used.

Sources:
    EsxtopDrill c_map.csv: 10 % warning, 20 % critical, for vCPU worlds.
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
    code="CPU133",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("cpu_vmwait_pct",),
    thresholds={
        "warn": Threshold(10.0, "pct", "EsxtopDrill c_map.csv"),
        "crit": Threshold(20.0, "pct", "EsxtopDrill c_map.csv"),
        "duration": THREE_SAMPLES,
    },
    clears=False,  # not being blocked says nothing about contention for cores
)

_SPEC = Over(
    metric="cpu_vmwait_pct",
    noun="blocked time per vCPU",
    kinds=(EntityKind.VCPU,),
    roll_up=EntityKind.VM,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; the worst vCPUs are the evidence."""
    yield from over_threshold(context, _SPEC)
