"""SQL Server or Oracle waited long for its disks, on average since it was started.

Finds:
    One sample of sys.dm_io_virtual_file_stats or sys.dm_os_wait_stats, or of Oracle's v$system_event: reads of data
    files above 20 ms or writes of the log above 10 ms (PAGEIOLATCH and WRITELOG where files were not sampled, db file
    sequential read and log file parallel write), as means since the server's start. Where waits were sampled: only if
    waits for disks are at least a tenth of them.

Why:
    A query that misses the cache waits for one read after the other, and a commit waits for the log. A mean since the
    start holds quiet nights as well: where it is high, the bad hours were worse.

Do:
    Take a second sample some minutes later, while it is slow, into the same file: the difference tells of that time.
    Of Oracle an AWR or Statspack report of the bad hour tells the same.
    Record the disk below with it: the counters of PhysicalDisk in the guest, esxtop on the host.

When it is wrong:
    A start long ago hides today, and one bad night in the past accuses today's disk. Reads of backups and of large
    scans take longer each without being slow.

Sources:
    Microsoft SQL Server documentation, sys.dm_io_virtual_file_stats and sys.dm_os_wait_stats; Microsoft, "Troubleshoot
    slow SQL Server performance caused by I/O issues": 10 to 15 ms. P. Randal, "How to examine I/O subsystem latencies
    from within SQL Server": above 20 ms is poor; of Oracle's reads the same is asked.
    Judgement: 10 ms for writes of a log, five times what a healthy disk takes; a tenth of the waits is felt.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, Severity

_READ, _WRITE = "read_ms_since_start", "log_write_ms_since_start"
_SHARE, _COMMIT = "disk_wait_share_since_start", "commit_wait_ms_since_start"

META = RuleMeta(
    code="DBS178",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    needs=(f"database.{_READ}|database.{_WRITE}",),
    thresholds={
        "read": Threshold(20.0, "ms", "P. Randal, How to examine I/O subsystem latencies from within SQL Server"),
        "write": Threshold(10.0, "ms", "Judgement: five times what a log write takes on a healthy disk"),
        "share": Threshold(0.1, "ratio", "Judgement: a tenth of the waits is felt"),
    },
    accuses=Blames.SOME_DISK,
    is_wait=True,
    clears=False,
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per server."""
    for server in context.inventory.of_kind(EntityKind.DATABASE):
        share = context.inventory.get(server, _SHARE)
        if share is not None and float(share) < context.limit("share"):
            continue
        slow = []
        for fact, limit, noun in ((_READ, "read", "reads of data files"), (_WRITE, "write", "writes of the log")):
            value = context.inventory.get(server, fact)
            if value is not None and float(value) > context.limit(limit):
                slow.append((float(value), f"{noun} took {show(float(value), 'ms')}", context.limit(limit)))
        if not slow:
            continue
        evidence = [
            Evidence(f"{text} since the start", entity=server, value=v, threshold=t, unit="ms") for v, text, t in slow
        ]
        commit = context.inventory.get(server, _COMMIT)
        if commit is not None:
            evidence.append(Evidence(f"a commit waited {show(float(commit), 'ms')}", entity=server, unit="ms"))
        if share is not None:
            evidence.append(Evidence(f"waits for disks are {float(share):.0%} of all waits", entity=server))
        text = " and ".join(text for _, text, _ in slow)
        summary = f"{text[0].upper()}{text[1:]} on average since {server.label()} was started"
        yield context.finding(server, summary, evidence, score=max(v / t for v, _, t in slow))
