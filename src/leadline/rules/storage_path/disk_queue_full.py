"""A device's queue in the hypervisor is full.

Finds:
    More than 1 command waiting for a slot of a device's queue (critical: more than 10), or 80 % or more of the slots in
    use (critical: all of them), for at least 15 s. Milder when commands were measured to wait 0.5 ms or less.

Why:
    The queue depth is how many commands the hypervisor has under way at a device. What comes on top waits in the
    kernel, first come first served over all VMs, and one busy VM makes the others wait.

Do:
    Raise the device's queue depth in the adapter's driver together with Disk.SchedNumReqOutstanding, as far as the
    array's port can take it. Spread the load over more LUNs, or lower the number of outstanding requests (fewer
    connections, smaller checkpoints).

When it is wrong:
    Active and queued commands are counted at the moment of the sample, not averaged. A queue in front of a slow device
    is the device's fault: DAVG says so. A full queue that costs no time is a device working at capacity.

Sources:
    Yellow-Bricks esxtop thresholds and EsxtopDrill c_map.csv: the counters and what they mean.
    Judgement: the limits; more than one command over several samples is not chance, and a queue of ten doubles the wait
    of a device that serves ten at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.limits import THREE_SAMPLES

COMPLETED_MIN = 1.0  # per second; of fewer commands esxtop prints a latency of 0.00

META = RuleMeta(
    code="STO109",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    accuses=Blames.LIMIT,
    needs=("disk_queued_count|disk_queue_used_pct",),
    uses=("disk_queue_latency_ms", "disk_iops"),
    thresholds={
        "queued_warn": Threshold(1.0, "count", "Judgement: more than one, sample after sample, is not chance"),
        "queued_crit": Threshold(10.0, "count", "Judgement: a wait of about ten service times"),
        "used_pct_warn": Threshold(80.0, "pct", "Judgement: little room for a burst"),
        "used_pct_crit": Threshold(
            100.0, "pct", "Yellow-Bricks esxtop thresholds: active commands at the queue's depth"
        ),
        "harmless_wait": Threshold(0.5, "ms", "EsxtopDrill c_map.csv: warning limit of queue latency"),
        "duration": THREE_SAMPLES,
    },
    explains=(
        "disk-kavg-high",
        "disk-qavg-high",
        "disk-gavg-high",
        "guest-disk-await-high",
        "guest-iowait-high",
        "guest-blocked-processes",
    ),
    judgement=True,
)

_SPECS = (
    Over(
        "disk_queued_count",
        "commands queued",
        (EntityKind.DEVICE,),
        warn="queued_warn",
        crit="queued_crit",
    ),
    Over(
        "disk_queue_used_pct",
        "queue slots in use",
        (EntityKind.DEVICE,),
        inclusive=True,
        warn="used_pct_warn",
        crit="used_pct_crit",
    ),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    waits = context.of("disk_queue_latency_ms", EntityKind.DEVICE)
    rates = context.of("disk_iops", EntityKind.DEVICE)
    for finding in over_any(context, _SPECS):
        wait = means_over(waits, finding.windows, finding.entity).get(finding.entity)
        done = means_over(rates, finding.windows, finding.entity).get(finding.entity, COMPLETED_MIN)
        if wait is None or done < COMPLETED_MIN:
            yield finding
            continue
        harmless = wait <= context.limit("harmless_wait")
        wait_evidence = Evidence(
            f"commands waited {show(wait, 'ms')} on average meanwhile",
            metric="disk_queue_latency_ms",
            entity=finding.entity,
            statistic="mean",
            value=wait,
            threshold=context.limit("harmless_wait"),
            unit="ms",
        )
        severity = min(finding.severity, Severity.LOW) if harmless else finding.severity
        yield replace(finding, severity=severity, evidence=(*finding.evidence, wait_evidence))
