"""A transaction is open for long and runs nothing, or InnoDB keeps old versions of rows for one.

Finds:
    A session that has held its transaction open for more than 10 minutes (warning) or an hour (critical) and runs no
    statement; or a history list of InnoDB longer than 100,000 (warning) or a million (critical), with the age of the
    oldest transaction where it is known.

Why:
    The session keeps its locks: whoever needs the same rows waits for it. And the server keeps every row version that
    the transaction might still read. Vacuum or purge cannot remove them, tables grow, and each read walks through
    more versions. No disk is slow; more is read than should be.

Do:
    Find the program behind the session that is named, and make it commit, or switch its autocommit on. End the session
    when nobody needs it: SELECT pg_terminate_backend(PID), or KILL ID in MySQL. Set
    idle_in_transaction_session_timeout (PostgreSQL), idle_transaction_timeout (MariaDB) or wait_timeout (MySQL).

When it is wrong:
    A backup (pg_dump, mysqldump --single-transaction) holds a transaction open on purpose, and ends by itself.

Sources:
    PostgreSQL documentation, "Routine Vacuuming" and idle_in_transaction_session_timeout. MySQL reference manual,
    "Purge Configuration": History list length. Judgement: no client thinks for 10 minutes; a list of a million
    takes minutes to purge.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import several
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.derived.series import places_by_entity
from leadline.rules._families.changes import LONGER_TRANSACTIONS

if TYPE_CHECKING:
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity

_AGE, _HISTORY, _OLDEST = "db_idle_transaction_age_s", "db_history_list_count", "db_transaction_age_s_max"
_SHOWN_MAX = 4

META = RuleMeta(
    code="DBS183",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("lock-waits", "client-slow"),
    needs=(f"{_AGE}|{_HISTORY}",),
    uses=(_OLDEST,),
    thresholds={
        "warn": Threshold(600.0, "s", "Judgement: no client thinks for 10 minutes"),
        "crit": Threshold(3600.0, "s", "Judgement: an hour of row versions"),
        "history_warn": Threshold(1e5, "count", "Judgement: a busy server purges as many in seconds"),
        "history_crit": Threshold(1e6, "count", "MySQL reference manual, Purge Configuration: innodb_max_purge_lag"),
    },
    explains=LONGER_TRANSACTIONS,
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per server."""
    oldest: dict[Entity, list[tuple[float, Entity, SeriesGroup]]] = {}
    for group in context.of(_AGE):
        for session, values in zip(group.entities, group.values, strict=True):
            if session.parent is not None and np.isfinite(values).any():
                oldest.setdefault(session.parent, []).append((float(np.nanmax(values)), session, group))
    reported: set[Entity] = set()
    for server, sessions in oldest.items():
        late = sorted((one for one in sessions if one[0] > context.limit("warn")), key=lambda one: -one[0])
        if late:
            reported.add(server)
            yield _of_sessions(context, server, late)
    for group in context.of(_HISTORY):
        for server, values in zip(group.entities, group.values, strict=True):
            length = float(np.nanmax(values)) if np.isfinite(values).any() else 0.0
            if length > context.limit("history_warn") and server not in reported:
                yield _of_history(context, server, length)


def _of_sessions(context: RuleContext, server: Entity, late: list[tuple[float, Entity, SeriesGroup]]) -> Finding:
    """The finding of sessions that are late, oldest first."""
    age_s = late[0][0]
    evidence = [
        Evidence(
            f"{session.name} of {server.label()} has been in its transaction for {_span(age)}",
            metric=_AGE,
            entity=session,
            statistic="max",
            value=age,
            threshold=context.stated_limit("warn"),
            unit="s",
            source=context.source_name(group),
        )
        for age, session, group in late[:_SHOWN_MAX]
    ]
    if len(late) == 1:
        summary = f"A session of {server.label()} is idle in transaction: its transaction is open for {_span(age_s)}"
    else:
        summary = (
            f"{several(len(late), 'session')} of {server.label()} are idle in transaction, "
            f"the oldest transaction is open for {_span(age_s)}"
        )
    severity = Severity.HIGH if age_s > context.limit("crit") else Severity.MEDIUM
    return context.finding(server, summary, evidence, severity=severity, score=age_s / context.stated_limit("warn"))


def _of_history(context: RuleContext, server: Entity, length: float) -> Finding:
    """The finding of a history list that is long."""
    limit = context.stated_limit("history_warn")
    text = f"the history list of {server.label()} is {length:,.0f} long"
    evidence = [Evidence(text, metric=_HISTORY, entity=server, statistic="max", value=length, threshold=limit)]
    rows = (group.values[row] for group, row in context.table(places_by_entity, _OLDEST).get(server, ()))
    ages = [float(np.nanmax(row)) for row in rows if np.isfinite(row).any()]
    tail = ""
    if ages:
        evidence.append(Evidence(f"the oldest transaction is {_span(max(ages))} old", metric=_OLDEST, entity=server))
        tail = f"; the oldest transaction is {_span(max(ages))} old"
    summary = f"InnoDB of {server.label()} keeps {length:,.0f} old changes that it cannot purge{tail}"
    severity = Severity.HIGH if length > context.limit("history_crit") else Severity.MEDIUM
    return context.finding(server, summary, evidence, severity=severity, score=length / limit)


def _span(seconds: float) -> str:
    """A length of time as people say it.

    >>> _span(188484.0), _span(3700.0), _span(700.0)
    ('2.2 days', '1.0 h', '12 min')
    """
    if seconds >= 86400.0:
        return f"{seconds / 86400.0:.1f} days"
    return f"{seconds / 3600.0:.1f} h" if seconds >= 3600.0 else f"{seconds / 60.0:.0f} min"
