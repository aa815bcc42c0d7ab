"""The database waits too long for its log to be written.

Finds:
    Log write latency as the database measures it, above 2 ms (warning) or 5 ms (critical) for at least 15 s. Where the
    database does not tell, the write await and the flush latency of the disk that the inventory gives the role WAL.

Why:
    A commit returns when its log record is on stable storage. What a log write takes is the floor of every writing
    transaction, and of everyone who waits for its locks.

Do:
    Follow the disk under the log through the layers: await in the guest, kernel and device latency on the host, limits.
    Put the log on a virtual disk, controller and LUN of its own. Committing in groups (commit_delay, more sessions)
    spreads the cost, asynchronous commit trades it for the last transactions in a crash.

When it is wrong:
    Up to 15 ms is bearable for systems that commit rarely. A log writer that flushes large batches takes longer per
    write by size. Over a disk's await the log's writes are mixed with whatever else is on that disk.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): WAL below 2 to 5 ms.
    PostgreSQL documentation, pg_stat_wal and pg_stat_io; SQL Server WRITELOG waits; Oracle log file parallel write.
    Judgement: 15 s, as for the device's latency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.derived.disks import Busy, Use, uses, whole_disk
from leadline.estate.derived.latencies import block_awaits
from leadline.estate.language.templates import Over, joined, over_groups
from leadline.rules._families.limits import FEW_COMMANDS

_SLIDES = "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)"

META = RuleMeta(
    code="DBS101",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("disk-slow", "flush-slow"),
    needs=(
        "db_log_write_latency_ms|guest_disk_await_ms|guest_disk_await_ms_read|guest_disk_await_ms_write|guest_disk_flush_latency_ms",
    ),
    uses=(
        "guest_disk_await_ms_write",
        "guest_disk_flushes_per_s",
        "disk_iops",
        "disk_reads_per_s",
        "disk_writes_per_s",
    ),
    explains=("db-component-response-time",),
    thresholds={
        "warn": Threshold(2.0, "ms", _SLIDES),
        "crit": Threshold(5.0, "ms", _SLIDES),
        "load_min": FEW_COMMANDS,
        "duration": Threshold(15.0, "s", "Judgement: long enough to be more than a burst"),
    },
    clears=False,
    examines="disks",
    is_wait=True,
)

_WRITES = Busy("guest_disk_await_ms_write", (("disk_writes_per_s",), ("disk_iops",)))
_FLUSHES = Busy(rates=(("guest_disk_flushes_per_s",),))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database, or per log disk where no database of its guest measures its log."""
    log_latencies = context.of("db_log_write_latency_ms")
    yield from over_groups(context, log_latencies, Over("db_log_write_latency_ms", "log write latency", mostly=True))
    measured = {entity.ancestor(EntityKind.GUEST) for group in log_latencies for entity in group.entities}
    keep = _given_log(uses(context), measured)
    awaits = Over("guest_disk_await_ms", "write await of the log's disk", value=_WRITES, keep=keep, mostly=True)
    flushes = Over(
        "guest_disk_flush_latency_ms", "flush latency of the log's disk", value=_FLUSHES, keep=keep, mostly=True
    )
    by_disk: dict[Entity, list[Finding]] = {}
    for finding in over_groups(context, block_awaits(context), awaits):
        by_disk.setdefault(finding.entity, []).append(finding)
    for finding in over_groups(context, context.of("guest_disk_flush_latency_ms", EntityKind.BLOCK_DEVICE), flushes):
        by_disk.setdefault(finding.entity, []).append(finding)
    for disk, findings in by_disk.items():
        yield replace(joined(findings, context.limit("duration")), entity=_database_on(context.inventory, disk) or disk)


def _given_log(known: Mapping[Entity, Use], measured: set[Entity | None]) -> Callable[[RuleContext, Entity], bool]:
    def keep(_: RuleContext, entity: Entity) -> bool:
        use = known.get(entity, Use())
        return use.role is Role.WAL and not use.guessed and entity.ancestor(EntityKind.GUEST) not in measured

    return keep


def _database_on(inventory: Inventory, disk: Entity) -> Entity | None:
    """The database of the same guest that keeps its log on a disk."""
    for database in [] if disk.parent is None else inventory.children(disk.parent, EntityKind.DATABASE):
        device = inventory.get(database, "wal_device")
        if device is not None and whole_disk(str(device)) == whole_disk(disk.name):
            return database
    return None
