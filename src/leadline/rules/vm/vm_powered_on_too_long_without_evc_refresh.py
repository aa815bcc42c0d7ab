"""A VM was last powered on before its host got its present release.

Finds:
    VMs that have been running for longer than their host has had its major release. Informative only.

Why:
    What processor features, mitigations and virtual devices a VM is shown is decided when it is powered on. Moves and
    restarts of the guest keep it; after an upgrade of hosts or of the EVC mode the VM still runs with the old ones.

Do:
    Power the VM off and on (a restart from inside is not enough) at its next maintenance, together with upgrades of
    Tools and virtual hardware. `vmx.reboot.powerCycle = TRUE` turns the next restart of the guest into a power cycle.

When it is wrong:
    If the release brought nothing this guest uses, nothing is lost. A VM that was moved here from a host upgraded
    earlier may already have the newer features.

Sources:
    Performance Best Practices for VMware vSphere 7 and 8: virtual hardware and processor features at power-on.
    Judgement: not re-read, and no gain is quantified there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting, setting_evidence

META = RuleMeta(
    code="VMC147",
    layer=Layer.VM,
    severity=Severity.INFO,
    needs=("vm.uptime_days", "host.upgrade_age_days"),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM whose host is known."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        host = vm.ancestor(EntityKind.HOST)
        upgraded = None if host is None else context.inventory.get(host, "upgrade_age_days")
        if upgraded is None or fact.value <= upgraded:
            return None
        summary = f"{vm.label()} has run for {fact.value:g} days, its host was upgraded {upgraded:g} days ago"
        return summary, META.severity

    for finding in by_setting(context, EntityKind.VM, "uptime_days", judge):
        host = finding.entity.ancestor(EntityKind.HOST)
        more = [] if host is None else setting_evidence(context, host, "upgrade_age_days", "version")
        yield replace(finding, evidence=(*finding.evidence, *more))
