"""A host without the side-channel aware scheduler is too busy to switch it on.

Finds:
    Hosts whose hyperthreadingMitigation is off, with a mean utilisation above 70 %, or with a running VM that has more
    vCPUs than the host has cores.

Why:
    The scheduler takes threads away from the VMs. A host that already needs them is overloaded the moment it is
    switched on, and a VM wider than the cores cannot have all its vCPUs scheduled at once any more.

Do:
    Before closing the vulnerability on this host, move load away or add a host, and shrink the VMs that are wider than
    the cores. Processors with the flaws fixed in hardware need no such scheduler.

When it is wrong:
    It is about a change somebody may plan, not about slowness today; that is why it is low. A recording of a quiet
    hour says nothing of the peak.

Sources:
    Broadcom KB 67577, planning phase of the MDS mitigation: 70 % average CPU use, VMs with more vCPUs than cores.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.timeline import host_groups
from leadline.estate.knowledge.placement import kernel_flag, running_vms

META = RuleMeta(
    code="CPU145",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    needs=("host.kernel_settings", "host_cpu_util_pct|host_cpu_core_util_pct|host.core_count"),
    thresholds={"warn": Threshold(70.0, "pct", "Broadcom KB 67577: planning phase")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    running = running_vms(context.inventory)
    metric = "host_cpu_util_pct" if context.of("host_cpu_util_pct") else "host_cpu_core_util_pct"
    utilisation = host_groups(context, metric)
    for host in context.inventory.of_kind(EntityKind.HOST):
        if kernel_flag(context.inventory, host, "hyperthreadingMitigation") is not False:
            continue
        evidence = [*_busy(context, utilisation, host), *_wide(context, host, running.get(host, []))]
        if evidence:
            summary = f"{host.label()} is too full for the side-channel aware scheduler: {evidence[0].statement}"
            yield context.finding(host, summary, evidence)


def _busy(context: RuleContext, utilisation: list[SeriesGroup], host: Entity) -> Iterator[Evidence]:
    for group in utilisation:
        row = group.row(host)
        mean = float("nan") if row is None or not np.isfinite(row).any() else float(np.nanmean(row))
        if mean > context.limit("warn"):
            yield Evidence(
                f"mean utilisation {show(mean, 'pct')}",
                metric=group.metric,
                entity=host,
                statistic="mean",
                value=mean,
                threshold=context.limit("warn"),
                unit="pct",
                source=context.source_name(group),
            )


def _wide(context: RuleContext, host: Entity, vms: list[Entity]) -> Iterator[Evidence]:
    cores = context.inventory.get(host, "core_count")
    for vm in vms:
        vcpus = context.inventory.settings(vm)["vcpu_count"]
        if cores and vcpus.value > cores:
            yield Evidence(f"{vm.name} has {vcpus.value} vCPUs on {cores} cores", entity=vm, source=vcpus.source)
