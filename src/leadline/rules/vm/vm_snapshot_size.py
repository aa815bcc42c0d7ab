"""A VM's snapshots have grown large beside its disks.

Finds:
    VMs whose snapshot files take more than 10 % (low) or 25 % (medium) of the size of their disks.

Why:
    The larger the delta, the more reads go through it, the longer its deletion takes and the more space it needs
    meanwhile. A database that rewrites its pages fills a delta within hours, and a full datastore stops every VM on
    it.

Do:
    Delete or consolidate the snapshots now, in the quietest hour there is, with free space for what changes meanwhile.
    Keep snapshots of databases short, or leave the disks with data and log out of them (independent disks) and
    back them up with the database's own means.

When it is wrong:
    Snapshots with the VM's memory contain its memory's size, which counts here too.

Sources:
    vCheck-vSphere, plug-in on snapshots, reports their size.
    Judgement: 10 and 25 %; no source gives a share.
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
    code="VMC135",
    layer=Layer.VM,
    severity=Severity.MEDIUM,
    needs=("vm.snapshot_size_gib", "virtual-disk.size_gib"),
    thresholds={
        "warn": Threshold(10.0, "pct", "Judgement: more than a night's changes"),
        "crit": Threshold(25.0, "pct", "Judgement: hours of consolidation"),
    },
    explains=("vm-snapshot-present",),
    clears=False,  # small snapshots say nothing about latency
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM whose disks all have a known size."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        disks = context.inventory.children(vm, EntityKind.VIRTUAL_DISK)
        sizes = [context.inventory.get(disk, "size_gib") for disk in disks]
        if not sizes or any(size is None for size in sizes) or not sum(sizes):
            return None
        share = 100.0 * fact.value / sum(sizes)
        if share <= context.limit("warn"):
            return None
        severity = META.severity if share > context.limit("crit") else META.severity.lowered()
        summary = f"Snapshots of {vm.label()} take {show(fact.value, 'gib')}, {show(share, 'pct')} of its disks"
        return summary, severity

    yield from by_setting(context, EntityKind.VM, "snapshot_size_gib", judge)
