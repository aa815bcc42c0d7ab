"""Commits wait for a standby to acknowledge them.

Finds:
    More than half a session (warning) or two sessions (critical) that wait for a synchronous standby (IPC:SyncRep), on
    average, in most seconds for at least 5 s.

Why:
    With synchronous replication a commit ends when the standby has received it, written it, or applied it, as
    synchronous_commit asks. The time is that of the network to the standby and of the standby's disk. A session that
    waits so keeps its row locks, so that others queue behind it as if it were a lock's fault.

Do:
    Look at pg_stat_replication: write_lag is the network's, flush_lag less write_lag the standby's disk, replay_lag
    less flush_lag its apply. Then look at that link, or at the disk of the standby. Name a second standby
    (synchronous_standby_names = 'ANY 1 (a, b)'), or ask for less (synchronous_commit = remote_write; local where a lost
    standby may lose commits).

When it is wrong:
    A standby on another site costs its round trip at each commit: that is the price of the distance, no fault.

Sources:
    PostgreSQL documentation, "Wait Event Types" (SyncRep), "Synchronous Replication", pg_stat_replication.
    Judgement: half a session that waits all the time, or one that waits half of it, is felt; 5 s, as a user would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

META = RuleMeta(
    code="DBS171",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("standby-late", "network-latency"),
    needs=("db_wait_event_sessions_count",),
    thresholds={
        "warn": Threshold(0.5, "count", "Judgement: a session that waits half of the time"),
        "crit": Threshold(2.0, "count", "Judgement: four times the warning"),
        "duration": Threshold(5.0, "s", "Judgement: what a user calls a standstill"),
    },
    explains=("db-component-response-time", "db-lock-waits", "db-log-write-latency"),
    clears=False,
)

_EVENT = "IPC:SyncRep"


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database server."""
    spec = Over("db_wait_event_sessions_count", "sessions that wait for a standby", keep=_is_sync_rep, mostly=True)
    for finding in over_threshold(context, spec):
        lead = finding.evidence[0]
        server = finding.entity.parent or finding.entity
        waiting = show(lead.value or 0.0, "count")
        summary = f"{waiting} sessions of {server.label()} wait for a standby to acknowledge their commits (SyncRep)"
        yield replace(finding, entity=server, summary=summary)


def _is_sync_rep(_: RuleContext, entity: Entity) -> bool:
    return entity.name == _EVENT
