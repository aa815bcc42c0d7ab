"""A VM's virtual hardware is far older than its host could run.

Finds:
    VMs whose virtual hardware version is more than 2 below the highest their host runs, as the inventory says it or as
    it follows from the host's release.

Why:
    The version decides which processor features, how many vCPUs, which controllers and how large queues a guest sees.
    vNVMe controllers, precision clocks and newer instructions are not there on old versions.

Do:
    Update VMware Tools first, then power off, take a backup, upgrade the version and check the network adapter's name
    and the disks inside. Schedule it with the next maintenance; there is no way back but the backup.

When it is wrong:
    VMs that must be able to move to hosts of an older release need the older version. An old version alone makes
    nothing slow.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: features tied to hardware versions. VMware KB 1003746:
    versions of each release. Performance Best Practices for VMware vSphere 7 and 8.
    Judgement: more than two versions are a generation or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.versions import release
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting, setting_evidence

META = RuleMeta(
    code="VMC140",
    layer=Layer.VM,
    severity=Severity.LOW,
    needs=("vm.hardware_version", "host.version|host.hardware_version_max"),
    thresholds={"warn": Threshold(2.0, "count", "Judgement: more than two versions are a generation")},
    clears=False,  # a new version says nothing about latency
    judgement=True,
)
# VMware KB 1003746: the version each release came with; its updates may run higher ones.
_HIGHEST: dict[tuple[int, ...], int] = {
    (5, 0): 8,
    (5, 1): 9,
    (5, 5): 10,
    (6, 0): 11,
    (6, 5): 13,
    (6, 7): 14,
    (7, 0): 17,
    (8, 0): 20,
    (9, 0): 22,
}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM whose host is known."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        host = vm.ancestor(EntityKind.HOST)
        highest = None if host is None else _highest(context, host)
        if host is None or highest is None or highest - fact.value <= context.limit("warn"):
            return None
        return f"{vm.label()} has hardware version {fact.value}, {host.name} runs up to {highest}", META.severity

    for finding in by_setting(context, EntityKind.VM, "hardware_version", judge):
        host = finding.entity.ancestor(EntityKind.HOST)
        more = [] if host is None else setting_evidence(context, host, "hardware_version_max", "version")
        yield replace(finding, evidence=(*finding.evidence, *more))


def _highest(context: RuleContext, host: Entity) -> int | None:
    highest = context.inventory.get(host, "hardware_version_max")
    return int(highest) if highest is not None else _HIGHEST.get(release(context.inventory.get(host, "version"))[:2])
