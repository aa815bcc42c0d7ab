"""The database waits too long for data it reads.

Finds:
    Latency of reads of data files as the database measures it, above 10 ms (warning) or 20 ms (critical) in most
    samples for at least 15 s.

Why:
    A query that misses the cache waits for one read after the other: an index descent is three or four of them. No
    setting of the database makes up for it, but fewer misses do.

Do:
    Follow the disk under the data through the layers: await in the guest, guest latency and device latency on the host,
    limits. Then lower the number of reads: memory for the cache, indexes, statements that read less.

When it is wrong:
    Reads of many blocks at once (scans, backups) take longer each without being slow. PostgreSQL counts what the page
    cache answered as reads too, which flatters the average, and measures only with track_io_timing.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): data below 10 ms.
    Microsoft SQL Server documentation, sys.dm_io_virtual_file_stats and PAGEIOLATCH waits; Oracle Database
    documentation, db file sequential read; PostgreSQL documentation, blk_read_time.
    Judgement: 20 ms is twice the limit; 15 s, as for the device's latency.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

_SLIDES = "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)"

META = RuleMeta(
    code="DBS116",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("disk-slow", "cold-cache"),
    needs=("db_data_read_latency_ms",),
    thresholds={
        "warn": Threshold(10.0, "ms", _SLIDES),
        "crit": Threshold(20.0, "ms", "Judgement: twice the limit for data"),
        "duration": Threshold(15.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=("db-component-response-time",),
    clears=False,
    examines="disks",
    is_wait=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database."""
    yield from over_threshold(context, Over("db_data_read_latency_ms", "data read latency", mostly=True))
