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
from dataclasses import replace
from math import ceil

import numpy as np

from leadline.core.capture import SeriesGroup
from leadline.core.entities import Entity
from leadline.core.episodes import sample_bounds
from leadline.core.finding import Evidence, Finding
from leadline.core.placement import READY_METRICS, waited_pct
from leadline.core.rule import RuleContext, RuleMeta, Threshold
from leadline.core.timeline import whole_of_parts
from leadline.core.units import duration, show
from leadline.core.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="CPU139",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    catalogue=("vm-vcpu-oversized", "cap-cpu-peak-80"),
    needs=("cpu_used_pct|guest_cpu_busy_pct", "vm.vcpu_count"),
    uses=(*READY_METRICS, "cpu_costop_pct"),
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
_QUANTILE = 0.95
_WAITING = ("cpu_ready_pct", "cpu_costop_pct")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; a VM recorded several times is judged by the recording with the highest demand."""
    demands: dict[Entity, tuple[float, float, SeriesGroup, Entity]] = {}
    for group, owners in _demands(context):
        known = np.isfinite(group.values)
        starts, ends = sample_bounds(group)
        lengths = known @ ((ends - starts) / 1e9)
        for row, vm in enumerate(owners):
            vcpus = context.inventory.get(vm, "vcpu_count")
            if vcpus is None or vcpus <= context.limit("vcpus") or lengths[row] < context.limit("duration"):
                continue
            peak = float(np.quantile(group.values[row][known[row]], _QUANTILE))
            if vm not in demands or peak > demands[vm][0]:
                demands[vm] = (peak, float(lengths[row]), group, group.entities[row])
    for vm, (peak, length_s, group, seen) in demands.items():
        if peak < context.limit("warn"):
            yield _finding(context, vm, peak, length_s, (group, seen))


def _demands(context: RuleContext) -> Iterator[tuple[SeriesGroup, list[Entity]]]:
    """Demand in percent of all vCPUs, with the VM of each row; guests only of VMs not recorded themselves."""
    recorded: set[Entity] = set()
    for kind in (EntityKind.VM, EntityKind.VCPU):
        for group in context.of("cpu_used_pct", kind):
            rows = [i for i, e in enumerate(group.entities) if kind is EntityKind.VM or e.parent not in recorded]
            if rows:
                whole = whole_of_parts(_with_waiting(context, group.take(rows)), EntityKind.VM, np.nanmean)
                yield whole, list(whole.entities)
        recorded |= {
            vm for g in context.of("cpu_used_pct", kind) for e in g.entities if (vm := e.ancestor(EntityKind.VM))
        }
    for group in context.of("guest_cpu_busy_pct", EntityKind.GUEST):
        owners = {i: vm for i, e in enumerate(group.entities) if (vm := context.inventory.vm_of(e)) is not None}
        rows = [i for i, vm in owners.items() if vm not in recorded]
        if rows:
            yield group.take(rows), [owners[i] for i in rows]


def _with_waiting(context: RuleContext, group: SeriesGroup) -> SeriesGroup:
    values = group.values
    for metric in _WAITING:
        other = context.aligned(group, metric)
        if other is not None:
            values = values + np.nan_to_num(other, nan=0.0)
    return replace(group, values=values)


def _finding(
    context: RuleContext, vm: Entity, peak: float, length_s: float, seen: tuple[SeriesGroup, Entity]
) -> Finding:
    group, entity = seen
    vcpus = context.inventory.get(vm, "vcpu_count")
    enough = max(2 * ceil(peak * vcpus / context.limit("target") / 2), 2)
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
    host = vm.ancestor(EntityKind.HOST)
    crowded = host is not None and waited_pct(context, host) > context.limit("ready")
    harmful = crowded and length_s >= context.limit("long")
    return context.finding(
        vm,
        f"{vm.label()} needs {show(peak, 'pct')} of its {vcpus} vCPUs at peak; {enough} would do",
        [evidence],
        severity=META.severity if harmful else META.severity.lowered(),
        score=min(warn / peak, 100.0) if peak > 0 else 100.0,
    )
