"""One statement takes most of the database's time, or its statements wait long for reads or commits.

Finds:
    In a snapshot of pg_stat_statements: a block takes more than 5 ms (warning) or 10 ms (critical) to be read, over at
    least 1,000 blocks; commits take more than 5 ms or 20 ms on average; and, of low severity, a statement that took
    more than half of the time of all of them.

Why:
    The view adds up since the last reset: it does not say when, but which statements the server's time went to, and how
    much of that was waiting for blocks that were not in shared_buffers (track_io_timing). A read that the operating
    system's cache answers takes less than 0.1 ms.

Do:
    Look at the statement that is named: EXPLAIN (ANALYZE, BUFFERS) shows which of its steps reads; an index or a
    narrower condition often spares the reads. Where few blocks are read and each takes long, follow the disk through
    the layers. For commits look at the disk under the log and at the standby.

When it is wrong:
    What was long ago is in the sums, too: pg_stat_statements_reset() and a second snapshot tell what is now.

Sources:
    PostgreSQL documentation, pg_stat_statements, track_io_timing. Tuning and profiling VMware virtual infrastructure
    for I/O-intensive PostgreSQL (slides): data reads below 5 to 10 ms, log writes below 5 ms.
    Judgement: 1,000 blocks; 20 ms for a commit, of which the log write is one part; half of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import share_text, show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

_SLIDES = "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)"

META = RuleMeta(
    code="DBS174",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("disk-slow", "flush-slow", "standby-late"),
    needs=("statement.time_share",),
    thresholds={
        "warn": Threshold(5.0, "ms", _SLIDES),
        "crit": Threshold(10.0, "ms", _SLIDES),
        "commit_crit": Threshold(20.0, "ms", "Judgement: the log write is one part of a commit"),
        "blocks_min": Threshold(1000.0, "count", "Judgement: a mean of few says little"),
        "time_share": Threshold(0.5, "ratio", "Judgement: more than all the others together"),
    },
    clears=False,
    is_wait=True,
)

_FACTS = ("time_share", "exec_ms_mean", "calls", "statement", "read_s", "blocks_read")
_COMMITS = frozenset({"COMMIT", "END"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per statement."""
    inventory = context.inventory
    for statement in inventory.of_kind(EntityKind.STATEMENT):
        known = {name: inventory.get(statement, name) for name in _FACTS}
        if known["time_share"] is None:
            continue
        share = Evidence(
            f"it took {share_text(known['time_share'])} of the time of all statements: "
            f"{known['calls']:,.0f} executions of {show(known['exec_ms_mean'] or 0.0, 'ms')}",
            entity=statement,
            statistic="share",
            value=known["time_share"],
            unit="ratio",
        )
        slow = _slow_reads(context, statement, known) or _slow_commits(context, statement, known)
        if slow is not None:
            summary, severity, evidence = slow
            score = 10.0 * known["time_share"]  # what most time went to comes first
            yield context.finding(statement, summary, (evidence, share), severity=severity, score=score)
        elif known["time_share"] > context.limit("time_share"):
            summary = f"{statement.name} takes {share_text(known['time_share'])} of the time of all statements"
            yield context.finding(statement, summary, (share,), severity=Severity.LOW)


def _slow_reads(
    context: RuleContext, statement: Entity, known: dict[str, Any]
) -> tuple[str, Severity, Evidence] | None:
    blocks, read_s = known["blocks_read"] or 0, known["read_s"] or 0.0
    if blocks < context.limit("blocks_min"):
        return None
    block_ms = 1000.0 * read_s / blocks
    return _over(
        context,
        f"{statement.name} waits {show(block_ms, 'ms')} for each block it reads",
        Evidence(f"{blocks:,} blocks were read in {show(read_s, 's')}", None, statement, "mean", block_ms, unit="ms"),
        "crit",
    )


def _slow_commits(
    context: RuleContext, statement: Entity, known: dict[str, Any]
) -> tuple[str, Severity, Evidence] | None:
    mean_ms = known["exec_ms_mean"]
    if known["statement"] not in _COMMITS or mean_ms is None:
        return None
    evidence = Evidence(f"a commit takes {show(mean_ms, 'ms')} on average", None, statement, "mean", mean_ms, unit="ms")
    return _over(context, f"{statement.name} takes {show(mean_ms, 'ms')}", evidence, "commit_crit")


def _over(context: RuleContext, summary: str, evidence: Evidence, crit: str) -> tuple[str, Severity, Evidence] | None:
    value = evidence.value or 0.0
    if not value > context.limit("warn"):
        return None
    return summary, Severity.HIGH if value > context.limit(crit) else Severity.MEDIUM, evidence
