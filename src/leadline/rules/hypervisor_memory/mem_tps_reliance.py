"""Equal memory pages of different VMs are shared.

Finds:
    Hosts whose advanced option Mem.ShareForceSalting is below 2, the value that keeps each VM's pages apart.

Why:
    Sharing between VMs was switched off by default because one VM can learn from it what another holds in memory. As
    a saving it disappoints as well: with large pages nothing is shared until the host is short, and then large pages
    must be broken up first. A host whose memory is only enough thanks to sharing is a host without enough memory.

Do:
    Set it back to 2 (`esxcli system settings advanced set -o /Mem/ShareForceSalting -i 2`) and plan memory as if
    nothing were shared.

When it is wrong:
    Hosts of many equal desktops, where the risk was accepted. Value 1 shares only between VMs of one owner that carry
    the same sched.mem.pshare.salt.

Sources:
    Performance Best Practices for VMware vSphere: sharing within a VM only, by default.
    Judgement: known of the field, not re-read at its source.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import entry_findings

META = RuleMeta(
    code="MEM140",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.LOW,
    needs=("host.advanced_options",),
    thresholds={"warn": Threshold(2.0, "count", "Performance Best Practices for VMware vSphere: the default")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""

    def judge(host: Entity, value: float) -> tuple[str, Severity] | None:
        if value >= context.limit("warn"):
            return None
        return f"{host.label()} shares memory pages between VMs (Mem.ShareForceSalting {value:g})", META.severity

    yield from entry_findings(context, (EntityKind.HOST, "advanced_options"), "Mem.ShareForceSalting", judge)
