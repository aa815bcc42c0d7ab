"""A disk answers too slowly, as the database that reads from it measures it.

Finds:
    Single reads of data files above 10 ms (warning) or 20 ms (critical), or writes of the log above 5 ms or 15 ms, as
    Oracle and SQL Server time each of them, for at least 15 s. Only where at least a fifth of the time of the sessions
    at work is spent in such waits, and waits make up at least 70 % of it: the rest is processors and their queue.

Why:
    The database starts its clock right before the request to the system and stops it right after. A busy processor can
    make that longer, too, but then sessions queue for it between their waits as well, which is time of theirs that is
    no wait. Where nearly all of their time is waits, the disk takes it.

Do:
    Find the layer before buying disks: record iostat -x in the guest and esxtop on the host for the same minutes.
    Follow await in the guest, guest latency (GAVG) and device latency (DAVG) on the host, limits of IOPS.

When it is wrong:
    The mean of an hour may be one bad minute: take snapshots of ten minutes or less while it is slow. A mean of few
    reads says little. Where the hypervisor takes processors away, every wait takes longer.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): data below 10 ms.
    Oracle Database Performance Tuning Guide, "Instance Tuning Using Performance Views": DB time is processor and waits;
    Oracle Database Reference, db file sequential read and log file parallel write. Microsoft SQL Server documentation,
    sys.dm_os_wait_stats (signal_wait_time_ms) and sys.dm_io_virtual_file_stats.
    Judgement: a fifth of the time is felt; 70 % leaves 30 % for work. Log writes: the slides' 5 ms, and three times it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.series import mean_of, means_of_parts
from leadline.estate.language.templates import Over, joined, over_threshold
from leadline.rules._families.symptoms import DATABASE_WAITS_FOR_DISK

_SLIDES = "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)"
_READS, _WRITES = "db_data_read_latency_ms", "db_log_write_latency_ms"
_COMMITS = "db_commit_wait_ms"
_EVENTS, _ACTIVE = "db_wait_event_sessions_count", "db_active_sessions_count"
_DISK_EVENTS = (
    *("db file ", "direct path ", "read by other session", "cell ", "log file ", "free buffer waits"),
    *("PAGEIOLATCH_", "WRITELOG", "LOGBUFFER", "IO_COMPLETION", "ASYNC_IO_COMPLETION"),
)
_PROCESSOR_EVENTS = ("CPU", "resmgr:cpu", "latch", "SOS_SCHEDULER_YIELD")
_ENGINES = ("oracle", "sqlserver")  # their waits are timed one by one, and everything that sessions wait for is counted

META = RuleMeta(
    code="GST178",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    causes=("disk-slow", "disk-capped"),  # from inside a guest both look alike
    needs=(f"{_READS}|{_WRITES}", _EVENTS),
    uses=(_READS, _WRITES, _ACTIVE, _COMMITS),
    thresholds={
        "data_warn": Threshold(10.0, "ms", _SLIDES),
        "data_crit": Threshold(20.0, "ms", "Judgement: twice the limit for data"),
        "wal_warn": Threshold(5.0, "ms", _SLIDES),
        "wal_crit": Threshold(15.0, "ms", "Judgement: three times the limit for a log"),
        "disk_share": Threshold(0.2, "ratio", "Judgement: a fifth of the time is felt"),
        "wait_share": Threshold(0.7, "ratio", "Judgement: the rest is processors and the queue for them"),
        "duration": Threshold(15.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=DATABASE_WAITS_FOR_DISK,
    clears=False,
    examines="disks",
)


@dataclass(frozen=True, slots=True)
class _Spent:
    """Shares of the time of the sessions at work: in waits for disks, and in waits for anything but a processor."""

    disk: float
    waits: float


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest of a database."""
    reads = Over(_READS, "single reads of data files", warn="data_warn", crit="data_crit", keep=_times_each)
    writes = Over(_WRITES, "writes of the log", warn="wal_warn", crit="wal_crit", keep=_times_each)
    by_guest: dict[Entity, list[Finding]] = {}
    for spec in (reads, writes):
        for finding in over_threshold(context, spec):
            spent = _spent(context, finding)
            if spent is None or spent.disk < context.limit("disk_share") or spent.waits < context.limit("wait_share"):
                continue
            database = finding.entity
            guest = database.ancestor(EntityKind.GUEST) or database
            value = show(finding.evidence[0].value or 0.0, "ms")
            wait_ms = mean_of(context, _COMMITS, database, finding.windows) or 0.0
            commits = f" and commits wait {show(wait_ms, 'ms')}" if wait_ms > context.limit("wal_warn") else ""
            noun = f"{spec.noun[0].upper()}{spec.noun[1:]}"
            summary = f"{noun} of {database.label()} take {value}{commits}, as the database times them"
            shares = Evidence(
                f"sessions at work spent {spent.disk:.0%} of their time in waits for disks "
                f"and {max(1 - spent.waits, 0.0):.0%} on processors or in the queue for them",
                metric=_EVENTS,
                entity=database,
            )
            placed = replace(finding, entity=guest, summary=summary, evidence=(*finding.evidence, shares))
            by_guest.setdefault(guest, []).append(placed)
    for findings in by_guest.values():
        yield joined(findings, context.limit("duration"))


def _times_each(context: RuleContext, entity: Entity) -> bool:
    return context.inventory.get(entity, "engine") in _ENGINES


def _spent(context: RuleContext, finding: Finding) -> _Spent | None:
    """Where the time of sessions went in the windows of a finding; None where it was not recorded."""
    server = finding.entity
    means = means_of_parts(context, _EVENTS, server, finding.windows)
    events = {entity.name: mean for entity, mean in means.items() if mean > 0}
    whole = mean_of(context, _ACTIVE, server, finding.windows)
    whole = sum(events.values()) if whole is None else whole
    if not whole > 0:
        return None
    waits = sum(mean for name, mean in events.items() if not name.startswith(_PROCESSOR_EVENTS))
    disk = sum(mean for name, mean in events.items() if name.startswith(_DISK_EVENTS))
    return _Spent(disk / whole, waits / whole)
