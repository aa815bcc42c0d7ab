"""A Windows guest receives all its packets on one vCPU.

Finds:
    Network interfaces of a guest whose receive side scaling is off, where the guest has more than one CPU.

Why:
    Without it one vCPU does the receive work of all connections; when it is full, packets are dropped while the others
    idle.

Do:
    `Enable-NetAdapterRss -Name NAME` and switch it on in the vmxnet3 driver's advanced settings; the interface resets.

When it is wrong:
    An interface for management only gains nothing. Old vmxnet3 drivers (before Tools 10.2) had faults with it.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere: enable RSS.
    Judgement: the traffic from which on it matters is not given.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.guests import cpu_count
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST148",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("nic.rss_enabled",),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per network interface of a guest or a VM."""

    def judge(nic: Entity, fact: Fact) -> tuple[str, Severity] | None:
        inventory = context.inventory
        guest = nic.ancestor(EntityKind.GUEST)
        vm = nic.ancestor(EntityKind.VM)
        if fact.value or inventory.get(nic, "connected") is False:
            return None
        single = guest is not None and cpu_count(context, guest) == 1.0
        if single or (guest is None and (vm is None or inventory.get(vm, "vcpu_count") == 1)):
            return None
        return f"Receive side scaling is off on {nic.label()}", META.severity

    yield from by_setting(context, EntityKind.NIC, "rss_enabled", judge)
