"""VMware Tools are missing, stopped or too old.

Finds:
    VMs whose Tools are not installed or do not run (high), or are too old or blocked (medium), and guests on VMware
    that say themselves that no Tools run (high). VMs that are switched off are left out.

Why:
    The Tools bring the paravirtual drivers on Windows, the balloon driver, orderly shutdown, quiesced snapshots and
    the disk timeouts that survive a path failover. Without them the host takes memory by swapping where it could have
    asked the guest for it.

Do:
    Install open-vm-tools from the distribution (Linux) or the current VMware Tools (Windows) and enable the service.
    After an upgrade of ESXi upgrade the Tools in the next maintenance window.

When it is wrong:
    guestToolsUnmanaged is right for open-vm-tools: the distribution keeps them current. An appliance may bring its own.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): install VMware Tools.
    vSphere API, VirtualMachineToolsVersionStatus and VirtualMachineToolsRunningStatus. vCheck-vSphere: expects
    guestToolsCurrent or guestToolsUnmanaged.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST130",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=("vm.tools_version_status|vm.tools_running_status|guest.tools_running",),
    clears=False,  # tools that run say nothing of how the guest performs
)

_VERSIONS = {
    "guesttoolsnotinstalled": ("has no VMware Tools", Severity.HIGH),
    "guesttoolstooold": ("has VMware Tools too old for its host", Severity.MEDIUM),
    "guesttoolsneedupgrade": ("has VMware Tools that need an upgrade", Severity.MEDIUM),
    "guesttoolssupportedold": ("has old VMware Tools that are still supported", Severity.LOW),
    "guesttoolsblacklisted": ("has a VMware Tools version known to be bad", Severity.HIGH),
}


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per machine: the version is judged first, then whether they run, then what the guest says."""
    reported: set[Entity] = set()
    for finding in (*_versions(context), *_stopped(context), *_from_inside(context)):
        if finding.entity not in reported:
            reported.add(finding.entity)
            yield finding


def _versions(context: RuleContext) -> Iterator[Finding]:
    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        verdict = _VERSIONS.get(str(fact.value).casefold())
        return None if verdict is None or _off(context, vm) else (f"{vm.label()} {verdict[0]}", verdict[1])

    yield from by_setting(context, EntityKind.VM, "tools_version_status", judge)


def _stopped(context: RuleContext) -> Iterator[Finding]:
    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if str(fact.value).casefold() != "guesttoolsnotrunning" or _off(context, vm):
            return None
        return f"VMware Tools do not run in {vm.label()}", META.severity

    yield from by_setting(context, EntityKind.VM, "tools_running_status", judge)


def _from_inside(context: RuleContext) -> Iterator[Finding]:
    def judge(guest: Entity, fact: Fact) -> tuple[str, Severity] | None:
        vm = context.inventory.vm_of(guest)
        vcenter_knows = vm is not None and context.inventory.get(vm, "tools_running_status") is not None
        if fact.value or vcenter_knows or context.inventory.get(guest, "virtualisation") != "vmware":
            return None
        return f"No VMware Tools run in {guest.label()}", META.severity

    yield from by_setting(context, EntityKind.GUEST, "tools_running", judge)


def _off(context: RuleContext, vm: Entity) -> bool:
    return str(context.inventory.get(vm, "power_state") or "on").casefold() not in {"on", "poweredon"}
