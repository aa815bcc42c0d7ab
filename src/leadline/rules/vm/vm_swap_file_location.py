"""A VM's swap file lies on a disk of its host.

Finds:
    VMs with part of their memory not reserved whose swap file is placed on a datastore the host chooses.

Why:
    When memory gets scarce the hypervisor swaps the VM to that disk, and a local disk is often the slowest there is. A
    move to another host has to copy the swap file over the network, which makes moves, and so load balancing, slower.

Do:
    Keep the swap file with the VM, or on a fast shared datastore planned for it. For a database reserve all memory:
    then the swap file has no size and its place does not matter.

When it is wrong:
    Fast local flash for swap is a sound design where it is meant, and saves space on replicated storage.

Sources:
    vCheck-vSphere, plug-in on swap file placement. vSphere Resource Management: swap file location, reservation.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC146",
    layer=Layer.VM,
    severity=Severity.LOW,
    needs=("vm.swap_placement",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        placement = "".join(letter for letter in str(fact.value).casefold() if letter.isalpha())
        if placement != "hostlocal" or _all_reserved(context, vm):
            return None
        return f"The swap file of {vm.label()} lies where its host keeps swap files", META.severity

    beside = ("memory_reservation_mib", "memory_mib")
    yield from by_setting(context, EntityKind.VM, "swap_placement", judge, beside)


def _all_reserved(context: RuleContext, vm: Entity) -> bool:
    if context.inventory.get(vm, "memory_reservation_locked") is True:
        return True
    reserved, size = (context.inventory.get(vm, name) for name in ("memory_reservation_mib", "memory_mib"))
    return reserved is not None and size is not None and reserved >= size
