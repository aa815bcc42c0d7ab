"""A VM has a memory limit.

Finds:
    A limit below the VM's memory (high); a limit where the VM's memory is not known (medium); a limit at or above it,
    which takes effect as soon as the VM is given more memory (low). Templates and VMs that are off are left out.

Why:
    The guest believes in the memory it was configured with and uses it. The hypervisor holds it to the limit by
    ballooning, compressing and swapping, on a host that may have plenty of memory free. Limits are mostly left over:
    from a template, from a day when memory was short.

Do:
    Set the limit to unlimited (in PowerCLI `Get-VMResourceConfiguration | Set-VMResourceConfiguration -MemLimitMB
    $null`; in the .vmx file remove sched.mem.max). To give a VM less memory, configure less.

When it is wrong:
    Never for a database. A limit may be meant to squeeze a test VM.

Sources:
    vCheck for vSphere: no memory limits. EsxtopDrill c_map.csv: a limit must be -1.
    Judgement: medium where the memory is not known, low where the limit has no effect yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import runs
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="MEM136",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.HIGH,
    causes=("memory-short",),
    needs=("vm.memory_limit_mib",),
    thresholds={
        "missing": Threshold(0.0, "mib", "vCheck for vSphere: the VM must get all it was configured with"),
    },
    explains=(
        "mem-balloon-nonzero",
        "mem-swap-rate-nonzero",
        "mem-swapped-nonzero",
        "mem-compression-active",
        "mem-latency-high",
        "cpu-swpwt-high",
    ),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM with a limit; -1 is the API's "no limit"."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value < 0 or not runs(context.inventory, vm):
            return None
        statement = f"{vm.label()} has a memory limit of {show(fact.value, 'mib')}"
        memory_mib = context.inventory.get(vm, "memory_mib")
        if memory_mib is None:
            return statement, Severity.MEDIUM
        if memory_mib - fact.value > context.limit("missing"):
            return f"{statement} and {show(memory_mib, 'mib')} configured", META.severity
        return f"{statement}, not below its {show(memory_mib, 'mib')}", Severity.LOW

    yield from by_setting(context, EntityKind.VM, "memory_limit_mib", judge)
