"""A VM writes to a snapshot's file although it has no snapshot.

Finds:
    VMs that are known to have no snapshot and whose disk file in use is a delta file (`NAME-000001.vmdk`).

Why:
    What was left behind by a failed deletion or a backup costs what a snapshot costs, and grows, but no list shows it.
    The next snapshot is stacked on top of it.

Do:
    Consolidate. If the client offers nothing to consolidate, make a snapshot and delete all; if that fails, clone the
    disk (`vmkfstools -i`) with the VM off and attach the clone. Look for a backup proxy that holds the file.

When it is wrong:
    A linked clone has a delta file by design. If the inventory and the .vmx file are of different days, a snapshot may
    have been deleted in between.

Sources:
    vCheck-vSphere, plug-in on phantom snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.virtual_disks import DELTA_FILE
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="VMC137",
    layer=Layer.VM,
    severity=Severity.HIGH,
    needs=("vm.snapshot_count", "virtual-disk.file"),
    clears=False,  # files in order say nothing about latency
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; a count that was itself inferred from the files proves nothing."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        count = context.inventory.fact(vm, "snapshot_count")
        if count is not None and count.value == 0 and not count.guessed:
            yield from _judged(context, vm)


def _judged(context: RuleContext, vm: Entity) -> Iterator[Finding]:
    inventory = context.inventory
    disks = inventory.children(vm, EntityKind.VIRTUAL_DISK)
    deltas = [disk for disk in disks if DELTA_FILE.search(str(inventory.get(disk, "file") or ""))]
    if deltas:
        evidence = setting_evidence(context, vm, "snapshot_count")
        for disk in deltas:
            evidence += setting_evidence(context, disk, "file")
        names = ", ".join(disk.name for disk in deltas)
        yield context.finding(vm, f"{vm.label()} has no snapshot but writes to delta files ({names})", evidence)
