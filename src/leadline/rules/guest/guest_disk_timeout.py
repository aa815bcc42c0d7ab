"""A guest gives up on a disk before the storage has failed over.

Finds:
    SCSI disks of a virtual machine whose command timeout is below 180 s (Linux) or 60 s (Windows).

Why:
    A path failover, a controller restart or a vSAN object repair may take a minute or more without answers. A guest
    that aborts first gets an I/O error: the filesystem turns read-only and the database stops.

Do:
    Linux: open-vm-tools bring a udev rule that sets 180 s; check /sys/block/sdX/device/timeout after a reboot. Windows:
    set TimeOutValue under the service key of Disk in the registry to 60 or more.

When it is wrong:
    A cluster inside the guest may need short timeouts to fail over quickly.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere: 60 s on Windows. open-vm-tools, udev rule
    99-vmware-scsi: 180 s.
    Judgement: the numbers are the vendors' usual settings, not measured limits.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import is_virtual, is_windows
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST141",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("block-device.timeout_s",),
    thresholds={
        "linux": Threshold(180.0, "s", "open-vm-tools, udev rule 99-vmware-scsi"),
        "windows": Threshold(60.0, "s", "Architecting Microsoft SQL Server on VMware vSphere"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest disk."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        guest = disk.ancestor(EntityKind.GUEST)
        if guest is None or not is_virtual(context.inventory, guest):
            return None
        limit = context.limit("windows" if is_windows(context.inventory, guest) else "linux")
        if float(fact.value) >= limit:
            return None
        return f"{disk.label()} gives up after {float(fact.value):g} s (at least {limit:g} s)", META.severity

    yield from by_setting(context, EntityKind.BLOCK_DEVICE, "timeout_s", judge)
