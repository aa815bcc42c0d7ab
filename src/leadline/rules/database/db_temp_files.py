"""Sorts and hashes that do not fit in memory write temporary files.

Finds:
    More than 1 MiB/s of temporary files (warning) or 8 MiB/s (high) on average, in the incident or in all of the
    recording, and at least three times as much as in the normal time.

Why:
    A sort of 40 MB with 4 MB of work_mem is written to disk and read again, often twice. These requests go to the data
    disk unless temp_tablespaces says otherwise, and push what others need out of the page cache.

Do:
    Find the statements (log_temp_files = 0, pg_stat_statements.temp_blks_written). Give them an index that sorts for
    them, or more memory for that session alone: SET work_mem. Put temp_tablespaces on a disk of its own.

When it is wrong:
    A report at night may be cheaper with files than with memory that others need.

Sources:
    PostgreSQL documentation, work_mem, log_temp_files, pg_stat_database.temp_bytes.
    Judgement: 1 MiB/s is seen on a busy disk, 8 MiB/s on most.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import changed, shown, throughput
from leadline.rules._families.levels import is_more, level
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="DBS164",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_temp_bytes_per_s",),
    uses=("db_tps", "db_qps"),
    thresholds={
        "warn": Threshold(1048576.0, "bytes_per_s", "Judgement: seen on a busy disk"),
        "crit": Threshold(8388608.0, "bytes_per_s", "Judgement: seen on most disks"),
        "more": Threshold(3.0, "ratio", "Judgement: beyond what the same statements vary"),
    },
    explains=(
        *GUEST_AND_DATABASE_WAIT_FOR_DISK,
        "vm-iops-limit-hit",
        "guest-cache-cold",
        "db-statement-scans",
    ),
    clears=False,
    causes=("temp-files",),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database that writes most of them."""
    written = level(context, "db_temp_bytes_per_s")
    if written is None or written.during < context.limit("warn") or not is_more(written, context.limit("more")):
        return
    severity = Severity.HIGH if written.during >= context.limit("crit") else Severity.MEDIUM
    summary = f"Temporary files are written: {shown(written)}"
    yield changed(context, written.entity, summary, (written, throughput(context)), severity=severity)
