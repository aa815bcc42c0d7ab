"""What was in memory is read from disk: the page cache was emptied, or has too little room.

Finds:
    A disk that reads at least three times as much as in the normal time, and at least 20 reads per second more, while
    not more transactions end (1.3) and the database asks for no more pages of its own (1.5). Where the database times
    its reads of data files, they must take it more time, too (1.5): else somebody else reads.

Why:
    Memory that held the working set was taken or emptied: a limit of a control group, another program, a balloon, a
    restart, a backup that read everything once. The same statements now wait for a disk that they did not need.

Do:
    Look at memory: free -m over time, memory.max and memory.high of the control group, the balloon, what else grew.
    After a restart warm the cache up (pg_prewarm). Give the database's own buffers more where the page cache cannot
    be trusted.

When it is wrong:
    New data that was never in memory is read the same way; then the database asks for more pages, which is checked
    where it is recorded.

Sources:
    iostat(1), r/s; PostgreSQL documentation, "Resource Consumption" (shared_buffers and the page cache).
    Judgement: three times the reads for the same work is beyond what the mix varies.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.incident import Change
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.database_disks import database_disks
from leadline.rules._families.changes import changed, ratio, shown, throughput
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

_WAITED = ("db_data_read_time_pct", "db_data_read_latency_ms")
_ASKED = ("db_page_reads_per_s", "db_logical_reads_per_s", "db_rows_scanned_per_s")

META = RuleMeta(
    code="GST157",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=("disk_reads_per_s|disk_iops", "db_tps|db_qps"),
    uses=(
        *_ASKED,
        *_WAITED,
        "guest_memory_cached_mib",
        "guest_major_faults_per_s",
    ),
    thresholds={
        "reads": Threshold(3.0, "ratio", "Judgement: beyond what the mix varies"),
        "least": Threshold(20.0, "per_s", "Judgement: fewer are noise on any disk"),
        "done": Threshold(1.3, "ratio", "Judgement: with more transactions it is more work"),
        "asked": Threshold(1.5, "ratio", "Judgement: what the mix varies"),
        "waited": Threshold(1.5, "ratio", "Judgement: reads that come from disk take many times as long"),
    },
    explains=(*GUEST_AND_DATABASE_WAIT_FOR_DISK, "vm-iops-limit-hit"),
    clears=False,
    causes=("cold-cache", "memory-short"),
    of_incident=True,
)


def _reads(context: RuleContext) -> Change | None:
    """The change of the reads of the disk that reads most, of those that the database is known to lie on."""
    of_database = database_disks(context)
    changes = context.changes("disk_reads_per_s", EntityKind.BLOCK_DEVICE)
    mine = [change for change in changes if not of_database or change.entity in of_database]
    return max(mine, key=lambda change: max(change.normal, change.during), default=None)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the guest of the disk that reads most."""
    reads = _reads(context)
    done = throughput(context)
    if reads is None or done is None or ratio(done) >= context.limit("done"):
        return
    if ratio(reads) < context.limit("reads") or reads.during - reads.normal < context.limit("least"):
        return
    asked = [context.change(name) for name in _ASKED]
    if max(ratio(change) for change in asked) >= context.limit("asked"):
        return
    waited = [change for name in _WAITED if (change := context.change(name)) is not None]
    if waited and max(ratio(change) for change in waited) < context.limit("waited"):
        return
    guest = reads.entity.ancestor(EntityKind.GUEST) or reads.entity
    cached = context.change("guest_memory_cached_mib", EntityKind.GUEST)
    faults = context.change("guest_major_faults_per_s", EntityKind.GUEST)
    summary = f"What was in memory is read from {reads.entity.label()}: {shown(reads)} reads"
    yield changed(context, guest, summary, (reads, done, cached, faults, *asked))
