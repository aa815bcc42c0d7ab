"""The slowest disk of a host answered very slowly at least once.

Finds:
    Hosts whose highest latency over all devices, as vCenter keeps it, exceeds 30 ms (warning) or 50 ms (critical) in
    any sample.

Why:
    vCenter keeps for each interval the latency of the worst device alone. It hides which one and how much I/O that was,
    but it is there for every hour of the past, so it tells when to look.

Do:
    Look at the latency of each LUN and datastore at the times named here, and record the host with esxtop at the next
    such hour: device, kernel and queue latency then say which part of the path is slow.

When it is wrong:
    One command to an idle or local device is enough to raise the maximum: boot disks, ISO stores and backup targets
    that nobody waits for. The vSphere cluster services and rescans touch such devices regularly.

Sources:
    vCheck-vSphere, plug-in on host storage latency: 30 and 50 ms within 24 h.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

META = RuleMeta(
    code="STO132",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    needs=("disk_latency_ms_max",),
    thresholds={
        "warn": Threshold(30.0, "ms", "vCheck-vSphere, host storage latency"),
        "crit": Threshold(50.0, "ms", "vCheck-vSphere, host storage latency"),
        "duration": Threshold(0.0, "s", "vCheck-vSphere: the maximum of a day, so one sample counts"),
    },
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM where it was recorded of VMs, else per host."""
    kinds = (EntityKind.VM,) if context.of("disk_latency_ms_max", EntityKind.VM) else (EntityKind.HOST,)
    yield from over_threshold(context, Over("disk_latency_ms_max", "highest disk latency", kinds))
