"""A VM's disks need consolidation.

Finds:
    VMs of which vCenter says that disk files of deleted snapshots are still in use.

Why:
    A snapshot was deleted from the list, but its delta file could not be merged. The VM writes to it, it grows, and no
    list of snapshots shows it.

Do:
    Consolidate (Snapshots, Consolidate) in a quiet hour with free space on the datastore. If it fails because a file is
    locked, look for the backup proxy that still has the disk attached and release it there.

When it is wrong:
    While a backup deletes its snapshot the flag may be set for a moment.

Sources:
    vCheck-vSphere, plug-in on consolidation. RVTools, tab vHealth.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import flag_is

META = RuleMeta(
    code="VMC136",
    layer=Layer.VM,
    severity=Severity.HIGH,
    needs=("vm.disk_consolidation_needed",),
    clears=False,  # disks in order may still be slow
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    setting = (EntityKind.VM, "disk_consolidation_needed")
    yield from flag_is(context, setting, bad=True, says="Disks of {name} need consolidation")
