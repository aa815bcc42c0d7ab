"""Rules that compare an incident with its normal: how a change is told, and what several of them look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isnan, log2
from typing import TYPE_CHECKING

from leadline.core.model.finding import Evidence
from leadline.core.model.metrics import metric
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind
from leadline.rules._families.levels import looked_at

if TYPE_CHECKING:
    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Finding
    from leadline.core.model.incident import Change
    from leadline.core.model.vocabulary import Severity

THROUGHPUT = ("db_tps", "db_qps")
LATENCY = ("db_latency_ms", "db_latency_ms_p95")
CPU = ("guest_cpu_busy_pct", "guest_cpu_user_pct", "guest_cpu_system_pct")
CROWD_RATIO = 2.0  # Judgement: of connected sessions; parallel workers may be half of them
RATIO_MAX = 1e4  # what was nothing before has no ratio; this stands for it
# A transaction that takes longer holds its locks longer and its session runs longer, whatever made it slow.
LONGER_TRANSACTIONS = ("db-lock-waits",)


def ratio(change: Change | None) -> float:
    """How many times as much it was inside; 1 where it was not recorded, at most `RATIO_MAX`."""
    return 1.0 if change is None or isnan(change.normal) else min(change.ratio, RATIO_MAX)


def throughput(context: RuleContext) -> Change | None:
    """The change of the transactions, or where they were not recorded of the queries, that ended in a second."""
    changes = (context.change(name) for name in THROUGHPUT)
    return next((change for change in changes if change is not None), None)


def asked_for(context: RuleContext) -> Change | None:
    """The change of what clients asked for: what they measured themselves, where no others came in meanwhile.

    A server counts the work of its parallel workers as transactions too.
    """
    connected = context.change("db_sessions_count")
    if connected is None or ratio(connected) < CROWD_RATIO:
        clients = {change.entity for name in LATENCY for change in context.changes(name)}
        measured = (change for name in THROUGHPUT for change in context.changes(name) if change.entity in clients)
        by_clients = max(measured, key=lambda change: max(change.normal, change.during), default=None)
        if by_clients is not None:
            return by_clients
    return throughput(context)


def cpu_used(context: RuleContext) -> Change | None:
    """The change of what the guest's CPUs ran, in per cent of all of them."""
    busy = context.change("guest_cpu_busy_pct", EntityKind.GUEST)
    if busy is not None:
        return busy
    user = context.change("guest_cpu_user_pct", EntityKind.GUEST)
    system = context.change("guest_cpu_system_pct", EntityKind.GUEST)
    if user is None or system is None:
        return user
    return replace(
        user, metric="guest_cpu_busy_pct", normal=user.normal + system.normal, during=user.during + system.during
    )


def changed(
    context: RuleContext,
    entity: Entity,
    summary: str,
    changes: Iterable[Change | None],
    *,
    severity: Severity | None = None,
) -> Finding:
    """A finding over the incident, or all of a recording, with a line of evidence for each change.

    The first change's size is its score.
    """
    known = [change for change in changes if change is not None]
    return context.finding(
        entity,
        summary,
        [evidence(change) for change in known],
        severity=severity,
        windows=looked_at(context),
        score=abs(log2(max(ratio(known[0]), 1.0 / RATIO_MAX))) if known else 1.0,
    )


def evidence(change: Change) -> Evidence:
    """What changed, from what it was to what it became."""
    if isnan(change.normal):
        statement = f"{name(change)}: {show(change.during, change.unit)}"
        return Evidence(statement, change.metric, change.entity, "mean", change.during, unit=change.unit)
    times = ratio(change)
    size = "" if times >= RATIO_MAX or not times else f", {times:.3g} times"
    return Evidence(
        f"{name(change)} went from {change}{size}",
        metric=change.metric,
        entity=change.entity,
        statistic="mean or median in the incident",
        value=change.during,
        unit=change.unit,
        normal=change.normal,
    )


def name(change: Change) -> str:
    """What a metric is called in a sentence: its meaning up to the first comma or bracket."""
    return metric(change.metric).meaning.split(",")[0].split(" (")[0]


def shown(change: Change) -> str:
    """A change in a summary: 56 to 165; the level alone where there is nothing to compare with."""
    if isnan(change.normal):
        return show(change.during, change.unit)
    return f"{show(change.normal, change.unit)} to {show(change.during, change.unit)}"
