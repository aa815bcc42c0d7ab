"""PostgreSQL waits before it writes each commit to the log.

Finds:
    commit_delay of 1000 us or more (low), or of 10,000 us or more (medium). Where the server's log tells that it was
    changed, the value that was in force when an incident began; its settings may have been recorded before that.

Why:
    The session that leads a group of commits sleeps for commit_delay before it flushes the log, so that others may
    join it. Every commit of the group takes that much longer. The sleep looks like a slow disk from outside: sessions
    wait for the log (LWLock:WALWrite), while the disk is idle.

Do:
    Set commit_delay = 0, or to half of what a flush takes (pg_test_fsync), and keep commit_siblings at 5 or more. A
    superuser can change it in a running server: ALTER SYSTEM SET commit_delay = 0; SELECT pg_reload_conf();

When it is wrong:
    Many sessions that commit at once on a disk whose flushes are slow gain from groups: compare the throughput with and
    without it. Fewer open transactions than commit_siblings switch the delay off.

Sources:
    PostgreSQL documentation, "WAL Configuration": commit_delay, commit_siblings; half of a flush is a good value.
    Judgement: a flush takes 1 to 2 ms on flash, so that 1 ms is a lot there; 10 ms is beyond a rotating disk's.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Blames, Layer, Severity
from leadline.estate.knowledge.database_settings import finding_of_parameters, number_of, of_engine, parameter
from leadline.rules._families.levels import looked_at
from leadline.rules._families.setting_changes import METRIC, in_force

_NAME = "commit_delay"

META = RuleMeta(
    code="DBS172",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    causes=("commit-delayed",),
    needs=(f"database.parameters|{METRIC}",),
    thresholds={
        "warn": Threshold(1000.0, "us", "Judgement: as long as a flush on flash"),
        "crit": Threshold(10_000.0, "us", "Judgement: longer than a flush of a rotating disk"),
    },
    explains=("db-log-lock-held",),
    clears=False,
    accuses=Blames.SETTING,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database server."""
    for database in of_engine(context.inventory, "postgresql"):
        change = in_force(context, database, _NAME)
        if change is None:
            value = parameter(context.inventory, database, _NAME)
            verdict = None if value is None else _judged(context, database, number_of(value))
            if value is not None and verdict is not None:
                yield finding_of_parameters(context, database, verdict, {_NAME: value})
            continue
        verdict = _judged(context, database, number_of(change.value))  # its default is none
        if verdict is not None:
            summary, severity = verdict
            windows = looked_at(context) if context.incident is not None else ()
            yield context.finding(database, summary, [change.evidence], severity=severity, windows=windows)


def _judged(context: RuleContext, database: Entity, delay_us: float) -> tuple[str, Severity] | None:
    if not delay_us >= context.limit("warn"):
        return None
    severity = Severity.MEDIUM if delay_us >= context.limit("crit") else Severity.LOW
    return f"{database.label()} delays the commits of a group by {show(delay_us / 1000.0, 'ms')}", severity
