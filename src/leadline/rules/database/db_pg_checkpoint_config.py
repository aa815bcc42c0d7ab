"""PostgreSQL's checkpoints come in bursts.

Finds:
    More checkpoints requested (by the growth of the log) than timed over the recording, at least three of them; or
    checkpoint_completion_target below 0.9.

Why:
    A checkpoint writes every dirty page. Requested checkpoints follow each other as fast as the log fills
    max_wal_size, each starts with full page images that fill the log faster still, and a low completion target
    squeezes the writes into a part of the time: reads and commits wait behind them.

Do:
    Raise max_wal_size until checkpoints are started by checkpoint_timeout (15 to 30 minutes on a busy server), and set
    checkpoint_completion_target = 0.9. Both are read on reload. Recovery after a crash takes longer in return.

When it is wrong:
    A bulk load or a backup asks for checkpoints by command. A recording of a few minutes says little about a
    checkpoint_timeout of half an hour.

Sources:
    PostgreSQL documentation, "WAL Configuration", pg_stat_checkpointer; 0.9 is the default since version 14.
    Judgement: three checkpoints, so that one by command is not taken for a habit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.arithmetic.episodes import sample_bounds
from leadline.estate.knowledge.database_settings import by_parameter, number_of, parameter, shown

META = RuleMeta(
    code="DBS111",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    causes=("checkpoints",),
    needs=("database.parameters|db_checkpoints_requested_per_s",),
    uses=("db_checkpoints_timed_per_s",),
    thresholds={
        "completion_target": Threshold(0.9, "ratio", "PostgreSQL documentation: the default since version 14"),
        "requested_min": Threshold(3.0, "count", "Judgement: one or two may be by command"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per server: checkpoints that were counted come first, the setting is added as evidence."""
    squeezed = {finding.entity: finding for finding in _squeezed(context)}
    for finding in _requested(context):
        squeeze = squeezed.pop(finding.entity, None)
        yield finding if squeeze is None else replace(finding, evidence=(*finding.evidence, *squeeze.evidence))
    yield from squeezed.values()


def _squeezed(context: RuleContext) -> Iterator[Finding]:
    limit = context.limit("completion_target")

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        if not number_of(value) < limit:
            return None
        summary = f"{database.label()} writes each checkpoint within {shown(value)} of its time (limit {limit:g})"
        return summary, META.severity

    yield from by_parameter(context, "postgresql", "checkpoint_completion_target", judge)


def _requested(context: RuleContext) -> Iterator[Finding]:
    for group in context.of("db_checkpoints_requested_per_s"):
        timed = context.aligned(group, "db_checkpoints_timed_per_s")
        if timed is None:
            continue
        starts, ends = sample_bounds(group)
        lengths = (ends - starts) / 1e9
        for row, database in enumerate(group.entities):
            known = np.isfinite(group.values[row]) & np.isfinite(timed[row])
            by_log = float(np.round((group.values[row] * lengths)[known].sum(), 3))
            by_time = float(np.round((timed[row] * lengths)[known].sum(), 3))
            if by_log < context.limit("requested_min") or by_log <= by_time:
                continue
            values = [
                Evidence(
                    f"{by_log:.0f} checkpoints were requested and {by_time:.0f} came in their time",
                    metric="db_checkpoints_requested_per_s",
                    entity=database,
                    statistic="sum",
                    value=by_log,
                    threshold=by_time,
                    unit="count",
                    source=context.source_name(group),
                )
            ]
            size = parameter(context.inventory, database, "max_wal_size")
            if size is not None:
                values.append(Evidence(f"max_wal_size is {shown(size)}", entity=database))
            summary = f"{by_log:.0f} of {by_log + by_time:.0f} checkpoints of {database.label()} were forced by its log"
            span = np.flatnonzero(known)
            window = Window(int(starts[span[0]]), int(ends[span[-1]]))
            yield context.finding(database, summary, values, windows=[window], score=by_log / max(by_time, 1.0))
