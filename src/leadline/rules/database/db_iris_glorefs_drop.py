"""IRIS all but stops working while it was busy a moment ago.

Finds:
    Global references below 5 % of their mean over the recording for at least 30 s, right after five minutes in which
    they were at half of that mean or more. A slow decline into the evening is none.

Why:
    Users do not all stop at once. References collapse when something blocks everyone: a full journal, the end of a
    write cycle that does not come, a lock at the root, a VM that stands still for its snapshot.

Do:
    Look at the same minutes: blocked processes and I/O wait in the guest, the write daemon's queue and cycle, latency
    of the journal's disk, snapshots and backups, messages of the instance's log.

When it is wrong:
    A batch job that ends, a switch to the other mirror member, or a load test with pauses looks the same.

Sources:
    yaspe documentation (IRIS KPI reference): below 5 % of the mean for three samples or more.
    Judgement: 30 s are three samples of the usual 10 s; five busy minutes before stand for "in business hours".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import NS_PER_S, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.arithmetic.episodes import Episode, find_episodes
from leadline.estate.arithmetic.timeline import window_mean

META = RuleMeta(
    code="DBS153",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_iris_glorefs_per_s",),
    thresholds={
        "warn": Threshold(5.0, "pct", "yaspe documentation (IRIS KPI reference)"),
        "busy_before": Threshold(50.0, "pct", "Judgement: at work, not on the way into the evening"),
        "before": Threshold(300.0, "s", "Judgement: long enough to be the usual load"),
        "load_min": Threshold(100.0, "per_s", "Judgement: below it the instance was hardly used at all"),
        "duration": Threshold(30.0, "s", "yaspe documentation: three samples, of 10 s each"),
    },
    explains=("db-component-response-time",),
    clears=False,
)

_NAMED_COUNT_MAX = 4


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per instance with all its collapses."""
    for group in context.of("db_iris_glorefs_per_s"):
        for row, database in enumerate(group.entities):
            one = group.take([row])
            known = one.values[np.isfinite(one.values)]
            mean = float(known.mean()) if known.size else 0.0
            if mean >= context.limit("load_min"):
                collapses = list(_collapses(context, one, mean))
                if collapses:
                    yield _finding(context, database, collapses, mean)


def _collapses(context: RuleContext, one: SeriesGroup, mean: float) -> Iterator[Episode]:
    with np.errstate(invalid="ignore"):
        met = one.values < context.limit("warn") / 100.0 * mean
    for episode in find_episodes(one, met, one.values, context.limit("duration")):
        start = episode.window.start_ns
        begin = start - round(context.limit("before") * NS_PER_S)
        before = window_mean(one, np.array([begin], dtype=np.int64), np.array([start], dtype=np.int64))[0, 0]
        if before >= context.limit("busy_before") / 100.0 * mean:  # False where it was not measured
            yield episode


def _finding(context: RuleContext, database: Entity, collapses: list[Episode], mean: float) -> Finding:
    evidence = [
        Evidence(
            f"{show(e.median, 'per_s')} for {e.held_s:.0f} s, {show(mean, 'per_s')} on average of the recording",
            metric="db_iris_glorefs_per_s",
            entity=database,
            statistic="median",
            value=e.median,
            threshold=context.limit("warn") / 100.0 * mean,
            unit="per_s",
            source=context.source_name(e.group),
        )
        for e in collapses[:_NAMED_COUNT_MAX]
    ]
    if len(collapses) > _NAMED_COUNT_MAX:
        evidence.append(Evidence(f"and {len(collapses) - _NAMED_COUNT_MAX} more times"))
    times = "once" if len(collapses) == 1 else f"{len(collapses)} times"
    summary = f"Global references of {database.label()} collapsed {times}, to {show(collapses[0].median, 'per_s')}"
    return context.finding(database, summary, evidence, windows=[e.window for e in collapses])
