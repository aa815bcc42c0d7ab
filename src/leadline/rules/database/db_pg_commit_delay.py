"""PostgreSQL waits before it writes each commit to the log.

Finds:
    commit_delay of 1000 us or more (low), or of 10,000 us or more (medium).

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
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.database_settings import by_parameter, number_of

META = RuleMeta(
    code="DBS172",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    causes=("commit-delayed",),
    needs=("database.parameters",),
    thresholds={
        "warn": Threshold(1000.0, "us", "Judgement: as long as a flush on flash"),
        "crit": Threshold(10_000.0, "us", "Judgement: longer than a flush of a rotating disk"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database server."""

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        delay_us = number_of(value)
        if not delay_us >= context.limit("warn"):
            return None
        severity = Severity.MEDIUM if delay_us >= context.limit("crit") else Severity.LOW
        return f"{database.label()} delays the commits of a group by {show(delay_us / 1000.0, 'ms')}", severity

    yield from by_parameter(context, "postgresql", "commit_delay", judge)
