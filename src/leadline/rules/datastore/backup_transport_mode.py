"""A large VM is backed up over the hosts' management network.

Finds:
    Backups by NBD of VMs with disks of 1 TiB or more together.

Why:
    NBD copies each block through the host's management agent and the management network. A terabyte keeps both busy for
    hours, and the snapshot open for as long.

Do:
    Use HotAdd (a proxy VM on the same storage) or direct SAN or NFS access, keep incremental copies small with changed
    block tracking, and watch the stun when HotAdd detaches the disks.

When it is wrong:
    With 25 Gbit/s management networks and small daily changes NBD is quick enough, and it avoids HotAdd's stun.

Sources:
    Performance Best Practices for VMware vSphere: backup transports.
    Judgement: 1 TiB stands for "large".
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST182",
    layer=Layer.DATASTORE,
    severity=Severity.LOW,
    needs=("vm.backup_transport", "virtual-disk.size_gib"),
    thresholds={"large": Threshold(1024.0, "gib", "Judgement: hours of copying")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        disks = context.inventory.children(vm, EntityKind.VIRTUAL_DISK)
        size = sum(float(context.inventory.get(disk, "size_gib") or 0.0) for disk in disks)
        if str(fact.value).casefold() not in {"nbd", "nbdssl"} or size < context.limit("large"):
            return None
        return f"{vm.label()} with {show(size, 'gib')} is backed up by {fact.value}", META.severity

    yield from by_setting(context, EntityKind.VM, "backup_transport", judge)
