"""vCPUs are ready to run but wait for a physical CPU.

Finds:
    Ready time per vCPU, less the part a CPU limit causes, above 5 % (warning) or 10 % (critical) for at least 15 s.
    Where the time of a limit was not recorded and the host is less than 70 % busy, a CPU limit of the VM or of its
    resource pool is named as the first suspect.

Why:
    A ready vCPU has work and no core. The guest cannot see it: its clocks and its CPU percentages look normal while
    every query takes longer. Ready time hits databases early because one late vCPU holding a lock or a latch holds up
    the others.

Do:
    Rule out a CPU limit first (cpu-mlmtd-nonzero). Then take vCPUs from oversized VMs, move VMs off the host, check
    DRS rules, or add cores.

When it is wrong:
    esxtop's `Group Cpu` line is the sum over all worlds of the VM; the importer divides it by the vCPU count. Where
    the count is not known the sum is not used. Short bursts at VM start or vMotion are not contention: the duration
    filters them.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): ready shows time waited
    for a CPU, limits to be ruled out first; no number.
    Yellow-Bricks esxtop thresholds: 10 % per vCPU. EsxtopDrill c_map.csv: 5 % warning.
    Judgement: 15 s is three samples of esxtop's default 5 s; 70 %, below which a host has a core free most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.estate.language.templates import Minus, Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

_HOST_CPU = ("host_cpu_core_util_pct", "host_cpu_util_pct", "host_cpu_used_pct")

META = RuleMeta(
    code="CPU101",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    causes=("cpu-taken",),
    needs=("cpu_ready_pct",),
    uses=("cpu_max_limited_pct", *_HOST_CPU),
    thresholds={
        "warn": Threshold(5.0, "pct", "EsxtopDrill c_map.csv"),
        "crit": Threshold(10.0, "pct", "Yellow-Bricks esxtop thresholds"),
        "host_busy": Threshold(70.0, "pct", "Judgement: below that a host has a core free most of the time"),
        "duration": THREE_SAMPLES,
    },
    explains=(
        "guest-run-queue-high",
        "guest-load-average-per-core",
        "guest-steal-time",
        "guest-cpu-looks-idle-host-saturated",
        "net-drops-vm-port",
        "cpu-latency-high",
        "db-component-response-time",
    ),
    examines="ready time",
)

_SPEC = Over(
    metric="cpu_ready_pct",
    noun="ready time per vCPU",
    kinds=(EntityKind.VCPU, EntityKind.VM),
    value=Minus(("cpu_max_limited_pct",)),
    roll_up=EntityKind.VM,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; the worst vCPUs are the evidence."""
    hosts = [group for metric in _HOST_CPU for group in context.of(metric, EntityKind.HOST)]
    measured = {e.ancestor(EntityKind.VM) or e for g in context.of("cpu_max_limited_pct") for e in g.entities}
    for finding in over_threshold(context, _SPEC):
        if finding.entity in measured:
            yield finding
            continue
        host = finding.entity.ancestor(EntityKind.HOST)
        busy = None if host is None else means_over(hosts, finding.windows, host).get(host)
        yield finding if busy is None or busy >= context.limit("host_busy") else _limited(finding, busy)


def _limited(finding: Finding, host_busy_pct: float) -> Finding:
    """A VM that waits for a CPU on a host that has some is probably limited."""
    reason = f"its host is only {show(host_busy_pct, 'pct')} busy"
    evidence = Evidence(
        f"{reason}: a CPU limit of the VM or of its resource pool is the first suspect",
        statistic="mean",
        value=host_busy_pct,
        unit="pct",
    )
    summary = f"{finding.summary}; {reason}, so look for a CPU limit of the VM or its pool first"
    return replace(finding, summary=summary, evidence=(*finding.evidence, evidence))
