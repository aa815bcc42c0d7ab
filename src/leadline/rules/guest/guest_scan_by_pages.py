"""A scan reads its table from disk one page at a time: the disk's read-ahead does not work.

Finds:
    PostgreSQL reads at least 500 pages a second from outside its buffers, a third or more of all pages it looks at,
    with at least 5 rows of a scan for each page it looks at, while a disk of the guest serves those reads in requests
    of at most 12 KiB (a page and a half), each in at most 5 ms, and is busy for at least 0.7 of the time.

Why:
    A scan asks for one page after another. With read-ahead the kernel makes requests of 128 KiB and more of them, and
    has the next pages ready. Without it each page is a request that the scan waits for, and a disk that is as fast as
    ever delivers a tenth of what it could.

Do:
    Look at the read-ahead of the disk: blockdev --getra /dev/DISK (in sectors of 512 bytes), or
    /sys/block/DISK/queue/read_ahead_kb, and at who set it (udev rules, tuned, a multipath that was built anew). Set it
    back: blockdev --setra 256 for 128 KiB, the kernel's default. Look at max_sectors_kb too.

When it is wrong:
    A scan by a bitmap reads pages with gaps between them, one by one; effective_io_concurrency is what helps it.
    Fragmented files and encrypted or compressed volumes may cut requests as well. Scans of tables in memory beside
    single reads from disk look alike where a third of the pages are read from disk.

Sources:
    PostgreSQL documentation, pg_stat_database: tup_returned, blks_read, blks_hit. iostat(1), rareq-sz; blockdev(8);
    Linux Documentation/ABI/stable/sysfs-block, read_ahead_kb (128 by default).
    Judgement: an index gives about a row for every few pages, a scan tens of rows for each.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.estate.knowledge.database_settings import of_engine
from leadline.estate.language.database_disks import database_disks
from leadline.rules._families.levels import looked_at
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

_READ, _LOGICAL, _ROWS = "db_page_reads_per_s", "db_logical_reads_per_s", "db_rows_scanned_per_s"
_SIZE, _RATE, _UTIL = "guest_disk_io_size_kib_read", "disk_reads_per_s", "guest_disk_util_pct"
_AWAIT = "guest_disk_await_ms_read"

META = RuleMeta(
    code="GST170",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=(_READ, _LOGICAL, _ROWS, _SIZE, _RATE, _UTIL, _AWAIT),
    thresholds={
        "pages": Threshold(500.0, "per_s", "Judgement: fewer are no scan that anybody waits for"),
        "missed": Threshold(0.33, "ratio", "Judgement: of the pages it looks at; the scan reads from disk"),
        "rows": Threshold(5.0, "count", "Judgement: for each page; an index gives less than one"),
        "size": Threshold(12.0, "kib", "Judgement: a page and a half; read-ahead makes more of a scan"),
        "theirs": Threshold(0.5, "ratio", "Judgement: of the pages come from that disk, the rest from memory"),
        "await": Threshold(5.0, "ms", "Judgement: a disk that answers later is another cause"),
        "util": Threshold(70.0, "pct", "Judgement: somebody waits for it most of the time"),
    },
    explains=(
        *GUEST_AND_DATABASE_WAIT_FOR_DISK,
        *("guest-cache-cold", "db-more-work", "guest-run-queue-high", "guest-cpu-usage-high", "guest-cpu-system-share"),
        "guest-load-average-per-core",
    ),
    clears=False,
    causes=("read-ahead",),
)


_PAGE_KIB = 8.0


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per block device."""
    windows = looked_at(context)
    if not windows:
        return
    pages, logical, rows = (means_over(context.of(metric), windows) for metric in (_READ, _LOGICAL, _ROWS))
    disks = list(_small_reads(context, windows))
    for database in of_engine(context.inventory, "postgresql"):
        read = pages.get(database, 0.0)
        seen = max(logical.get(database, read), 1.0)
        scanned = rows.get(database, 0.0)
        is_from_disk = read >= context.limit("pages") and read >= context.limit("missed") * seen
        if not is_from_disk or scanned < context.limit("rows") * seen:
            continue
        for disk, moved_kib, evidence in disks:
            if moved_kib >= context.limit("theirs") * _PAGE_KIB * read:
                of_database = (
                    _evidence("Pages read from outside the buffers", read, database, _READ, "per_s"),
                    _evidence("Rows that scans read", scanned, database, _ROWS, "per_s"),
                )
                summary = (
                    f"A scan reads {disk.label()} in requests of {show(evidence[0].value or 0.0, 'kib')}, "
                    f"{show(evidence[1].value or 0.0, 'per_s')} of them: its read-ahead does not work"
                )
                yield context.finding(disk, summary, [*evidence, *of_database], windows=windows)


def _small_reads(
    context: RuleContext, windows: tuple[Window, ...]
) -> Iterator[tuple[Entity, float, tuple[Evidence, ...]]]:
    """Busy disks of the database with small and quick reads: what each moves in KiB/s, and its numbers."""
    size_by_disk, rate_by_disk, util_by_disk, wait_by_disk = (
        means_over(context.of(metric, EntityKind.BLOCK_DEVICE), windows) for metric in (_SIZE, _RATE, _UTIL, _AWAIT)
    )
    of_database = database_disks(context)
    for disk, size in size_by_disk.items():
        rate, wait_ms = rate_by_disk.get(disk, 0.0), wait_by_disk.get(disk, 0.0)
        is_quick = wait_ms <= context.limit("await") and util_by_disk.get(disk, 0.0) >= context.limit("util")
        if (not of_database or disk in of_database) and size <= context.limit("size") and is_quick:
            yield (
                disk,
                size * rate,
                (
                    _evidence("Mean size of a read", size, disk, _SIZE, "kib"),
                    _evidence("Reads", rate, disk, _RATE, "per_s"),
                    _evidence("A read takes", wait_ms, disk, _AWAIT, "ms"),
                ),
            )


def _evidence(text: str, value: float, entity: Entity, metric: str, unit: str) -> Evidence:
    return Evidence(f"{text}: {show(value, unit)}", metric, entity, "mean", value, unit=unit)
