"""The guest's CPUs stand idle waiting for I/O.

Finds:
    I/O wait of the whole guest above 10 % (warning) or 20 % (critical), in most samples, for at least 30 s. Low
    severity when its loaded disks were recorded meanwhile and answered within 2 ms.

Why:
    I/O wait is idle time during which at least one task waited for a disk. Much of it says that storage, not CPU, holds
    the work back.

Do:
    Find the disk: await and queue of each in the guest, then device and kernel latency on the host. More CPUs do not
    help.

When it is wrong:
    It is idle time: a busy CPU hides it, so a low value clears nothing, and a few sessions doing synchronous I/O on a
    quick disk show a high one in perfect health. That is why the disks' await is looked at too.

Sources:
    yaspe documentation: 10 % warns, 20 % alerts.
    proc(5), /proc/stat: iowait is not reliable per CPU.
    Judgement: 30 s stands for "sustained"; 2 ms is what the slides allow a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, Severity
from leadline.estate.language.guests import DISK_METRICS, quick_disks
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import FEW_COMMANDS

META = RuleMeta(
    code="GST106",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    accuses=Blames.SOME_DISK,
    needs=("guest_cpu_iowait_pct",),
    uses=DISK_METRICS,
    thresholds={
        "warn": Threshold(10.0, "pct", "yaspe documentation"),
        "crit": Threshold(20.0, "pct", "yaspe documentation"),
        "quick": Threshold(2.0, "ms", "Judgement: what the slides allow a log, the most demanding use"),
        "load_min": FEW_COMMANDS,
        "duration": Threshold(30.0, "s", "Judgement: long enough to be more than a burst"),
    },
    clears=False,
    is_wait=True,
)

_SPEC = Over(metric="guest_cpu_iowait_pct", noun="I/O wait", kinds=(EntityKind.GUEST,), mostly=True)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    for finding in over_threshold(context, _SPEC):
        quick = quick_disks(context, finding)
        if quick is None:
            yield finding
        else:
            yield replace(finding, severity=Severity.LOW, evidence=(*finding.evidence, quick))
