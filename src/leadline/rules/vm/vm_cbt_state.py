"""A VM with an image backup does not track changed blocks.

Finds:
    VMs that are backed up as images while changed block tracking is off.

Why:
    Without the list of changed blocks the backup reads every disk from end to end each night. That is hours of
    sequential reads beside the database, and a snapshot that stays open for as long.

Do:
    Switch changed block tracking on while the VM has no snapshots (the backup product usually does it), then power
    cycle it, or make and delete a snapshot, so that it takes effect; the next backup is a full one.

When it is wrong:
    Backups by storage snapshots or by an agent in the guest do not need it. Tracking costs a little for every write.
    Physical-mode raw disks cannot be tracked.

Sources:
    vCheck-vSphere, plug-in on changed block tracking.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC145",
    layer=Layer.VM,
    severity=Severity.LOW,
    needs=("vm.changed_block_tracking", "vm.image_backup|vm.backup_transport"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value is not False or not _has_image_backup(context, vm):
            return None
        return f"{vm.label()} is backed up as an image without changed block tracking", META.severity

    beside = ("image_backup", "backup_transport")
    yield from by_setting(context, EntityKind.VM, "changed_block_tracking", judge, beside)


def _has_image_backup(context: RuleContext, vm: Entity) -> bool:
    """Whether image backups of the VM are taken: as the inventory says, else whether a backup transport is known."""
    recorded = context.inventory.get(vm, "image_backup")
    return bool(recorded) if recorded is not None else context.inventory.get(vm, "backup_transport") is not None
