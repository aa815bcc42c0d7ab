"""Commands on a path meet a reservation that another host holds.

Finds:
    More than 1 SCSI reservation conflict per second (critical: more than 20) on a path, for at least 15 s.

Why:
    A host that changes the metadata of a shared VMFS volume, or a cluster in guests that owns a disk, reserves the
    LUN. Meanwhile commands of other hosts are refused and sent again, which the guest sees as latency.

Do:
    Let the volume use hardware-assisted locking (ATS) and check that the array supports it; put fewer VMs on one LUN;
    spread power-ons, snapshots and backups, each of which changes metadata. Look for other initiators on the LUN:
    backup proxies, a host that should not see it, cluster nodes.

When it is wrong:
    LUNs of a Windows failover cluster are reserved for good by the node that owns them: conflicts of the other hosts
    are expected there, if the device is marked as perennially reserved.

Sources:
    Yellow-Bricks esxtop thresholds: CONS/s, 20. EsxtopDrill c_map.csv: 1 as a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="STO131",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-stalled",),
    needs=("disk_conflicts_per_s",),
    thresholds={
        "warn": Threshold(1.0, "per_s", "EsxtopDrill c_map.csv"),
        "crit": Threshold(20.0, "per_s", "Yellow-Bricks esxtop thresholds"),
        "duration": THREE_SAMPLES,
    },
    explains=("disk-kavg-high", "disk-gavg-high", "guest-disk-await-high"),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per path."""
    yield from over_threshold(context, Over("disk_conflicts_per_s", "reservation conflicts"))
