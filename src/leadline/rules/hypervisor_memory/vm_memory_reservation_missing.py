"""The memory of a database VM is not fully reserved.

Finds:
    VMs known to run a database whose memory reservation is smaller than their memory and does not follow it (high);
    where only a name hints at a database, medium.

Why:
    What is not reserved may be taken away by ballooning or swapping as soon as the host is short, and the host's
    shortage is made by others. A database fills its memory with what it needs most: there are no idle pages to give.

Do:
    Reserve all guest memory: tick "Reserve all guest memory (All locked)", in PowerCLI
    `$spec.MemoryReservationLockedToMax = $true`, in the .vmx file `sched.mem.pin = "TRUE"`. Check that the cluster
    can still start the VM when a host fails: a reservation counts in admission control. It also saves the disk space
    of the swap file.

When it is wrong:
    On a host that never runs short the reservation changes nothing today; it is an insurance. Test databases need
    none. A resource pool with a reservation of its own protects its VMs as a group.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): reserve resources for
    demanding systems. Architecting Microsoft SQL Server on VMware vSphere; Oracle Databases on VMware best practices;
    InterSystems Data Platforms and performance part 9: reserve all memory of production databases.
    Judgement: medium where only the VM's name or a disk's name says that it is a database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_vms import database_guess, likely_database_vms
from leadline.estate.knowledge.placement import runs
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="MEM135",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.HIGH,
    needs=("vm.memory_reservation_mib", "vm.memory_mib"),
    thresholds={
        "missing": Threshold(0.0, "mib", "Architecting Microsoft SQL Server on VMware vSphere: all of it"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM that runs a database."""
    known = likely_database_vms(context.inventory)

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        memory_mib = context.inventory.get(vm, "memory_mib")
        locked = context.inventory.get(vm, "memory_reservation_locked") is True
        if vm not in known or memory_mib is None or locked or not runs(context.inventory, vm):
            return None
        if memory_mib - fact.value <= context.limit("missing"):
            return None
        summary = f"{vm.label()} runs a database with {show(fact.value, 'mib')} of {show(memory_mib, 'mib')} reserved"
        return summary, META.severity.lowered() if known[vm].guessed else META.severity

    for finding in by_setting(context, EntityKind.VM, "memory_reservation_mib", judge):
        vm = finding.entity
        yield replace(finding, guessed=(*finding.guessed, *database_guess(vm, known[vm])))
