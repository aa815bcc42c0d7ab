"""A VM runs on a snapshot.

Finds:
    VMs with a snapshot (medium). One or two that are known to be at most 72 hours old are low.

Why:
    Every write goes to a delta file that grows in small steps, with metadata updates of its own; every read asks the
    chain of deltas first. Reads and writes get slower with the length of the chain, vCPUs can be held up by it, and
    deleting a snapshot later needs many I/Os just when nobody expects them.

Do:
    Delete the snapshots in a quiet hour, the oldest first, and watch the datastore while they are consolidated. Keep a
    snapshot for hours, not days; let the backup delete its own.

When it is wrong:
    While a backup runs its snapshot is meant to be there. In a .vmx the presence is only inferred from the name of
    the disk file in use (`-000001.vmdk`), and how many there are is not known from it.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): snapshots lower
    performance, consolidation needs many IOPS. VMware KB 1025279: no longer than 72 hours, two or three in a chain.
    Judgement: the slowdown of one snapshot is not quantified by any of them, hence medium.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.virtual_disks import DELTA_FILE
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC104",
    layer=Layer.VM,
    severity=Severity.MEDIUM,
    needs=("vm.snapshot_count",),
    thresholds={
        "warn": Threshold(1.0, "count", "Judgement: any snapshot outside a backup"),
        "crit": Threshold(3.0, "count", "VMware KB 1025279: two or three in a chain"),
        "age": Threshold(72.0 * 3600.0, "s", "VMware KB 1025279: no longer than 72 hours"),
    },
    judgement=True,
    examines="settings",
)
_S_PER_DAY = 86_400.0


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value < context.limit("warn"):
            return None
        age_days = context.inventory.get(vm, "snapshot_age_days")
        young = age_days is not None and age_days * _S_PER_DAY <= context.limit("age")
        count = "at least one snapshot" if fact.guessed else f"{fact.value} snapshot{'s' if fact.value > 1 else ''}"
        age = "" if age_days is None else f", the oldest {age_days:g} days old"
        mild = young and fact.value < context.limit("crit")
        return f"{vm.label()} runs on {count}{age}", Severity.LOW if mild else META.severity

    for finding in by_setting(context, EntityKind.VM, "snapshot_count", judge):
        yield replace(finding, evidence=(*finding.evidence, *_delta_files(context, finding.entity)))


def _delta_files(context: RuleContext, vm: Entity) -> Iterator[Evidence]:
    """The disk files in use that snapshots made."""
    for disk in context.inventory.children(vm, EntityKind.VIRTUAL_DISK):
        file = context.inventory.fact(disk, "file")
        if file is not None and DELTA_FILE.search(str(file.value)):
            yield Evidence(f"{disk.name} writes to {file.value}", entity=disk, source=file.source)
