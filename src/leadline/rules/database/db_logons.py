"""Clients connect for each piece of work instead of keeping their connections.

Finds:
    At least 20 new connections per second and at least one for every two transactions, in the incident or in all of the
    recording, and at least twice as many as in the normal time.

Why:
    Each connection of PostgreSQL starts a process, logs on and fills its caches again: milliseconds of CPU for a
    statement of a tenth of a millisecond. Hundreds of them also queue for locks inside the server.

Do:
    Put a pool between: PgBouncer in transaction mode, the pool of the application server, persistent connections. Set
    its size to what CPUs and disks can do at once, not to the number of users.

When it is wrong:
    Serverless functions cannot keep a connection; then the pool belongs before the database.

Sources:
    PostgreSQL documentation, pg_stat_database.sessions; MySQL reference, Connections.
    Judgement: 20 a second is some tenths of a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import changed, shown, throughput
from leadline.rules._families.levels import is_more, level

META = RuleMeta(
    code="DBS166",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_logons_per_s", "db_tps|db_qps"),
    uses=("db_sessions_count",),
    thresholds={
        "least": Threshold(20.0, "per_s", "Judgement: some tenths of a CPU"),
        "share": Threshold(0.5, "ratio", "Judgement: a connection for two transactions"),
        "more": Threshold(2.0, "ratio", "Judgement: beyond what the same load varies"),
    },
    explains=(
        "guest-cpu-usage-high",
        "guest-run-queue-high",
        "guest-load-average-per-core",
        "guest-cpu-system-share",
        "guest-cpu-taken",
        "db-more-work",
        "net-time-outside-server",
    ),
    clears=False,
    causes=("connections",),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database with most of them."""
    new, done = level(context, "db_logons_per_s"), level(context, "db_tps") or level(context, "db_qps")
    if new is None or done is None or new.during < context.limit("least") or not is_more(new, context.limit("more")):
        return
    if new.during >= context.limit("share") * done.during:
        summary = f"Clients connect {shown(new)} times, for {done.during:.3g} transactions per second"
        yield changed(context, new.entity, summary, (new, throughput(context), level(context, "db_sessions_count")))
