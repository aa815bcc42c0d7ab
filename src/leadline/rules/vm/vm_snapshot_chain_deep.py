"""A VM runs on several snapshots on top of each other.

Finds:
    VMs whose longest chain has more than 2 snapshots (medium) or more than 3 (high). Where the length of the chain is
    not known, the number of snapshots stands for it, one severity lower, since they may be branches.

Why:
    A read of a block asks every file of the chain until it finds one that has it; each level adds metadata and lookups.
    From 32 levels on the hypervisor makes no further snapshot, and backups fail.

Do:
    Delete the snapshots from the oldest on, or all at once if there is space, in a quiet hour. If there are more disk
    files than snapshots, consolidate. Then find what makes them: usually a backup job that cannot delete its own.

When it is wrong:
    Snapshots side by side (branches) do not make the chain longer.

Sources:
    VMware KB 1025279, snapshot best practices: two or three in a chain, 32 at most.
    Judgement: one severity lower where snapshots were counted, not levels.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SCORE_MAX, setting_evidence

META = RuleMeta(
    code="VMC134",
    layer=Layer.VM,
    severity=Severity.HIGH,
    needs=("vm.snapshot_chain_count|vm.snapshot_count",),
    thresholds={
        "warn": Threshold(2.0, "count", "VMware KB 1025279: two or three in a chain"),
        "crit": Threshold(3.0, "count", "VMware KB 1025279: two or three in a chain"),
        "most": Threshold(32.0, "count", "VMware KB 1025279: supported"),
    },
    explains=("vm-snapshot-present",),
    clears=False,  # a short chain says nothing about latency
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        levels = context.inventory.get(vm, "snapshot_chain_count")
        known = levels is not None
        levels = levels if known else context.inventory.get(vm, "snapshot_count")
        if levels is not None and levels > context.limit("warn"):
            yield _finding(context, vm, levels, known=known)


def _finding(context: RuleContext, vm: Entity, levels: int, *, known: bool) -> Finding:
    severity = META.severity if levels > context.limit("crit") else META.severity.lowered()
    evidence = setting_evidence(context, vm, "snapshot_chain_count" if known else "snapshot_count")
    if levels >= context.limit("most"):
        most = context.limit("most")
        evidence.append(
            Evidence(f"no more than {most:g} levels are supported", value=levels, threshold=most, unit="count")
        )
    return context.finding(
        vm,
        f"{vm.label()} runs on {levels} snapshots{' on top of each other' if known else ''}",
        evidence,
        severity=severity if known else severity.lowered(),
        score=min(levels / context.limit("warn"), SCORE_MAX),
        guessed=() if known else ("that the snapshots form one chain",),
    )
