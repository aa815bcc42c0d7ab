"""Many sessions wait in one queue for a lock, by a line of the server's log.

Finds:
    A line of PostgreSQL's log (log_lock_waits: "Process holding the lock: ... Wait queue: ...") that names 5 processes
    in one queue (warning), or 10 (critical).

Why:
    All of them want the same row, table or transaction, and only one gets on at a time: what each takes adds up for
    those behind it. More of them, or a faster disk, help nobody.

Do:
    The STATEMENT lines beside it name what they all do. Keep the transaction that does it short: no call to another
    service, no waiting client inside it. Update rows that everyone updates (counters, last seen, tokens) seldom, in a
    separate short transaction, or insert rows and sum them later. Queues: SELECT ... FOR UPDATE SKIP LOCKED.

When it is wrong:
    One queue of a second may be a deployment (ALTER TABLE) that is over.

Sources:
    PostgreSQL documentation, log_lock_waits, deadlock_timeout; src/backend/storage/lmgr/proc.c, ProcSleep.
    Judgement: five processes that each waited for a second are more than chance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity

_QUEUE = "db_logged_lock_queue_count_max"
_NS_PER_S = 1e9

META = RuleMeta(
    code="DBS191",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("lock-waits",),
    needs=(_QUEUE,),
    thresholds={
        "warn": Threshold(5.0, "count", "Judgement: more than chance, when each waited for a second"),
        "crit": Threshold(10.0, "count", "Judgement: twice the warning"),
    },
    explains=("db-component-response-time",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database server, over the steps in which a queue was that long."""
    for group in context.of(_QUEUE):
        step_ns = int(group.interval_s * _NS_PER_S)
        for server, row in zip(group.entities, group.values, strict=True):
            at = np.flatnonzero(np.nan_to_num(row) >= context.limit("warn"))
            if not len(at):
                continue
            longest = float(np.max(row[at]))
            windows = tuple(Window(end - step_ns, end) for end in group.times_ns[at].tolist())
            line = Evidence(
                f"the longest queue that the log tells of has {show(longest, 'count')} processes",
                metric=_QUEUE,
                entity=server,
                statistic="max",
                value=longest,
                unit="count",
                source=context.source_name(group),
            )
            severity = Severity.HIGH if longest >= context.limit("crit") else Severity.MEDIUM
            summary = f"{show(longest, 'count')} sessions of {server.label()} wait in one queue for a lock"
            yield context.finding(server, summary, [line], severity=severity, windows=windows)
