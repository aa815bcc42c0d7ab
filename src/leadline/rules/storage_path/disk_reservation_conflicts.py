"""Commands on a path meet a reservation that another host holds.

Finds:
    More than 1 SCSI reservation conflict per second (critical: more than 20, or one or more in ten commands) on a
    device or a path, for at least 15 s.

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
    Judgement: one refused command in ten is felt, however few commands there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="STO131",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-stalled",),
    needs=("disk_conflicts_per_s",),
    uses=("disk_iops",),
    thresholds={
        "warn": Threshold(1.0, "per_s", "EsxtopDrill c_map.csv"),
        "crit": Threshold(20.0, "per_s", "Yellow-Bricks esxtop thresholds"),
        "per_command": Threshold(0.1, "ratio", "Judgement: one refused command in ten is felt"),
        "duration": THREE_SAMPLES,
    },
    explains=(
        "disk-kavg-high",
        "disk-qavg-high",
        "disk-gavg-high",
        "disk-queue-full",
        *GUEST_AND_DATABASE_WAIT_FOR_DISK,
    ),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device or path, with how many conflicts there are for each command that is completed."""
    rates = context.of("disk_iops")
    conflicts = context.of("disk_conflicts_per_s")
    for finding in over_threshold(context, Over("disk_conflicts_per_s", "reservation conflicts")):
        done = means_over(rates, finding.windows, finding.entity).get(finding.entity)
        refused = means_over(conflicts, finding.windows, finding.entity).get(finding.entity)
        if done is None or refused is None or refused < context.limit("per_command") * done:
            yield finding
            continue
        statement = f"{show(refused, 'per_s')} commands were refused while {show(done, 'per_s')} were completed"
        share = Evidence(statement, entity=finding.entity, statistic="mean", value=done, unit="per_s")
        yield replace(finding, severity=META.severity, evidence=(*finding.evidence, share))
