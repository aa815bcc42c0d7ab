"""A VM is set to virtualise the processor or its page tables in software.

Finds:
    VMs whose instruction or memory virtualisation is set to software, or switched off, by setting or by
    `monitor.virtual_exec` and `monitor.virtual_mmu` in the .vmx file.

Why:
    Without the processor's help every change of a page table and many instructions leave the guest. A database with
    many connections and much memory changes page tables all the time.

Do:
    Set it to automatic, with the VM off, or remove the line from the .vmx file. If the host's processor support is off
    in its firmware, switch it on there.

When it is wrong:
    Very old guests ran better with it; no current one does.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): pgbench on 8 vCPUs, 4.2 ms
    with software and 1.7 ms with hardware virtualisation. vCheck-vSphere, plug-in on CPU and MMU settings.
    Performance Best Practices for VMware vSphere 7 and 8.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="VMC138",
    layer=Layer.VM,
    severity=Severity.HIGH,
    needs=("vm.cpu_virtualisation|vm.mmu_virtualisation|vm.extra_config",),
    clears=False,  # the right mode says nothing about latency
)
_SETTINGS = (("cpu_virtualisation", "monitor.virtual_exec"), ("mmu_virtualisation", "monitor.virtual_mmu"))
_BAD = frozenset({"software", "off", "hvoff"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        evidence = [item for setting, key in _SETTINGS for item in _bad(context, vm, setting, key)]
        if evidence:
            yield context.finding(vm, f"{vm.label()} is set to software virtualisation", evidence)


def _bad(context: RuleContext, vm: Entity, setting: str, key: str) -> Iterator[Evidence]:
    """Evidence where the setting, or else the line of the .vmx file, has a bad value."""
    fact, name = context.inventory.fact(vm, setting), setting
    value = None if fact is None else fact.value
    if fact is None:
        fact, name = context.inventory.fact(vm, "extra_config"), key
        value = None if fact is None else fact.value.get(key)
    if fact is not None and str(value).casefold() in _BAD:
        yield Evidence(f"{name} of {vm.label()} is {value}", entity=vm, source=fact.source)
