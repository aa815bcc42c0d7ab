"""The queue depth of a device was cut while commands waited for it.

Finds:
    A queue depth of a device (esxtop's DQLEN) more than 25 % (medium: more than 50 %) below what it was earlier in the
    recording, for at least 15 s, while most of its slots were in use or commands waited for one.

Why:
    Two mechanisms cut it. Storage I/O Control does when the latency of the datastore passes its congestion threshold,
    so that no host takes more than its share. Adaptive queueing does when the array answers that its own queue is
    full or that it is busy. Both say that more was asked of the LUN than it gives. Commands then wait in the kernel.

Do:
    Find who asks for so much: the other hosts and VMs on this LUN, a backup, a copy. See the array's port queue and
    the events of the host (the depth was reduced, status BUSY or QUEUE FULL). Spread the load over more LUNs and
    ports. Raising the depth by hand does not help: the same mechanism cuts it again.

When it is wrong:
    A second VM that starts I/O on a LUN lowers the depth to Disk.SchedNumReqOutstanding (32, where the adapter gives
    64): one step to that number, and back when it is alone again, is the rule of fairness between VMs.

Sources:
    VMware KB 1008113, controlling LUN queue depth throttling (adaptive queueing): BUSY and QUEUE FULL halve the depth.
    VMware, Storage I/O Control technical overview: the depth is lowered above the congestion threshold.
    Judgement: 25 % and 50 %: both mechanisms halve the depth, or cut it in steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.queue_depths import DEPTH, READS, cut_shares, depth_cut
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="STO152",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    accuses=Blames.LIMIT,
    needs=(DEPTH,),
    uses=READS[1:],
    thresholds={
        "warn": Threshold(25.0, "pct", "Judgement: a step of Storage I/O Control"),
        "crit": Threshold(50.0, "pct", "Judgement: more than one halving"),
        "duration": THREE_SAMPLES,
    },
    explains=(
        "disk-queue-full",
        "disk-kavg-high",
        "disk-qavg-high",
        "disk-gavg-high",
        "vm-iops-limit-hit",
        *GUEST_AND_DATABASE_WAIT_FOR_DISK,
    ),
    clears=False,
    judgement=True,
)

_SPEC = Over(DEPTH, "queue depth cut by", (EntityKind.DEVICE,), value=cut_shares, unit="pct")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device; the depths before and after are named."""
    for finding in over_threshold(context, _SPEC):
        cut = depth_cut(context, finding.entity, finding.windows)
        if cut is not None:
            evidence = (cut.evidence(), *finding.evidence)
            yield replace(finding, summary=f"Queue depth of {cut.entity.label()} was cut from {cut}", evidence=evidence)
