"""A VM is configured for another guest system than it runs.

Finds:
    VMs whose configured guest system differs from what VMware Tools report; low where either is one of the general
    choices (Other, Other Linux, ... or later).

Why:
    The configured system decides which devices the VM gets by default, which features of the processor and the chipset
    it is shown and how some instructions are handled. With the wrong one a guest gets an old controller or
    network card, and support asks to correct it first.

Do:
    Set the guest system in the VM's options to the one in use, with the VM off. Then check that controllers and network
    adapters are of the types the system should have; the change alone does not replace them.

When it is wrong:
    Tools of some distributions report only a general kernel version. Names of derived systems (Alma, Rocky, Oracle)
    may be missing in the list of an older host.

Sources:
    vCheck-vSphere, plug-in on guest systems that differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC142",
    layer=Layer.VM,
    severity=Severity.MEDIUM,
    needs=("vm.guest_os", "vm.guest_os_reported"),
    clears=False,  # the right type says nothing about latency
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        configured, reported = str(fact.value), str(context.inventory.get(vm, "guest_os_reported") or "")
        # A full name ("Debian GNU/Linux 11 (64-bit)") and an identifier ("debian11_64Guest") cannot be compared.
        if not reported or (" " in configured) is not (" " in reported) or _plain(configured) == _plain(reported):
            return None
        general = any(_is_general(name) for name in (configured, reported))
        summary = f"{vm.label()} is configured as {configured} and runs {reported}"
        return summary, META.severity.lowered() if general else META.severity

    yield from by_setting(context, EntityKind.VM, "guest_os", judge, ("guest_os_reported",))


def _is_general(name: str) -> bool:
    """Whether a name stands for many systems: "Other Linux (64-bit)", "CentOS 4/5 or later"."""
    return _plain(name).startswith("other") or "or later" in name.casefold()


def _plain(name: str) -> str:
    """Letters and digits alone: rhel8-64 of a .vmx file and rhel8_64Guest of vCenter are the same."""
    return "".join(letter for letter in name.casefold() if letter.isalnum()).removesuffix("guest")
