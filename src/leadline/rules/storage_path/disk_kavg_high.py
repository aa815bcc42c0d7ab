"""Commands spend too long inside the hypervisor before they reach the device.

Finds:
    Kernel latency (KAVG) of a device above 0.5 ms (warning) or 2 ms (critical) for at least 15 s, in samples with 50
    or more commands per second, or with a command in the kernel at any time.

Why:
    A VMkernel that has room in its queue hands a command on within microseconds. More means commands wait there: for
    a slot in the device's queue, behind a limit or Storage I/O Control, or for the driver. The array is not at fault
    and does not see it.

Do:
    See whether the queue is full (disk-queue-full), its depth was cut (disk-queue-depth-cut), commands are refused
    (disk-reservation-conflicts) or a limit holds I/O back (vm-iops-limit-hit, Storage I/O Control).
    Then raise the device's queue depth together with the number of outstanding requests per world
    (Disk.SchedNumReqOutstanding), spread disks over more LUNs, and update the adapter's driver.

When it is wrong:
    On a device that is slow itself the queue in front of it fills up: DAVG is the cause then. Snapshot consolidation,
    locks and path failover pass through the kernel too.

Sources:
    Yellow-Bricks esxtop thresholds: 2 ms. datacenterdan.com, esxtop disk adapter best practice: 1 ms.
    EsxtopDrill c_map.csv: 0.5 ms as an early warning.
    Broadcom KB 309140, storage device latency averages: why an average of few commands says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.estate.derived.latencies import forms
from leadline.rules._families.device_latency import LIMITS, latency_of_devices, over_latency
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="STO104",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-busy-with-others",),
    accuses=Blames.LIMIT,
    needs=(forms("disk_kernel_latency_ms"),),
    uses=("disk_iops", "disk_reads_per_s", "disk_writes_per_s", "disk_queue_latency_ms"),
    thresholds={
        "warn": Threshold(0.5, "ms", "EsxtopDrill c_map.csv"),
        "crit": Threshold(2.0, "ms", "Yellow-Bricks esxtop thresholds"),
        **LIMITS,
    },
    explains=("disk-qavg-high", "disk-gavg-high", *GUEST_AND_DATABASE_WAIT_FOR_DISK),
)

_SPEC = latency_of_devices("kernel latency", metric="disk_kernel_latency_ms")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device; how much of it is waiting in the queue is evidence."""
    queues = context.of("disk_queue_latency_ms", EntityKind.DEVICE)
    for finding in over_latency(context, _SPEC):
        queued = means_over(queues, finding.windows, finding.entity).get(finding.entity)
        if queued is None:
            yield finding
            continue
        queue_evidence = Evidence(
            f"of it {show(queued, 'ms')} waiting in the device's queue",
            metric="disk_queue_latency_ms",
            entity=finding.entity,
            statistic="mean",
            value=queued,
            unit="ms",
        )
        yield replace(finding, evidence=(*finding.evidence, queue_evidence))
