"""Tasks are stuck waiting for I/O.

Finds:
    More than 2 tasks in uninterruptible sleep (vmstat b), in most samples, for at least 30 s; critical when they are
    also more than a quarter of the guest's CPUs. Low severity when the guest's loaded disks were recorded meanwhile and
    answered within 2 ms.

Why:
    Such a task waits inside the kernel, nearly always for a disk, and cannot do anything else. Several at once mean
    that sessions queue for storage.

Do:
    Follow the storage: await per disk in the guest, then device and kernel latency on the host. On the guest,
    ``ps -eo state,wchan:32,comm`` shows what the blocked tasks wait for.

When it is wrong:
    Tasks also block on a dead NFS server, on memory being swapped in, and on kernel locks. Many sessions reading from
    a quick disk block for very short times: the milder severity stands for that.

Sources:
    yaspe documentation: blocked processes above 2 warn, above 10 to 25 % of the vCPUs alert.
    vmstat(8): b counts tasks blocked waiting for I/O.
    Judgement: 30 s stands for "sustained"; the upper end of 10 to 25 % is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.guests import DISK_METRICS, cpu_count, quick_disks
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import FEW_COMMANDS

META = RuleMeta(
    code="GST103",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("disk-slow", "disk-stalled"),
    needs=("guest_blocked_count",),
    uses=DISK_METRICS,
    thresholds={
        "warn": Threshold(2.0, "count", "yaspe documentation"),
        "crit_per_cpu": Threshold(0.25, "ratio", "yaspe documentation: 10 to 25 % of the vCPUs"),
        "quick": Threshold(2.0, "ms", "Judgement: what the slides allow a log, the most demanding use"),
        "load_min": FEW_COMMANDS,
        "duration": Threshold(30.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=("guest-load-average-per-core",),
    is_wait=True,
)


_SPEC = Over(metric="guest_blocked_count", noun="tasks blocked", kinds=(EntityKind.GUEST,), mostly=True)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    for finding in over_threshold(context, _SPEC):
        median = finding.evidence[0].value or 0.0
        # Where the number of CPUs is not known the comparison is with NaN: never critical.
        critical = median > context.limit("crit_per_cpu") * cpu_count(context, finding.entity)
        severity = finding.severity if critical else finding.severity.lowered()
        quick = quick_disks(context, finding)
        if quick is None:
            yield replace(finding, severity=severity)
        else:
            yield replace(finding, severity=Severity.LOW, evidence=(*finding.evidence, quick))
