"""Commands wait in the hypervisor's queue for the device.

Finds:
    Queue latency (QAVG) of a device above 0.5 ms (warning) or 1 ms (critical) for at least 15 s, in samples with 50 or
    more commands per second, or with a command queued at any time.

Why:
    QAVG is the part of kernel latency a command spends waiting for a slot in the device's queue. It grows as soon as
    more is outstanding than the queue holds, though the array may still be quick.

Do:
    See how full the queue is (disk-queue-full). Raise the device's queue depth and the number of outstanding requests
    per world together, use more LUNs and paravirtual controllers, or lower the number of sessions that do I/O at once.

When it is wrong:
    A burst of a checkpoint or a backup queues without anyone waiting for it; the duration filters short ones. A device
    that is slow itself fills its queue: DAVG is the cause then.

Sources:
    EsxtopDrill c_map.csv: 0.5 ms warning, 1 ms critical.
    Broadcom KB 309140, storage device latency averages: why an average of few commands says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Blames, Layer, Severity
from leadline.estate.derived.latencies import forms
from leadline.rules._families.device_latency import LIMITS, latency_of_devices, over_latency

META = RuleMeta(
    code="STO105",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    accuses=Blames.LIMIT,
    needs=(forms("disk_queue_latency_ms"),),
    uses=("disk_iops", "disk_reads_per_s", "disk_writes_per_s"),
    thresholds={
        "warn": Threshold(0.5, "ms", "EsxtopDrill c_map.csv"),
        "crit": Threshold(1.0, "ms", "EsxtopDrill c_map.csv"),
        **LIMITS,
    },
    explains=(
        "disk-gavg-high",
        "guest-disk-await-high",
        "guest-iowait-high",
        "guest-blocked-processes",
        "db-data-read-latency",
        "db-storage-latency-iris-read",
        "db-storage-latency-iris-journal",
        "db-iris-write-daemon-cycle",
    ),
)

_SPEC = latency_of_devices("queue latency", metric="disk_queue_latency_ms")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    yield from over_latency(context, _SPEC)
