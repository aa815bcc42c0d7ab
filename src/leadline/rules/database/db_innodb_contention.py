"""Threads wait for a place or a lock inside InnoDB, not for a disk.

Finds:
    A thread that has waited for an internal lock (semaphore) for more than 1 s (warning) or 30 s (critical), or more
    than 4 (warning) or 32 (critical) statements in the queue before InnoDB.

Why:
    Internal locks protect the buffer pool, indexes and the dictionary, each for microseconds. A wait of seconds means
    that who has it is stuck: in a read or a flush of a slow disk, in a change of a table, or in a scan of a long
    history. Statements in the queue wait for innodb_thread_concurrency.

Do:
    Read where the threads wait (the status names the file): buf0 and fil0 are pages and files, row0purge and trx0 the
    history, dict0 and btr0sea the dictionary and the adaptive hash index. Look at what is pending for the disk at the
    same time. Set innodb_thread_concurrency = 0 where statements queue. InnoDB stops the server after a wait of 600 s.

When it is wrong:
    ALTER TABLE, DROP TABLE and a truncation of a large table take such locks for seconds by design.

Sources:
    MySQL 8.4 reference manual, "InnoDB Standard Monitor and Lock Monitor Output": SEMAPHORES, and
    innodb_thread_concurrency. Judgement: a second is a million times what such a lock is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity

_WAIT, _QUEUE = "db_semaphore_wait_age_s_max", "db_queue_outside_count"

META = RuleMeta(
    code="DBS184",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("lock-waits",),
    needs=(f"{_WAIT}|{_QUEUE}",),
    thresholds={
        "warn": Threshold(1.0, "s", "Judgement: a million times what such a lock is kept"),
        "crit": Threshold(30.0, "s", "Judgement: the server is stuck"),
        "queue_warn": Threshold(4.0, "count", "Judgement: fewer come and go"),
        "queue_crit": Threshold(32.0, "count", "Judgement: as many as usually run"),
    },
    clears=False,
    is_wait=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per server: the wait before the queue."""
    reported = set()
    for metric, level, unit in ((_WAIT, "", "s"), (_QUEUE, "queue_", "count")):
        for group in context.of(metric):
            for server, values in zip(group.entities, group.values, strict=True):
                most = float(np.nanmax(values)) if np.isfinite(values).any() else 0.0
                if most <= context.limit(f"{level}warn") or server in reported:
                    continue
                reported.add(server)
                limit = context.stated_limit(f"{level}warn")
                place = context.inventory.get(server, "semaphore_waits_at") if metric == _WAIT else None
                where = "" if place is None else f" at {place}"
                if metric == _WAIT:
                    summary = (
                        f"A thread of {server.label()} has waited {show(most, 's')} for a lock inside InnoDB{where}"
                    )
                else:
                    summary = f"{most:.0f} statements of {server.label()} wait for a place inside InnoDB"
                evidence = Evidence(
                    summary,
                    metric=metric,
                    entity=server,
                    statistic="max",
                    value=most,
                    threshold=limit,
                    unit=unit,
                    source=context.source_name(group),
                )
                severity = Severity.HIGH if most > context.limit(f"{level}crit") else Severity.MEDIUM
                yield context.finding(server, summary, [evidence], severity=severity, score=most / limit)
