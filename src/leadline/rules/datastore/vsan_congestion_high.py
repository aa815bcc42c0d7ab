"""vSAN pushes back: it delays I/O because it cannot keep up.

Finds:
    Congestion, 0 to 255, of a cluster, host or disk group above 20 (high) or 75 (critical) for at least 60 s. Where
    congestion because of the log's length is told apart, that alone is critical above 200.

Why:
    Congestion is vSAN's feedback from a disk group to the hosts that send it I/O: each unit adds delay before a request
    is even started. It says that buffer, log, memory or components run out, long before anything fails.

Do:
    Find out which kind it is. SSD and log: the write buffer is not emptied fast enough, so look for a slow capacity
    device, too few of them, or deduplication. Memory and slab: the host lacks memory. Components: too many objects per
    host. Reduce resync traffic meanwhile and replace the slow device.

When it is wrong:
    A rebuild or a bulk load may congest on purpose for minutes. Averages over five minutes hide short congestion, so
    the peak was higher than the number says.

Sources:
    RVC vSAN Observer graphs.js: limits of the graphs.
    Broadcom KB 326870, SSD log build-up on vSAN: log congestion of 200.
    Judgement: 60 s is two samples of 30 s; one of five minutes is long enough by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

_OBSERVER = "RVC vSAN Observer graphs.js"
_LOG = "vsan_disk_group_congestion_count_log"

META = RuleMeta(
    code="DST101",
    layer=Layer.DATASTORE,
    severity=Severity.CRITICAL,
    causes=("disk-slow",),
    needs=(f"vsan_congestion_count|vsan_disk_group_congestion_count|{_LOG}",),
    thresholds={
        "warn": Threshold(20.0, "count", _OBSERVER),
        "crit": Threshold(75.0, "count", _OBSERVER),
        "crit_log": Threshold(200.0, "count", "Broadcom KB 326870"),
        "duration": TWO_SAMPLES,
    },
    explains=("vsan-client-latency-high", "vsan-latency-stddev-high", "vsan-oio-high", *GUEST_WAITS_FOR_DISK),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster, host and disk group."""
    with_log = {entity for group in context.of(_LOG) for entity in group.entities}

    def of_any_kind(_: RuleContext, entity: Entity) -> bool:
        return entity not in with_log

    yield from over_any(
        context,
        (
            Over("vsan_congestion_count", "vSAN congestion"),
            Over("vsan_disk_group_congestion_count", "disk group congestion", keep=of_any_kind),
            Over(_LOG, "log congestion of the disk group", crit="crit_log"),
        ),
    )
