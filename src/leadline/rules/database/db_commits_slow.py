"""Commits take long, by the durations in the server's log.

Finds:
    More than half a session (warning) or two sessions (critical) that are in a COMMIT, on average, in most seconds for
    at least 5 s. They are counted from the begin to the end of each commit that was logged
    (log_min_duration_statement).

Why:
    A commit ends when its log record is on stable storage, and with synchronous replication when a standby has it too.
    A commit of more than some milliseconds waits for a disk's flush, for others whose records are flushed before it, or
    for the standby. Only commits beyond the limit are logged, so there are at least as many.

Do:
    Look at what the sessions wait for while it happens: pg_stat_activity, wait_event: WALSync and WALWrite are the disk
    under the log, SyncRep the standby. `leadline collect postgresql DSN` records it. Then follow the log's disk through
    the layers, or the network to the standby and its disk.

When it is wrong:
    A commit also checks deferred constraints and fires deferred triggers, which is the application's own work.

Sources:
    PostgreSQL documentation, log_min_duration_statement, "Reliability and the Write-Ahead Log", synchronous_commit.
    Judgement: half a session that commits all the time, or one that does half of it, is felt; 5 s, as a user would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

if TYPE_CHECKING:
    from leadline.core.model.capture import SeriesGroup

_SESSIONS, _DURATION = "db_logged_statement_sessions_count", "db_logged_commit_ms"

META = RuleMeta(
    code="DBS173",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("disk-slow", "flush-slow", "standby-late"),
    needs=(_SESSIONS,),
    uses=(_DURATION,),
    thresholds={
        "warn": Threshold(0.5, "count", "Judgement: a session that commits half of the time"),
        "crit": Threshold(2.0, "count", "Judgement: four times the warning"),
        "duration": Threshold(5.0, "s", "Judgement: what a user calls a standstill"),
    },
    explains=("db-component-response-time",),
    clears=False,
    is_wait=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database server."""
    durations: dict[Entity, SeriesGroup] | None = None
    for finding in over_threshold(context, Over(_SESSIONS, "sessions that commit", keep=_is_commit, mostly=True)):
        lead = finding.evidence[0]
        server = finding.entity.parent or finding.entity
        sessions = show(lead.value or 0.0, "count")
        summary = f"{sessions} sessions of {server.label()} wait for their commits, by the server's log"
        held_s = sum(window.duration_s for window in finding.windows)
        counted = replace(lead, statement=f"a median of {sessions} sessions were in a COMMIT, for {held_s:.0f} s")
        if durations is None:
            durations = {entity: group for group in context.of(_DURATION) for entity in group.entities}
        evidence = (counted, *_longest(durations.get(server), finding, server))
        yield replace(finding, entity=server, summary=summary, evidence=evidence)


def _is_commit(_: RuleContext, entity: Entity) -> bool:
    return entity.name == "COMMIT"


def _longest(group: SeriesGroup | None, finding: Finding, server: Entity) -> Iterator[Evidence]:
    """The highest mean duration of a step in the windows of a finding."""
    row = None if group is None else group.row(server)
    if group is None or row is None:
        return
    inside = np.zeros(len(row), dtype=bool)
    for window in finding.windows:
        inside |= (group.times_ns >= window.start_ns) & (group.times_ns <= window.end_ns)
    highest = float(np.nanmax(row[inside], initial=0.0))
    if highest:
        statement = f"at the worst moment commits took {show(highest, 'ms')} on average"
        yield Evidence(statement, metric=_DURATION, entity=server, statistic="max", value=highest, unit="ms")
