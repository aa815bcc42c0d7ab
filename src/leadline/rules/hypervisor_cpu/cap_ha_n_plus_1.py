"""A cluster could not carry its load at peak with one host less.

Finds:
    Clusters whose CPU or memory in use, as the 95th percentile of the sum over all hosts, exceeds 80 % (medium) or
    100 % (high) of what they have without their largest host. All hosts must be recorded at the same time, for at
    least ten minutes.

Why:
    A host fails, or is patched, sooner or later. If the others cannot take its VMs at peak, every database of the
    cluster slows down at once, and on vSAN data is rebuilt at the same time.

Do:
    Add a host, or move and shrink VMs until the peak fits with one host less. On vSAN the spare host must hold the
    capacity of its disk groups too.

When it is wrong:
    Memory in use counts what guests once touched, which hosts can reclaim in part. A recording that does not hold the
    peak hides the condition. Clusters whose replicas are elsewhere may do without a spare host.

Sources:
    vmgu.ru, SQL Server on vSAN: an additional host for the failure of a disk, disk group or host. vSAN Design and
    Sizing guide. vCheck for vSphere. Virtualizing large databases, VMware CPU capacity planning: 80 % at peak.
    Judgement: ten minutes; less does not tell a peak from a burst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import sample_bounds
from leadline.estate.arithmetic.timeline import host_groups, window_mean
from leadline.estate.knowledge.placement import hosts_by_cluster
from leadline.estate.language.templates import joined

if TYPE_CHECKING:
    from numpy.typing import NDArray

META = RuleMeta(
    code="CPU156",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    needs=("host.cluster", "host_cpu_util_pct|host_cpu_core_util_pct|host_memory_free_mib"),
    uses=("host_memory_machine_mib",),
    thresholds={
        "warn": Threshold(80.0, "pct", "Virtualizing large databases: VMware CPU capacity planning"),
        "crit": Threshold(100.0, "pct", "vmgu.ru: one additional host"),
        "duration": Threshold(600.0, "s", "Judgement: less does not tell a peak from a burst"),
    },
    clears=False,
)
_HOST_COUNT_MIN = 2
_QUANTILE = 0.95
_Series = dict[Entity, tuple[SeriesGroup, float]]  # per host: its use in units of capacity, and the capacity


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster; CPU and memory are one finding."""
    inventory = context.inventory
    sources: dict[str, Callable[[RuleContext], _Series]] = {"CPU": _cpu, "memory": _memory}
    series = {noun: of(context) for noun, of in sources.items()}
    for cluster, hosts in hosts_by_cluster(inventory).items():
        count = inventory.get(cluster, "host_count")
        if len(hosts) < _HOST_COUNT_MIN or (count is not None and count > len(hosts)):
            continue
        findings = [
            finding for noun, by_host in series.items() for finding in _judge(context, cluster, hosts, (noun, by_host))
        ]
        if findings:
            yield joined(findings, context.limit("duration"))


def _cpu(context: RuleContext) -> _Series:
    """CPU use in core MHz, or in cores where no frequency is known at all."""
    inventory = context.inventory
    clocked = all(inventory.get(host, "cpu_mhz") for host in inventory.of_kind(EntityKind.HOST))
    by_host: _Series = {}
    for metric in ("host_cpu_core_util_pct", "host_cpu_util_pct"):
        for group in host_groups(context, metric):
            for row, host in enumerate(group.entities):
                cores = inventory.get(host, "core_count")
                if cores:
                    capacity = float(cores) * (float(inventory.get(host, "cpu_mhz")) if clocked else 1.0)
                    part = group.take([row])
                    by_host[host] = (replace(part, values=part.values / 100.0 * capacity), capacity)
    return by_host


def _memory(context: RuleContext) -> _Series:
    """Memory in use in MiB: what is installed less what is free."""
    by_host: _Series = {}
    for group in context.of("host_memory_free_mib", EntityKind.HOST):
        installed = context.aligned(group, "host_memory_machine_mib")
        for row, host in enumerate(group.entities):
            known = None if installed is None or np.isnan(installed[row]).all() else float(np.nanmax(installed[row]))
            capacity = known or context.inventory.get(host, "memory_mib")
            if capacity:
                part = group.take([row])
                by_host[host] = (replace(part, values=float(capacity) - part.values), float(capacity))
    return by_host


def _judge(
    context: RuleContext, cluster: Entity, hosts: list[Entity], resource: tuple[str, _Series]
) -> Iterator[Finding]:
    noun, series = resource
    if not all(host in series for host in hosts):
        return
    sums, lengths_s = _sum([series[host][0] for host in hosts])
    if lengths_s < context.limit("duration"):
        return
    capacities = [series[host][1] for host in hosts]
    left = sum(capacities) - max(capacities)
    share = 100.0 * float(np.quantile(sums, _QUANTILE)) / left
    if share <= context.limit("warn"):
        return
    evidence = Evidence(
        f"{noun} in use over {len(hosts)} hosts: 95th percentile {show(share, 'pct')} of what is left "
        "without the largest host",
        entity=cluster,
        statistic="p95",
        value=share,
        threshold=context.limit("warn"),
        unit="pct",
    )
    yield context.finding(
        cluster,
        f"Cluster {cluster.label()} needs {show(share, 'pct')} of the {noun} it would have with one host less "
        f"(limit {show(context.limit('warn'), 'pct')})",
        [evidence],
        severity=META.severity if share > context.limit("crit") else META.severity.lowered(),
        score=share / context.limit("warn"),
    )


def _sum(groups: list[SeriesGroup]) -> tuple[NDArray[np.floating[Any]], float]:
    """The sum over hosts where all were measured [m], on the windows of the coarsest, and how many seconds that is."""
    grid = max(groups, key=lambda group: (np.nan_to_num(group.interval_s, nan=0.0), -len(group.times_ns)))
    starts, ends = sample_bounds(grid)
    total = np.sum([window_mean(group, starts, ends)[0] for group in groups], axis=0)
    known = np.isfinite(total)
    return total[known], float((ends - starts)[known].sum()) / 1e9
