"""Only reads or only writes are slow: which of the two a latency comes from, and what to do about that one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.metrics import metrics
from leadline.core.model.units import show
from leadline.estate.derived.series import mean_of

WAYS = ("reads", "writes")
TIMES_MIN = 3.0  # Judgement: a cache makes one way several times as quick as the other; less is a mix of sizes
RATE_MIN = 1.0  # per second, Judgement: the mean of fewer commands says nothing of a way


def directions_told(context: RuleContext, findings: Iterable[Finding], metric: str, limit: float) -> Iterator[Finding]:
    """Findings of a latency, those that name the way where only one is slow, with the advice for it.

    The rule's *Do* has a paragraph that starts with "Where only writes are slow", or reads; else its advice stays.

    Args:
        context: of the rule.
        findings: of a latency that was above ``limit``.
        metric: of the latency, without its direction.
        limit: the quick way is below it, ms.
    """
    for finding in findings:
        slow = slow_way(context, finding, metric, limit)
        if slow is None:
            yield finding
            continue
        way, slow_ms, quick_ms = slow
        other = WAYS[1 - WAYS.index(way)]
        statement = f"only {way} are slow: {show(slow_ms, 'ms')} on average, {other} {show(quick_ms, 'ms')}"
        evidence = Evidence(
            statement,
            metric=f"{metric}_{way[:-1]}",
            entity=finding.entity,
            statistic="mean",
            value=slow_ms,
            threshold=limit,
            unit="ms",
        )
        yield replace(
            finding,
            summary=f"{finding.summary}; {statement}",
            evidence=(*finding.evidence, evidence),
            remedy=_advice(context, way, finding.remedy),
        )


def slow_way(context: RuleContext, finding: Finding, metric: str, limit: float) -> tuple[str, float, float] | None:
    """The only slow way, its latency and that of the other, ms; None where both are slow or one was not measured."""
    latencies = []
    for way in ("read", "write"):
        name = f"{metric}_{way}"
        if name not in metrics():
            return None
        latency = mean_of(context, name, finding.entity, finding.windows)
        rate = mean_of(context, f"disk_{way}s_per_s", finding.entity, finding.windows)
        if latency is None or latency <= 0.0 or (rate is not None and rate < RATE_MIN):
            return None
        latencies.append(latency)
    quick, slow = min(latencies), max(latencies)
    if quick >= limit or slow <= limit or slow < TIMES_MIN * quick:
        return None
    return WAYS[latencies.index(slow)], slow, quick


def _advice(context: RuleContext, way: str, otherwise: str) -> str:
    advice = context.advice(f"Where only {way} are slow")
    return otherwise if advice == context.remedy else advice
