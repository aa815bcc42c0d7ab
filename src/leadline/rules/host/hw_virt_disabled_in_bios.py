"""Hardware virtualisation is not on in a host's processors.

Finds:
    Hosts whose HV support value is not 3: 2 is there but off in the BIOS, 1 is there but not supported, 0 is not
    there.

Why:
    Without VT-x or AMD-V, VMs with 64-bit guests do not start; older releases run others by translating their code,
    at a multiple of the CPU time and without nested page tables.

Do:
    Turn on Intel VT-x (VMX) or AMD-V (SVM) in the BIOS, power the server off for a moment (a restart is not enough on
    some), and look again: `esxcfg-info | grep "HV Support"` must say 3.

When it is wrong:
    Never on a host that is to run VMs. A nested test host shows 0 when its own VM does not expose virtualisation.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): what 0 to 3 mean. ESXi
    command reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="HST101",
    layer=Layer.HOST,
    severity=Severity.CRITICAL,
    needs=("host.hv_support",),
    thresholds={
        "on": Threshold(
            3.0, "count", "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL"
        ),
    },
    clears=False,
)
_MEANING = {0: "not there", 1: "there but not supported", 2: "off in the BIOS"}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""

    def judge(host: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value == context.limit("on"):
            return None
        meaning = _MEANING.get(fact.value, f"in an unknown state ({fact.value})")
        return f"hardware virtualisation of {host.label()} is {meaning}", META.severity

    yield from by_setting(context, EntityKind.HOST, "hv_support", judge)
