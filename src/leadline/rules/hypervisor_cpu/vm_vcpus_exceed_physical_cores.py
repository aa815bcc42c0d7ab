"""A VM has more vCPUs than its host has physical cores.

Finds:
    VMs whose vCPU count exceeds the core count of their host; hyper-threads are not cores.

Why:
    All vCPUs of such a VM can never run on cores of their own at once. They wait for each other even when the host
    runs nothing else: ready time and co-stop come with the size itself, and measured throughput hardly rises beyond
    the core count while response time stops being steady.

Do:
    Set the vCPU count to at most the number of physical cores, better to what the load needs at peak. Measure the
    database's CPU use over a busy week first.

When it is wrong:
    A VM that must be ready for a larger host, or whose vCPUs are mostly idle, pays little for it. The core count of
    the host must be known: an inventory file that counts threads as cores hides the condition.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): no VM larger than the physical
    cores; 36 and 48 vCPUs on 24 cores brought little.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="CPU107",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    needs=("vm.vcpu_count", "host.core_count"),
    thresholds={
        "warn": Threshold(
            1.0, "ratio", "Virtualizing large databases: VMware CPU capacity planning (vCPUs per physical core)"
        ),
    },
    explains=("cpu-costop-high", "cap-vcpu-pcore-ratio-prod-db", "cap-host-overcommit-nonprod"),
    clears=False,  # a fitting size says nothing about contention
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM whose host is known."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        host = vm.ancestor(EntityKind.HOST)
        cores = None if host is None else context.inventory.get(host, "core_count")
        if host is None or not cores or fact.value <= context.limit("warn") * cores:
            return None
        return f"{vm.label()} has {fact.value} vCPUs, its host {host.name} has {cores} cores", META.severity

    yield from by_setting(context, EntityKind.VM, "vcpu_count", judge)
