"""A worker of autovacuum uses the disk that sessions need.

Finds:
    A worker of autovacuum at work for at least 0.3 of an incident that was hardly there in the normal time, while a
    disk of the server moves at least 1.5 times as much, requests to it wait 5 ms or more and twice as long as in the
    normal time, and not more transactions end. The disk that makes requests wait longest is named.

Why:
    Vacuum reads a table from its begin to its end and writes each page that has dead rows, with its log. What brakes it
    is autovacuum_vacuum_cost_delay; without it, or with a large autovacuum_vacuum_cost_limit, it takes all that the
    disk can do. It also makes the server write more pages and more log than its transactions explain.

Do:
    Let it end where it can: ended, it begins anew. Brake it: autovacuum_vacuum_cost_delay = 2ms and
    autovacuum_vacuum_cost_limit = 200 are the defaults, for one table by ALTER TABLE ... SET. Let it come more often
    and for less: autovacuum_vacuum_scale_factor of 0.01 to 0.05 for large tables. pg_stat_progress_vacuum tells how far
    it is.

When it is wrong:
    A worker that prevents wraparound is not to be held up. One that is at work beside another cause is slow itself, and
    longer there.

Sources:
    PostgreSQL documentation, "Automatic Vacuuming", "Cost-based Vacuum Delay" and "Routine Vacuuming".
    Judgement: three tenths of an incident is beyond the second that a small table takes; the other limits are those of
    guest-disk-taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.incident import Change
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.database_disks import database_disks
from leadline.rules._families.changes import changed, ratio, shown, throughput
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

_WORKERS = "db_worker_sessions_count"
_MOVED = ("disk_read_mib_per_s", "disk_write_mib_per_s")
_WAITS = ("guest_disk_await_ms", "guest_disk_await_ms_read", "guest_disk_await_ms_write")
_KIND = "autovacuum"

META = RuleMeta(
    code="GST162",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=(_WORKERS, "|".join(_MOVED), "|".join(_WAITS)),
    uses=("db_tps", "db_qps"),
    thresholds={
        "least": Threshold(0.3, "count", "Judgement: beyond what a small table takes"),
        "before": Threshold(0.2, "ratio", "Judgement: of what it is now; an incident's ends are never sharp"),
        "more": Threshold(1.5, "ratio", "Judgement: beyond the noise of a busy disk"),
        "await": Threshold(5.0, "ms", "Judgement: a disk that answers sooner has room for both"),
        "slower": Threshold(2.0, "ratio", "Judgement: beyond the noise of a busy disk"),
        "done": Threshold(1.2, "ratio", "Judgement: with more transactions it is more work"),
    },
    explains=(
        *GUEST_AND_DATABASE_WAIT_FOR_DISK,
        *("vm-iops-limit-hit", "db-lock-waits", "guest-cache-cold", "db-pages-flushed", "db-write-amplification"),
    ),
    clears=False,
    examines="disks",
    causes=("disk-busy-with-others",),
    of_incident=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the disk that makes requests wait longest."""
    came = [change for change in context.changes(_WORKERS, EntityKind.SESSION) if _came(context, change)]
    done = throughput(context)
    if not came or ratio(done) >= context.limit("done"):
        return
    workers = sorted(came, key=lambda change: -change.during)
    waiting = max(_waiting(context), key=lambda pair: pair[0].during, default=None)
    if waiting is None:
        return
    wait, moved = waiting
    summary = f"The {workers[0].entity.name} uses {wait.entity.label()}: {shown(moved)}; requests wait {shown(wait)}"
    yield changed(context, wait.entity, summary, (*workers, moved, wait, done))


def _came(context: RuleContext, worker: Change) -> bool:
    is_new = np.nan_to_num(worker.normal) <= context.limit("before") * worker.during
    return worker.entity.name.startswith(_KIND) and worker.during >= context.limit("least") and bool(is_new)


def _waiting(context: RuleContext) -> Iterator[tuple[Change, Change]]:
    """Disks of the database that make requests wait longer and move more: how long, and how much."""
    of_database = database_disks(context)
    moved: dict[Entity, Change] = {}
    for change in (change for metric in _MOVED for change in context.changes(metric, EntityKind.BLOCK_DEVICE)):
        is_more = ratio(change) >= context.limit("more")
        if is_more and (change.entity not in moved or moved[change.entity].during < change.during):
            moved[change.entity] = change
    for metric in _WAITS:
        for wait in context.changes(metric, EntityKind.BLOCK_DEVICE):
            is_slow = wait.during >= context.limit("await") and ratio(wait) >= context.limit("slower")
            if is_slow and wait.entity in moved and (not of_database or wait.entity in of_database):
                yield wait, moved[wait.entity]
