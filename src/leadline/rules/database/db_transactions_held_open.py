"""Sessions hold transactions open and run nothing: they wait for their clients.

Finds:
    More than one session (warning) or four (critical) that are idle in a transaction, on average, in most seconds for
    at least 5 s.

Why:
    The server has answered and waits for the client's next statement: the client thinks, is short of CPU, or is far
    away. Meanwhile the transaction keeps its locks and its snapshot: others wait for rows, and vacuum cannot clean up.

Do:
    Look where the time goes between two statements: the application's own work, its CPU, the network (round-trip time
    times statements per transaction). Move that work out of the transaction, send statements together, and set
    idle_in_transaction_session_timeout.

When it is wrong:
    An interactive session or a tool that copies may hold one transaction open without harm.

Sources:
    PostgreSQL documentation, pg_stat_activity (state "idle in transaction"), idle_in_transaction_session_timeout.
    Judgement: one such session at any time is more than a fast client leaves; four is a pool of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.changes import LONGER_TRANSACTIONS

META = RuleMeta(
    code="DBS157",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    causes=("network-latency", "client-slow"),
    needs=("db_idle_in_transaction_sessions_count",),
    thresholds={
        "warn": Threshold(1.0, "count", "Judgement: more than a fast client leaves"),
        "crit": Threshold(4.0, "count", "Judgement: a pool of them"),
        "duration": Threshold(5.0, "s", "Judgement: what a user calls a standstill"),
    },
    explains=LONGER_TRANSACTIONS,
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database server."""
    says = "{value} sessions of {where} hold a transaction open without a statement"
    spec = Over("db_idle_in_transaction_sessions_count", "sessions idle in a transaction", mostly=True, says=says)
    yield from over_threshold(context, spec)
