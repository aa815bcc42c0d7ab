"""The hypervisor spends much CPU time on services for a VM, usually its I/O.

Finds:
    System time per vCPU above 10 % (informative) or 20 % (low) for at least 15 s. The VM's disk operations and packets
    of the same time are added where they were recorded.

Why:
    Each disk request and packet costs the VMkernel interrupts, queueing and copying; it charges the time to the VM it
    works for. A large share means that the VM pays for many small I/Os, or for emulated adapters that cost more per
    request. The time is not available to vCPUs.

Do:
    Compare it with the I/O rate. Use PVSCSI (or NVMe) and VMXNET3, fewer and larger requests, and leave interrupt
    coalescing on. Leave cores of the host free for it.

When it is wrong:
    A VM with very high I/O rates has earned it. Snapshots being consolidated and vMotion are charged in the same way
    for as long as they last.

Sources:
    VMware, Interpreting esxtop statistics: %SYS is time of system services on behalf of the world; no number.
    Judgement: 10 % and 20 %, since healthy database VMs stay well below them; low, because it is a cost, not a wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.estate.language.templates import over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.vcpu_time import vcpu_time

META = RuleMeta(
    code="CPU131",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    needs=("cpu_system_pct",),
    uses=("disk_reads_per_s", "disk_writes_per_s", "net_tx_packets_per_s", "net_rx_packets_per_s"),
    thresholds={
        "warn": Threshold(10.0, "pct", "Judgement: healthy database VMs stay well below it"),
        "crit": Threshold(20.0, "pct", "Judgement: a fifth of each vCPU"),
        "duration": THREE_SAMPLES,
    },
    clears=False,
    judgement=True,
)

_SPEC = vcpu_time("cpu_system_pct", "system time")
_RATES = (
    ("disk operations", EntityKind.VIRTUAL_DISK, ("disk_reads_per_s", "disk_writes_per_s")),
    ("packets", EntityKind.PORT, ("net_tx_packets_per_s", "net_rx_packets_per_s")),
)


_Rows = dict[tuple[str, Entity], list[tuple[SeriesGroup, list[int]]]]


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM, with the I/O it did meanwhile."""
    rows: _Rows = {}
    for finding in over_threshold(context, _SPEC):
        rows = rows or _rows_by_vm(context)
        yield replace(finding, evidence=(*finding.evidence, *_work(rows, finding)))


def _rows_by_vm(context: RuleContext) -> _Rows:
    """Groups of rates with the rows of a VM's parts, by metric and VM."""
    rows_by_vm: _Rows = {}
    for metric, kind in ((metric, kind) for _, kind, metrics in _RATES for metric in metrics):
        for group in context.of(metric, kind):
            rows: dict[Entity, list[int]] = {}
            for row, entity in enumerate(group.entities):
                if entity.parent is not None:
                    rows.setdefault(entity.parent, []).append(row)
            for vm, of_vm in rows.items():
                rows_by_vm.setdefault((metric, vm), []).append((group, of_vm))
    return rows_by_vm


def _work(rows: _Rows, finding: Finding) -> Iterator[Evidence]:
    vm = finding.entity
    for noun, _, metrics in _RATES:
        rates: list[float] = []
        for metric in metrics:
            groups = (group.take(of_vm) for group, of_vm in rows.get((metric, vm), ()))
            rates.extend(means_over(groups, finding.windows).values())
        if rates:
            yield Evidence(
                f"meanwhile {show(sum(rates), 'per_s')} {noun} of {vm.label()}",
                entity=vm,
                statistic="mean",
                value=sum(rates),
                unit="per_s",
            )
