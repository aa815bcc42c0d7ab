"""A VMFS partition does not begin at a multiple of 1 MiB.

Finds:
    Devices whose VMFS partition begins at a sector that is no multiple of 2048.

Why:
    An array keeps data in chunks that begin at powers of two. When the partition is shifted against them, a command
    that would fit one chunk touches two, and a small write becomes two reads and two writes.

Do:
    Move the VMs elsewhere with Storage vMotion, delete the datastore and make it again with the client, which aligns
    it. Nothing can be shifted in place. Check the partitions inside the guests as well.

When it is wrong:
    VMFS-3 volumes of old releases begin at sector 128, which suits arrays with chunks of 64 KiB. Where the array's
    latency is good there is no hurry.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): the client aligns at
    1 MiB since ESXi 5.0, misalignment costs 30 %. Performance Best Practices for VMware vSphere 7 and 8.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO143",
    layer=Layer.STORAGE_PATH,
    severity=Severity.LOW,
    needs=("device.vmfs_start_sectors",),
    thresholds={"boundary": Threshold(2048.0, "sectors", "Tuning and profiling VMware (slides): 1 MiB")},
    clears=False,  # an aligned partition says nothing about latency
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""

    def judge(device: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value % context.limit("boundary") == 0:
            return None
        return f"The VMFS partition of {device.label()} begins at sector {fact.value}, not at 1 MiB", META.severity

    yield from by_setting(context, EntityKind.DEVICE, "vmfs_start_sectors", judge)
