"""A VM is pinned to certain physical CPUs.

Finds:
    VMs with CPU scheduling affinity.

Why:
    The scheduler may not move a pinned vCPU to a free core, and nothing keeps other VMs off the cores it is pinned to.
    The VM waits while cores are idle, memory locality suffers, and vMotion and DRS are not available to it.

Do:
    Remove the affinity. To give a database cores of its own, reserve its CPU in full, or set latency sensitivity to
    high together with full reservations.

When it is wrong:
    Some licences and appliances demand pinning. On a host that runs nothing else, pinning costs little.

Sources:
    Performance Best Practices for VMware vSphere: avoid CPU affinity, use reservations instead.
    Judgement: medium, because the harm depends on what else runs on those cores.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="CPU146",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("vm.cpu_affinity",),
    clears=False,
    judgement=True,
)

_NOT_PINNED = frozenset({"", "all", "default", "none"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        pinned = str(fact.value).strip()
        if pinned.casefold() in _NOT_PINNED:
            return None
        return f"{vm.label()} is pinned to physical CPUs {pinned}", META.severity

    yield from by_setting(context, EntityKind.VM, "cpu_affinity", judge)
