"""The time of transactions passes outside the server: on the way to the clients, or in them.

Finds:
    Transactions under way as the client sees them (transactions per second x the time each takes, the wait for its
    scheduled start left out) of at least one, of which less than a fifth are sessions that run a statement in the
    server.

Why:
    By Little's law as many transactions are under way as come in per second times how long each takes. When the server
    works on hardly any of them, the others are between it and its clients: messages on their way, a link that
    is full, or a client that is slow to ask and to take its answers.

Do:
    Measure the way: ping and `ss -ti` (rtt, retrans) from the application's machine, `sar -n DEV,EDEV,ETCP 1` on
    both ends, iperf3 between them. If the way is quick, look at the client: its CPU, its limits, what it does
    between two statements.

When it is wrong:
    Sessions were sampled on another server than the one that was measured.

Sources:
    Little's law; PostgreSQL documentation, pg_stat_activity.state.
    Judgement: a fifth leaves room for sampling and for the ends of statements.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import share_text
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import changed
from leadline.rules._families.levels import is_more, level, level_of

META = RuleMeta(
    code="NET145",
    layer=Layer.NETWORK,
    severity=Severity.HIGH,
    needs=("db_latency_ms", "db_tps", "db_active_sessions_count"),
    uses=("db_schedule_lag_ms", "db_idle_in_transaction_sessions_count", "db_sessions_count", "net_tx_mbit_per_s"),
    thresholds={
        "under_way": Threshold(1.0, "count", "Judgement: with less than one nobody waits"),
        "inside": Threshold(0.2, "ratio", "Judgement: room for sampling and for the ends of statements"),
        "connected": Threshold(1.5, "ratio", "Judgement: more than there are connections is an error of means"),
        "slower": Threshold(2.0, "ratio", "Judgement: beyond what the same load varies"),
        "least": Threshold(5.0, "ms", "Judgement: less nobody feels"),
    },
    explains=("db-transactions-held-open", "net-client-server-wait", "db-more-work"),
    clears=False,
    causes=("network-latency", "network-loss", "network-narrow", "client-slow"),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database."""
    took, active = level(context, "db_latency_ms"), level(context, "db_active_sessions_count")
    if took is None or active is None or not is_more(took, context.limit("slower")):
        return
    done, lag = (level_of(context, name, took.entity) for name in ("db_tps", "db_schedule_lag_ms"))
    if done is None:
        return
    service_ms = took.during - (0.0 if lag is None else lag.during)
    under_way = done.during * service_ms / 1000.0
    if service_ms < context.limit("least") or under_way < context.limit("under_way"):
        return
    connected = level(context, "db_sessions_count")
    if connected is not None and under_way > context.limit("connected") * connected.during:
        return
    if active.during >= context.limit("inside") * under_way:
        return
    share = 1.0 - active.during / under_way
    part = share_text(share)
    summary = f"{part} of a transaction's {service_ms:.3g} ms pass outside the server, on the way or in its clients"
    idle, sent = level(context, "db_idle_in_transaction_sessions_count"), level(context, "net_tx_mbit_per_s")
    finding = changed(context, active.entity, summary, (took, done, active, idle, sent))
    counted = Evidence(
        f"{done.during:.3g}/s x {service_ms:.3g} ms = {under_way:.2g} transactions under way;"
        f" {active.during:.2g} sessions run a statement in the server"
    )
    yield context.finding(
        finding.entity, summary, [counted, *finding.evidence], windows=finding.windows, score=10.0 * share
    )
