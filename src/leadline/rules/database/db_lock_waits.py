"""Sessions wait for a lock that another session holds.

Finds:
    More than half a session (warning) or two sessions (critical) that wait for a lock, on average, in most seconds for
    at least 5 s. The session at the head of the queue is named, with what it does. Of low severity while at least a
    third as many sessions wait for the log or for a read: whoever holds the lock waits for a disk. Where no session was
    sampled, the waits that the server logged are counted (log_lock_waits: those longer than deadlock_timeout); of low
    severity unless five eighths of them are behind one process.

Why:
    Whoever waits for a row or a table lock does no work, however fast disks and processors are. Behind one transaction
    that holds a lock everybody who needs it queues, and a session that queues keeps its other locks. A change of a
    table that waits behind a long transaction makes all others wait that use the table. Where many processes hold the
    locks, each for a short time, they are slow for another reason, and the waits only follow.

Do:
    Look at the session that is named: what it runs, or why it holds its transaction open. End it with
    pg_terminate_backend(PID) when it is stuck (Oracle: ALTER SYSTEM KILL SESSION; SQL Server: KILL). Then make such
    transactions shorter: commit after each batch, take locks late, set lock_timeout and
    idle_in_transaction_session_timeout.

When it is wrong:
    A migration or a batch at night may be meant to hold others back.

Sources:
    PostgreSQL documentation, "Wait Event Types" (class Lock), pg_blocking_pids, log_lock_waits.
    Judgement: half a session that waits all the time, or one that waits half of it, is felt; 5 s, as a user would. Five
    eighths of the waits behind one process are a queue with a head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.derived.series import mean_of, means_of_parts, places_by_parent
from leadline.estate.language.templates import Over, over_threshold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.finding import Window

_WAITS = "db_wait_event_sessions_count"
_DISK_EVENTS = (
    *("IO:", "LWLock:WALWrite", "LWLock:WALInsert", "wait/io/file/", "io:file/"),
    *("db file ", "direct path ", "cell ", "log file ", "PAGEIOLATCH_", "WRITELOG"),
)
_LOGGED_BEHIND = "db_logged_sessions_behind_count"
_BEHIND = "db_sessions_behind_blocker_count"

META = RuleMeta(
    code="DBS156",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("lock-waits",),
    needs=("db_blocked_sessions_count|db_logged_lock_waits_count",),
    uses=(_BEHIND, _WAITS, _LOGGED_BEHIND),
    thresholds={
        "warn": Threshold(0.5, "count", "Judgement: a session that waits half of the time"),
        "crit": Threshold(2.0, "count", "Judgement: four times the warning"),
        "behind_io": Threshold(0.33, "ratio", "Judgement: each of them holds locks that others wait for"),
        "behind_one": Threshold(0.625, "ratio", "Judgement: a queue with a head"),
        "duration": Threshold(5.0, "s", "Judgement: what a user calls a standstill"),
    },
    explains=("db-component-response-time", "db-lock-queue"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database server, with the session at the head of the queue."""
    says = "{value} sessions of {where} wait for a lock"
    spec = Over("db_blocked_sessions_count", "sessions that wait for a lock", mostly=True, says=says)
    for finding in over_threshold(context, spec):
        yield from _behind_io(context, finding)
    if not context.of("db_blocked_sessions_count"):
        yield from _logged(context)


def _logged(context: RuleContext) -> Iterator[Finding]:
    """Findings of waits that only the server's log tells of."""
    metric = "db_logged_lock_waits_count"
    says = "{value} sessions of {where} wait for a lock, by the server's log"
    for finding in over_threshold(context, Over(metric, "sessions that wait for a lock", mostly=True, says=says)):
        head = _head(context, finding, _LOGGED_BEHIND)
        waiting = mean_of(context, metric, finding.entity, finding.windows)
        evidence = finding.evidence if head is None else (*finding.evidence, head)
        entity = None if head is None else head.entity
        behind = 0.0 if entity is None else mean_of(context, _LOGGED_BEHIND, entity, finding.windows) or 0.0
        if not context.of(_LOGGED_BEHIND):
            unknown = Evidence("the log does not say who held the lock: its lines of DETAIL are missing")
            yield replace(finding, severity=Severity.MEDIUM, evidence=(*evidence, unknown))
        elif behind < context.limit("behind_one") * (float("inf") if waiting is None else waiting):
            reason = Evidence("but many processes hold the locks, each for a short time: something else slows them")
            yield replace(finding, severity=Severity.LOW, evidence=(*evidence, reason))
        else:
            yield replace(finding, evidence=evidence)


def _behind_io(context: RuleContext, finding: Finding) -> Iterator[Finding]:
    """The finding of the windows in which locks were to blame, and, of low severity, of those that waited for a disk.

    Each window is judged alone: locks that waited for a slow disk this morning say nothing of those of the afternoon.
    """
    waits = {window: _disk_waits(context, finding.entity, window) for window in finding.windows}
    behind = tuple(window for window, waiting in waits.items() if waiting is not None)
    alone = tuple(window for window in finding.windows if window not in behind)
    if alone:
        yield _headed(context, replace(finding, windows=alone))
    if not behind:
        return
    waiting = max(waits[window] or 0.0 for window in behind)
    reason = Evidence(
        f"but {waiting:.2g} sessions wait for the log or for a read: whoever holds the lock waits for a disk",
        metric=_WAITS,
        entity=finding.entity,
        statistic="mean",
        value=waiting,
        unit="count",
    )
    headed = _headed(context, replace(finding, windows=behind))
    yield replace(headed, severity=Severity.LOW, evidence=(*headed.evidence, reason))


def _disk_waits(context: RuleContext, server: Entity, window: Window) -> float | None:
    """How many sessions waited for a disk in a window, where so many did that whoever held a lock did too."""
    blocked = mean_of(context, "db_blocked_sessions_count", server, (window,))
    waits = means_of_parts(context, _WAITS, server, (window,))
    waiting = sum(value for entity, value in waits.items() if entity.name.startswith(_DISK_EVENTS))
    return None if blocked is None or waiting < context.limit("behind_io") * blocked else waiting


def _headed(context: RuleContext, finding: Finding) -> Finding:
    """The finding with the session at the head of the queue, where one was seen."""
    head = _head(context, finding, _BEHIND)
    return finding if head is None else replace(finding, evidence=(*finding.evidence, head))


def _head(context: RuleContext, finding: Finding, metric: str) -> Evidence | None:
    """The session of a server behind which most waited in the windows of a finding."""
    waited: dict[Entity, float] = {}
    for group, row in context.table(places_by_parent, metric).get(finding.entity, ()):
        values = group.values[row][_inside(group, finding)]
        if np.isfinite(values).any():
            waited[group.entities[row]] = float(np.nanmean(values))
    if not waited:
        return None
    entity = max(waited, key=lambda one: waited[one])
    return Evidence(
        f"{waited[entity]:.2g} of them on average wait for the session with {entity.name}",
        metric=metric,
        entity=entity,
        statistic="mean",
        value=waited[entity],
        unit="count",
    )


def _inside(group: SeriesGroup, finding: Finding) -> NDArray[np.bool_]:
    """The samples [n] of a group that lie in the windows of a finding."""
    inside = np.zeros(len(group.times_ns), dtype=bool)
    for window in finding.windows:
        inside |= (group.times_ns >= window.start_ns) & (group.times_ns <= window.end_ns)
    return inside
