"""A CPU limit holds the VM back although it has work and the host may have cores.

Finds:
    Time held back by a limit above 0 % (warning) or 2 % (critical) per vCPU for at least 15 s. A limit read from the
    VM's configuration is added to the evidence.

Why:
    A limit of the VM or of a resource pool above it is a hard ceiling in MHz. At the ceiling the vCPUs are stopped
    while cores stand idle, and the time is counted as ready time too, so it looks like contention that no additional
    host would cure. Limits often survive from a template or from a time when the VM was small.

Do:
    Set the CPU limit of the VM to unlimited, and those of the resource pools above it
    (`Get-VM NAME | Get-VMResourceConfiguration | Set-VMResourceConfiguration -CpuLimitMhz $null`). Where neighbours
    must be protected use shares, and reservations for the database.

When it is wrong:
    A limit may be meant: a paid-for size in a cloud. Then the finding still says why the database is slow, and the
    remedy is a larger size. A VM that shows no configured limit is held by a resource pool.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): rule out CPU limits before
    capacity is added; no number.
    Yellow-Bricks esxtop thresholds: anything above 0. EsxtopDrill c_map.csv: 2 % critical.
    Judgement: 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.symptoms import VM_WAITS_FOR_CPU
from leadline.rules._families.vcpu_time import vcpu_time

META = RuleMeta(
    code="CPU103",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    causes=("cpu-capped",),
    needs=("cpu_max_limited_pct",),
    thresholds={
        "warn": Threshold(0.0, "pct", "Yellow-Bricks esxtop thresholds"),
        "crit": Threshold(2.0, "pct", "EsxtopDrill c_map.csv"),
        "duration": THREE_SAMPLES,
    },
    explains=("cpu-ready-high", "cpu-costop-high", "guest-cpu-looks-idle-host-saturated", *VM_WAITS_FOR_CPU),
)

_SPEC = vcpu_time("cpu_max_limited_pct", "time held back by a CPU limit")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; the worst vCPUs and the configured limit are the evidence."""
    for finding in over_threshold(context, _SPEC):
        limit = context.inventory.fact(finding.entity, "cpu_limit_mhz")
        if limit is None or limit.value <= 0:  # -1 is the API's "no limit": then it is a resource pool's
            yield finding
            continue
        note = Evidence(
            f"the limit of {finding.entity.label()} is {show(limit.value, 'mhz')}",
            entity=finding.entity,
            value=float(limit.value),
            unit="mhz",
            source=limit.source,
        )
        yield replace(finding, evidence=(*finding.evidence, note))
