"""A first-tier database has no CPU reservation on a host that is overcommitted.

Finds:
    Running database VMs of the first tier with a CPU reservation of zero, on hosts whose running VMs have more vCPUs
    than there are cores.

Why:
    Without a reservation the database competes by shares with every test VM that happens to be busy. Its ready time is
    then decided by its neighbours.

Do:
    Reserve the MHz the database needs at peak, or give it (and its resource pool) high shares. Reservations for all
    VMs reserve nothing: keep them for the few that matter.

When it is wrong:
    On a host that never fills up a reservation changes nothing. A reservation of the resource pool above the VM serves
    as well and is not seen here.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): reserve resources for the
    demanding fifth of the cases. InterSystems Data Platforms and performance, part 9.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.placement import production_databases, running_vms, vcpu_sum
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU148",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    needs=("vm.cpu_reservation_mhz", "vm.tier", "vm.vcpu_count", "host.core_count"),
    thresholds={
        "warn": Threshold(1.0, "ratio", "Virtualizing large databases: vCPUs per core from which VMs compete"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    inventory = context.inventory
    first, _ = production_databases(inventory)
    for host, vms in running_vms(inventory).items():
        cores = inventory.get(host, "core_count")
        ratio = vcpu_sum(inventory, vms) / cores if cores else 0.0
        if ratio <= context.limit("warn"):
            continue
        for vm in vms:
            if vm in first and inventory.get(vm, "cpu_reservation_mhz") == 0:
                summary = (
                    f"{vm.label()} has no CPU reservation; {host.label()} runs {show(ratio, 'ratio')} vCPUs per core"
                )
                facts = [(vm, "cpu_reservation_mhz"), (vm, "tier"), (host, "core_count")]
                yield of_facts(context, vm, summary, facts)
