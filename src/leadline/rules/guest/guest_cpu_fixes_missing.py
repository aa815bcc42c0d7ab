"""A guest's processor has vulnerabilities that nothing in the guest fixes.

Finds:
    Guests whose kernel says "Vulnerable" of Meltdown, Spectre, MDS or a later flaw of the processor. What only lets the
    second thread of a core look on ("SMT vulnerable") is not counted.

Why:
    A program in the guest can read memory of the kernel and of other programs, such as the database's. Each flaw has
    its own fix, and most fixes cost throughput. Whoever switches them on later needs that CPU then, not today.

Do:
    See whether somebody switched fixes off: `cat /proc/cmdline` (mitigations=off, nopti, nospectre_v2); on Windows
    FeatureSettingsOverride. Where the kernel says "no microcode", update the firmware of the host and the virtual
    hardware, then power the VM off and on. Plan the CPU first: `leadline plan cpu` with fixes added.

When it is wrong:
    A server that runs only its database, with no code of strangers, may be left without fixes on purpose. A guest
    cannot see what its hypervisor does.

Sources:
    Linux kernel documentation, admin-guide/hw-vuln and ABI/testing/sysfs-devices-system-cpu.
    Microsoft KB 4074629 (output of Get-SpeculationControlSettings), KB 4072698 (Windows Server guidance).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.kernel_entries import ENTRY_METRICS, recorded_fix_cost
from leadline.estate.knowledge.cpu_fixes import CpuFixes, cpu_fixes, with_missing

META = RuleMeta(
    code="GST190",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("guest.cpu_vulnerabilities",),
    uses=tuple(ENTRY_METRICS),
    clears=False,
)
_NAMED_MAX = 4  # vulnerabilities named in the summary


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    for guest in context.inventory.of_kind(EntityKind.GUEST):
        fixes = cpu_fixes(context.inventory, guest)
        if fixes is not None and fixes.missing:
            yield context.finding(guest, _summary(guest, fixes), [*_evidence(context, guest, fixes)])


def _summary(guest: Entity, fixes: CpuFixes) -> str:
    names = sorted(fixes.missing)
    shown = ", ".join(names[:_NAMED_MAX])
    rest = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    noun = "a vulnerability" if len(names) == 1 else f"{len(names)} vulnerabilities"
    return f"{guest.label()} does not fix {noun} of its processor: {shown}{rest}"


def _evidence(context: RuleContext, guest: Entity, fixes: CpuFixes) -> Iterator[Evidence]:
    for name, words in sorted(fixes.missing.items()):
        yield Evidence(f"{name} in {guest.label()}: {words}", entity=guest, source=fixes.source)
    options = context.inventory.fact(guest, "cpu_fix_options")
    if options is not None and options.value:
        words = " ".join(f"{name}={value}" for name, value in options.value.items())
        yield Evidence(f"boot options of {guest.label()}: {words}", entity=guest, source=options.source)
    cost = recorded_fix_cost(context, guest, with_missing(fixes))
    if cost is not None:
        sources = "; ".join(cost.sources)
        yield Evidence(
            f"with all fixes on, published figures say {cost} less throughput ({cost.reason})",
            entity=guest,
            value=cost.high_pct,
            unit="pct",
            source=sources,
        )
