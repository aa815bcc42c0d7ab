"""vCPUs of one VM are stopped so that their siblings can catch up.

Finds:
    Co-stop time per vCPU above 1 % (warning) or 3 % (critical) for at least 15 s.

Why:
    A VM with several vCPUs expects them to advance together. When one cannot get a core, or waits in the hypervisor
    for the I/O of a snapshot, the scheduler stops the ones that ran ahead. The guest's clocks and CPU percentages do
    not show it; a database sees latches and spinlocks held for longer than any work explains.

Do:
    Give the VM no more vCPUs than its load needs, move other wide VMs off the host, delete snapshots in a quiet
    hour, and take CPU limits off. Reservations and shares do not help a VM that is too wide for its host.

When it is wrong:
    Some co-stop belongs to starting, suspending and vMotion; the duration filters it. Where only the VM's line was
    recorded, it is the mean over its vCPUs and hides one bad vCPU among many.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): co-stop rises together with
    ready time when wide VMs share cores; single vCPUs are stopped, not the whole VM.
    Yellow-Bricks esxtop thresholds: 3 %. EsxtopDrill c_map.csv: 1 %.
    Judgement: 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.symptoms import VM_WAITS_FOR_CPU
from leadline.rules._families.vcpu_time import vcpu_time

META = RuleMeta(
    code="CPU102",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    causes=("cpu-taken",),
    needs=("cpu_costop_pct",),
    thresholds={
        "warn": Threshold(1.0, "pct", "EsxtopDrill c_map.csv"),
        "crit": Threshold(3.0, "pct", "Yellow-Bricks esxtop thresholds"),
        "duration": THREE_SAMPLES,
    },
    explains=VM_WAITS_FOR_CPU,
)

_SPEC = vcpu_time("cpu_costop_pct", "co-stop time")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; the worst vCPUs are the evidence, and a snapshot is named as a possible cause."""
    for finding in over_threshold(context, _SPEC):
        snapshots = context.inventory.fact(finding.entity, "snapshot_count")
        if snapshots is None or snapshots.value < 1:
            yield finding
            continue
        note = Evidence(
            f"{finding.entity.label()} runs on a snapshot; vCPUs that wait for its I/O hold up the others",
            entity=finding.entity,
            source=snapshots.source,
        )
        yield replace(finding, evidence=(*finding.evidence, note))
