"""A host logged that vSAN throttles its writers.

Finds:
    Lines of congestion in the host's log: of 200 or more, or at the most there is (255), high severity; from 60 on
    medium.

Why:
    Congestion is vSAN's feedback from a disk group to the hosts that send it I/O: each unit adds delay before a request
    is even started. The host logs it when it crosses the threshold, with the disk that causes it.

Do:
    Find out what fills up: a cache disk that is failing or slow, capacity disks too slow to take what the cache hands
    on, a log that is not emptied (SSD log build-up), a rebuild beside the load. Look at the latency of the disk group's
    disks in the same minutes, and at their error counters.

When it is wrong:
    A rebuild or a bulk load may congest on purpose for minutes.

Sources:
    Broadcom KB 326870, SSD log build-up on vSAN: congestion of 200 and more.
    Judgement: 60 is a delay that is felt.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

_LOGGED = "vsan_logged_congestion_count"

META = RuleMeta(
    code="DST190",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    needs=(_LOGGED,),
    thresholds={
        "warn": Threshold(60.0, "count", "Judgement: a delay that is felt"),
        "crit": Threshold(199.0, "count", "Broadcom KB 326870"),
        "duration": Threshold(0.0, "s", "A line of the log is an event"),
    },
    explains=("vsan-client-latency-high", "vsan-latency-stddev-high", "vsan-oio-high", *GUEST_WAITS_FOR_DISK),
    clears=False,
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk group."""
    says = "vSAN throttled its writers: congestion of {value} on {where} (limit {limit}), by the host's log"
    yield from over_threshold(context, Over(_LOGGED, "congestion", (EntityKind.DISK_GROUP,), says=says))
