"""A CPU limit is configured on a VM.

Finds:
    VMs with a CPU limit in MHz (medium). A limit that is at least what all its vCPUs can use at the host's nominal
    frequency does not bind, and is informative.

Why:
    A limit holds the VM back at its ceiling although cores are free, and the time looks like contention. It is easily
    forgotten: it stays when vCPUs are added, when the template is copied, and when a newer host is faster.

Do:
    Set the limit to unlimited
    (`Get-VM NAME | Get-VMResourceConfiguration | Set-VMResourceConfiguration -CpuLimitMhz $null`), and use
    shares, or reservations for the database. Look at the resource pools above the VM too.

When it is wrong:
    A limit may be meant, as the size a customer pays for. Whether it bites shows in the time held back by it
    (cpu-mlmtd-nonzero), not in the configuration.

Sources:
    vCheck for vSphere (VM CPU limits). Architecting Microsoft SQL Server on VMware vSphere: no limits on database VMs.
    Judgement: a limit above vCPUs times nominal frequency is harmless; turbo alone could reach it.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import runs
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU136",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    causes=("cpu-capped",),
    needs=("vm.cpu_limit_mhz",),
    clears=False,  # a configuration without a limit says nothing about contention
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM that may run."""
    inventory = context.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        limit = inventory.get(vm, "cpu_limit_mhz")
        if limit is None or limit <= 0 or not runs(inventory, vm):  # -1 is the API's "no limit"
            continue
        host = vm.ancestor(EntityKind.HOST)
        vcpus = inventory.get(vm, "vcpu_count")
        mhz = None if host is None else inventory.get(host, "cpu_mhz")
        binds = not vcpus or not mhz or limit < vcpus * mhz
        summary = f"The CPU of {vm.label()} is limited to {show(limit, 'mhz')}"
        if vcpus and mhz:
            summary += f", {100.0 * limit / (vcpus * mhz):.0f} % of what its {vcpus} vCPUs can use"
        facts = [(vm, "cpu_limit_mhz"), (vm, "vcpu_count"), (host, "cpu_mhz")]
        yield of_facts(context, vm, summary, facts, severity=META.severity if binds else Severity.INFO)
