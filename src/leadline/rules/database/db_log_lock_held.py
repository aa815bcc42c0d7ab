"""Sessions wait for their turn to write the log, while whoever has the turn does not write.

Finds:
    Sessions of PostgreSQL that wait for the lock of the log (LWLock:WALWrite): 1 at once (warning) or 4 (critical) for
    at least 5 s, while in less than 0.3 of the time a session or a background process writes or syncs the log (wait
    events IO:WALWrite, IO:WALSync, IO:WALInitWrite, IO:WALInitSync).

Why:
    One session writes the log for all that commit at that moment; the others wait for its lock. With a slow disk it is
    seen in IO:WALSync nearly always. Where it is not, it holds the lock without a request to the disk: it sleeps for
    commit_delay, or it gets no processor.

Do:
    SHOW commit_delay; it should be 0, or half of what a flush takes (pg_test_fsync). Where it is 0, look at the
    processors: run queue, steal and ready time, a CPU quota of the server.

When it is wrong:
    wal_sync_method = open_sync or open_datasync syncs while it writes, and some old versions have no wait event for
    that. Samples taken every 10 s or less often may miss short syncs.

Sources:
    PostgreSQL documentation, "The Cumulative Statistics System", wait events WALWrite, WALSync; "WAL Configuration",
    commit_delay.
    Judgement: a log that is waited for is written nearly all of the time; three tenths leaves room for samples that
    missed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.series import mean_of
from leadline.estate.language.templates import Over, over_threshold

_OF_SESSIONS, _OF_BACKGROUND = "db_wait_event_sessions_count", "db_background_wait_event_sessions_count"
# Until PostgreSQL 12 locks were named WALWriteLock.
_LOCK = frozenset({"LWLock:WALWrite", "LWLock:WALWriteLock"})
_WRITING = frozenset({"IO:WALWrite", "IO:WALSync", "IO:WALInitWrite", "IO:WALInitSync"})

META = RuleMeta(
    code="DBS190",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("commit-delayed",),
    needs=(_OF_SESSIONS,),
    uses=(_OF_BACKGROUND,),
    thresholds={
        "warn": Threshold(1.0, "count", "Judgement: a session that waits all of the time"),
        "crit": Threshold(4.0, "count", "Judgement: four times the warning"),
        "writing": Threshold(0.3, "count", "Judgement: a log that is waited for is written nearly all of the time"),
        "duration": Threshold(5.0, "s", "Judgement: what a user calls a standstill"),
    },
    explains=("db-component-response-time", "db-lock-waits", "db-log-write-latency", "db-commits-slow"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database server."""
    spec = Over(_OF_SESSIONS, "sessions that wait for the lock of the log", keep=_is_lock, mostly=True)
    for finding in over_threshold(context, spec):
        server = finding.entity.parent or finding.entity
        writing = _writing(context, server, finding.windows)
        if writing > context.limit("writing"):
            continue
        waiting = show(finding.evidence[0].value or 0.0, "count")
        share = show(100.0 * writing, "pct")
        summary = (
            f"{waiting} sessions of {server.label()} wait for their turn to write the log, which is written or synced "
            f"in {share} of the time"
        )
        little = Evidence(
            f"sessions and background processes in IO:WALWrite or IO:WALSync: {show(writing, 'count')} at once",
            metric=_OF_SESSIONS,
            entity=server,
            statistic="mean",
            value=writing,
            unit="count",
        )
        yield replace(finding, entity=server, summary=summary, evidence=(*finding.evidence, little))


def _is_lock(_: RuleContext, entity: Entity) -> bool:
    return entity.name in _LOCK


def _writing(context: RuleContext, server: Entity, windows: tuple[Window, ...]) -> float:
    """How many sessions and background processes of a server wrote or synced its log at once; 0 where none was seen."""
    events = [Entity(EntityKind.DATABASE, name, server) for name in _WRITING]
    return sum(
        mean
        for metric in (_OF_SESSIONS, _OF_BACKGROUND)
        for event in events
        if (mean := mean_of(context, metric, event, windows)) is not None
    )
