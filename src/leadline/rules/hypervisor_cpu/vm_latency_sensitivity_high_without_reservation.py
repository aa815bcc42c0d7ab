"""A VM asks for high latency sensitivity without reserving the CPU and memory that takes.

Finds:
    VMs with latency sensitivity high whose CPU reservation is below vCPUs times the host's nominal frequency, or whose
    memory reservation is below the configured memory. A reservation that is not known is not judged.

Why:
    High latency sensitivity gives each vCPU a core of its own, but only for a VM whose CPU is fully reserved; without
    it the setting silently does not take effect, or the VM does not start. Without memory of its own the VM can
    be swapped, which undoes what the cores gained.

Do:
    Reserve all CPU (vCPUs times nominal MHz) and all memory of the VM, and check that the host has that many cores
    free; otherwise set latency sensitivity back to normal.

When it is wrong:
    Some releases want the CPU reserved at the frequency the host really runs at; a slightly smaller reservation can
    suffice. A VM that is off is judged as if it ran.

Sources:
    Performance Best Practices for VMware vSphere: latency sensitivity high needs full CPU and memory reservations.
    Judgement: medium, because what the VM gets instead depends on the release and on the host's load.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import memory_text
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU147",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("vm.latency_sensitivity",),
    thresholds={
        "reserved": Threshold(100.0, "pct", "Performance Best Practices for VMware vSphere: full reservation"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    inventory = context.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        if str(inventory.get(vm, "latency_sensitivity")).casefold() != "high":
            continue
        missing = [text for text in (_cpu(context, vm), _memory(context, vm)) if text is not None]
        if missing:
            summary = f"{vm.label()} has latency sensitivity high, but {' and '.join(missing)}"
            settings = ("latency_sensitivity", "cpu_reservation_mhz", "memory_reservation_mib")
            yield of_facts(context, vm, summary, [(vm, setting) for setting in settings])


def _cpu(context: RuleContext, vm: Entity) -> str | None:
    """What is wrong with the CPU reservation; a reservation of zero is wrong whatever the host's frequency is."""
    inventory, host = context.inventory, vm.ancestor(EntityKind.HOST)
    reserved = inventory.get(vm, "cpu_reservation_mhz")
    vcpus = inventory.get(vm, "vcpu_count")
    mhz = None if host is None else inventory.get(host, "cpu_mhz")
    if reserved is None:
        return None
    if reserved <= 0:
        return "no CPU is reserved"
    if not vcpus or not mhz or reserved >= context.limit("reserved") / 100.0 * vcpus * mhz:
        return None
    return f"only {show(reserved, 'mhz')} of {show(vcpus * mhz, 'mhz')} CPU are reserved"


def _memory(context: RuleContext, vm: Entity) -> str | None:
    inventory = context.inventory
    reserved, memory = inventory.get(vm, "memory_reservation_mib"), inventory.get(vm, "memory_mib")
    if inventory.get(vm, "memory_reservation_locked") is True or reserved is None or not memory:
        return None
    if reserved >= context.limit("reserved") / 100.0 * memory:
        return None
    return f"only {memory_text(reserved)} of {memory_text(memory)} memory are reserved"
