"""A VM has more vCPUs than its peak demand needs.

Finds:
    VMs with more than 4 vCPUs whose demand (CPU used, plus ready time and co-stop) stayed below 40 % of them for 95 %
    of at least an hour: low. Medium when at least a day was recorded and VMs of the same host waited for a CPU (ready
    time above 5 % at the 95th percentile). Where the VM was not recorded, what its guest counts is used.

Why:
    Idle vCPUs are not free: they have timers and locks of their own, widen the VM beyond a NUMA node, and make the
    scheduler find more cores at once. With neighbours on the host, fewer busy vCPUs finish more work.

Do:
    Take the count the evidence names: demand at peak divided by 0.8, rounded up to an even number, plus the growth of
    the next months. Do it in a maintenance window and compare; add vCPUs when growth arrives, not before.

When it is wrong:
    The recording must hold the peak: month end, nightly jobs and failover are often outside it. Sizes demanded by a
    vendor or a licence are another matter.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): right-size, plan for 80 % at
    peak. Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides). vCheck for vSphere.
    Judgement: 40 % at the 95th percentile is half of the planning target; an hour shows more than a lull, a day most
    of what recurs; nobody is harmed by idle vCPUs of a host on which nobody waits.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import duration, show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.cpu_demand import Demand, demands, vcpus_for
from leadline.estate.derived.ready import ready_p95_of_host

META = RuleMeta(
    code="CPU139",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    catalogue=("cap-cpu-peak-80",),
    needs=("cpu_used_pct|guest_cpu_busy_pct", "vm.vcpu_count"),
    uses=(*ready_p95_of_host.reads, "cpu_costop_pct"),
    thresholds={
        "warn": Threshold(40.0, "pct", "Judgement: half of the planning target of 80 %"),
        "vcpus": Threshold(4.0, "count", "Judgement: small VMs are not worth the change"),
        "target": Threshold(80.0, "pct", "Virtualizing large databases: VMware CPU capacity planning"),
        "duration": Threshold(3600.0, "s", "Judgement: less is a lull"),
        "long": Threshold(86_400.0, "s", "Judgement: a day holds most of what recurs"),
        "ready": Threshold(5.0, "pct", "EsxtopDrill c_map.csv: ready time per vCPU"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; a VM recorded several times is judged by the recording with the highest demand."""
    highest: dict[Entity, Demand] = {}
    for demand in demands(context.capture):
        vcpus = context.inventory.get(demand.vm, "vcpu_count")
        if vcpus is None or vcpus <= context.limit("vcpus") or demand.length_s < context.limit("duration"):
            continue
        if demand.vm not in highest or demand.peak_pct > highest[demand.vm].peak_pct:
            highest[demand.vm] = demand
    oversized = [demand for demand in highest.values() if demand.peak_pct < context.limit("warn")]
    is_long = any(demand.length_s >= context.limit("long") for demand in oversized)
    waited_pct = context.table(ready_p95_of_host) if is_long else {}
    crowded = {host for host, waited in waited_pct.items() if waited > context.limit("ready")}
    for demand in oversized:
        long_enough = demand.length_s >= context.limit("long")
        yield _finding(context, demand, harmful=long_enough and demand.vm.ancestor(EntityKind.HOST) in crowded)


def _finding(context: RuleContext, demand: Demand, *, harmful: bool) -> Finding:
    vm, peak, length_s, group, entity = demand.vm, demand.peak_pct, demand.length_s, demand.group, demand.seen
    vcpus = context.inventory.get(vm, "vcpu_count")
    enough = vcpus_for(peak * vcpus / 100.0, context.limit("target"))
    warn = context.limit("warn")
    evidence = Evidence(
        f"demand of {entity.label()}: 95th percentile {show(peak, 'pct')} of {vcpus} vCPUs over "
        f"{duration(length_s)}; {enough} vCPUs would carry it at {show(context.limit('target'), 'pct')}",
        metric=group.metric,
        entity=entity,
        statistic="p95",
        value=peak,
        threshold=warn,
        unit="pct",
        source=context.source_name(group),
    )
    return context.finding(
        vm,
        f"{vm.label()} needs {show(peak, 'pct')} of its {vcpus} vCPUs at peak; {enough} would do",
        [evidence],
        severity=META.severity if harmful else META.severity.lowered(),
        score=min(warn / peak, 100.0) if peak > 0 else 100.0,
    )
