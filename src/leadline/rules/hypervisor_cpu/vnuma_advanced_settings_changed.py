"""Advanced NUMA settings of a VM were changed from their defaults.

Finds:
    VMs whose advanced settings hold one of numa.vcpu.maxPerVirtualNode, numa.vcpu.min, numa.autosize,
    numa.autosize.once, numa.nodeAffinity, numa.vcpu.preferHT or numa.vcpu.followcorespersocket with a value that is
    not the default. Values VMware writes itself at power-on are left out.

Why:
    They override how the hypervisor sizes and places the VM. Set for one host or one benchmark, they stay when the VM
    moves to hardware with other nodes, and then force a layout nobody would choose.

Do:
    Remove the setting with the VM powered off, unless somebody can say what it is for and measured it. Then write that
    down beside it.

When it is wrong:
    There are reasons for some of them: numa.vcpu.preferHT keeps a VM with many threads and a small memory in one
    node, numa.vcpu.min shows nodes to a VM that exceeds a node by its memory only.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): they need changing in rare
    cases only. vSphere Resource Management, Virtual NUMA controls: names and defaults.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="CPU153",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("vm.extra_config",),
    clears=False,
)

# Key in lower case -> values that change nothing.
_DEFAULTS: dict[str, frozenset[str]] = {
    "numa.vcpu.maxpervirtualnode": frozenset(),
    "numa.vcpu.min": frozenset({"9"}),
    "numa.autosize": frozenset({"false"}),
    "numa.autosize.once": frozenset({"true"}),
    "numa.nodeaffinity": frozenset({""}),
    "numa.vcpu.preferht": frozenset({"false"}),
    "numa.vcpu.followcorespersocket": frozenset({"0"}),
}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; each changed setting is evidence."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        fact = context.inventory.fact(vm, "extra_config")
        if fact is None:
            continue
        changed = {key: value for key, value in fact.value.items() if _changed(key, str(value))}
        if changed:
            evidence = [
                Evidence(f"{key} of {vm.label()} is {value}", entity=vm, source=fact.source)
                for key, value in changed.items()
            ]
            yield context.finding(vm, f"{vm.label()} overrides {', '.join(changed)}", evidence)


def _changed(key: str, value: str) -> bool:
    defaults = _DEFAULTS.get(key.casefold())
    return (
        defaults is not None and value.strip().casefold().removesuffix(".0") not in defaults
    )  # numbers are read as 9.0
