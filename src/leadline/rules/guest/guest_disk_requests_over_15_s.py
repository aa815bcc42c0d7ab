"""SQL Server logged that requests to a disk took longer than 15 s.

Finds:
    Messages 833 of SQL Server ("encountered ... occurrence(s) of I/O requests taking longer than 15 seconds"): one is
    high, three or more within half an hour are critical.

Why:
    The request was handed to Windows 15 s before. Whatever holds it is below the database: the guest's drivers and
    filters, the hypervisor, the path, the device. Whoever waits for that page or log record stood still meanwhile.

Do:
    Look at the same minutes below the guest: latency and aborts on the host (esxtop, vmkernel.log), the array, a
    snapshot that was taken or removed, a backup, an IOPS limit. In the guest look at filter drivers (fltmc) and virus
    scanners. Record typeperf or perfmon with Avg. Disk sec/Read and sec/Write of each disk, to see for how long.

When it is wrong:
    A server whose clock jumped, or a VM that was stopped (suspended, moved, a snapshot with its memory), counts the
    stop as the time of its requests. A server of old versions with power saving may measure wrongly, too.

Sources:
    Microsoft SQL Server documentation, MSSQLSERVER_833.
    Judgement: the server tells every five minutes at most, so that three tell of a quarter of an hour.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import several
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.logged_events import occurrences
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

_METRIC = "guest_disk_requests_over_15_s_per_s"

META = RuleMeta(
    code="GST171",
    layer=Layer.GUEST,
    severity=Severity.CRITICAL,
    causes=("disk-stalled", "disk-slow"),
    needs=(_METRIC,),
    thresholds={
        "often": Threshold(3.0, "count", "Judgement: messages within half an hour that tell of more than one stall"),
        "gap": Threshold(1800.0, "s", "Judgement: messages half an hour apart are one trouble"),
    },
    explains=GUEST_AND_DATABASE_WAIT_FOR_DISK,
    clears=False,
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk."""
    for events in occurrences(context, _METRIC, EntityKind.BLOCK_DEVICE):
        windows = joined_windows(events.windows, context.limit("gap"))
        most = max(sum(w.start_ns <= one.start_ns < w.end_ns for one in events.windows) for w in windows)
        requests, name = several(events.total, "request"), events.entity.label()
        line = Evidence(
            f"SQL Server logged {requests} to {name} that took longer than 15 s, in "
            f"{several(len(events.windows), 'message')}",
            metric=_METRIC,
            entity=events.entity,
            statistic="sum",
            value=float(events.total),
            unit="count",
            source=context.source_name(events.group),
        )
        yield context.finding(
            events.entity,
            f"{requests} to {name} took longer than 15 s",
            [line],
            severity=Severity.CRITICAL if most >= context.limit("often") else Severity.HIGH,
            windows=windows,
            score=min(float(events.total), SCORE_MAX),
        )
