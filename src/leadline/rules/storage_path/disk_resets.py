"""The bus or a device was reset.

Finds:
    SCSI resets of a device: any in a sample is a warning, more than one per second is critical. Adapters are looked at
    where no device was recorded.

Why:
    A reset throws away every command in flight, of all VMs on that device. It comes after aborts did not help, and it
    stalls I/O until the commands have been sent again.

Do:
    As for aborts: array controllers, fabric, paths, firmware and driver of the adapter. Find the initiator in the
    kernel logs of every host that sees the LUN: one host's reset hits all of them.

When it is wrong:
    Cluster software that uses SCSI reservations resets LUNs on purpose at failover. Booting hosts reset their adapters.

Sources:
    Yellow-Bricks esxtop thresholds: RESETS/s, 1. EsxtopDrill c_map.csv: any is a warning.
    Judgement: a single sample counts, because an average rate hides how rare and how bad a reset is.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.disks import lowest_kind
from leadline.estate.templates import Over, over_threshold

META = RuleMeta(
    code="STO108",
    layer=Layer.STORAGE_PATH,
    severity=Severity.CRITICAL,
    needs=("disk_resets_per_s",),
    thresholds={
        "warn": Threshold(0.0, "per_s", "EsxtopDrill c_map.csv"),
        "crit": Threshold(1.0, "per_s", "Yellow-Bricks esxtop thresholds"),
        "duration": Threshold(0.0, "s", "Judgement: one sample is enough, resets are rare"),
    },
    explains=(
        "disk-davg-wal",
        "disk-davg-data",
        "disk-davg-generic",
        "disk-gavg-high",
        "disk-kavg-high",
        "disk-qavg-high",
        "disk-queue-full",
        "guest-disk-await-high",
        "guest-iowait-high",
        "guest-blocked-processes",
        "guest-load-average-per-core",
        "db-log-write-latency",
    ),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device and NFS volume."""
    kinds = lowest_kind(context, "disk_resets_per_s")
    yield from over_threshold(context, Over("disk_resets_per_s", "bus resets", (*kinds, EntityKind.DATASTORE)))
