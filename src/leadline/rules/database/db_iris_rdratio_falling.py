"""IRIS's cache holds less and less of what is used.

Finds:
    Between the first and the last third of a recording of half an hour or more: logical reads per physical read fall by
    more than 15 % while physical reads rise by more than 20 % (medians).

Why:
    More work alone raises both kinds of reads and leaves their ratio. When the ratio falls while the disk reads more,
    blocks are evicted before they are used again: the working set has outgrown the global buffers.

Do:
    Give globals more memory and compare the same hours again; on a VM raise memory and its reservation together. Look
    first for a scan (a report, an integrity check, a missing index) that flushes the cache.

When it is wrong:
    A different mix of work in the last third, such as a night's reports after a day's transactions, gives the same
    picture. A cache that was just started warms up and shows the opposite.

Sources:
    yaspe documentation (IRIS KPI reference): Rdratio down by 15 % while PhyRds up by 20 %.
    Judgement: thirds of half an hour at least.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import NS_PER_S, SeriesGroup
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.arithmetic.episodes import sample_bounds

_YASPE = "yaspe documentation (IRIS KPI reference)"

META = RuleMeta(
    code="DBS154",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    causes=("cold-cache",),
    needs=("db_iris_physical_reads_per_s", "db_iris_read_ratio|db_iris_glorefs_per_s"),
    thresholds={
        "ratio_fall": Threshold(15.0, "pct", _YASPE),
        "reads_rise": Threshold(20.0, "pct", _YASPE),
        "length_min": Threshold(1800.0, "s", "Judgement: shorter thirds compare minutes, not load"),
    },
    clears=False,
)

_SAMPLES_MIN = 5  # per third, for a median to say anything

Pair = tuple[float, float]


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per instance."""
    for group in context.of("db_iris_physical_reads_per_s"):
        ratios = _ratios(context, group)
        starts, ends = sample_bounds(group)
        if ratios is None or (ends[-1] - starts[0]) / NS_PER_S < context.limit("length_min"):
            continue
        third = (ends[-1] - starts[0]) // 3
        first, last = ends <= starts[0] + third, starts >= ends[-1] - third
        for row in range(len(group.entities)):
            reads = _medians(group.values[row], first, last)
            ratio = _medians(ratios[row], first, last)
            fall, rise = 100.0 - _pct(ratio), _pct(reads) - 100.0
            if fall > context.limit("ratio_fall") and rise > context.limit("reads_rise"):
                window = Window(int(starts[last][0]), int(ends[-1]))
                yield _finding(context, (group, row), (ratio, reads), window)


def _finding(
    context: RuleContext, series: tuple[SeriesGroup, int], medians: tuple[Pair, Pair], window: Window
) -> Finding:
    group, row = series
    database = group.entities[row]
    rows = (
        ("db_iris_read_ratio", "logical reads per physical read", "ratio", medians[0]),
        ("db_iris_physical_reads_per_s", "physical reads", "per_s", medians[1]),
    )
    evidence = [
        Evidence(
            f"{noun}: {show(one, unit)} in the first third, {show(other, unit)} in the last",
            metric=metric,
            entity=database,
            statistic="median",
            value=other,
            threshold=one,
            unit=unit,
            source=context.source_name(group),
        )
        for metric, noun, unit, (one, other) in rows
    ]
    fall, rise = 100.0 - _pct(medians[0]), _pct(medians[1]) - 100.0
    summary = f"The cache of {database.label()} answers {fall:.0f} % less per physical read, at {rise:.0f} % more reads"
    return context.finding(database, summary, evidence, windows=[window], score=fall / context.limit("ratio_fall"))


def _ratios(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]] | None:
    """Logical reads per physical read [k, n]: as recorded, else from global references; NaN where nothing was read."""
    recorded = context.aligned(group, "db_iris_read_ratio")
    if recorded is not None:
        return recorded
    references = context.aligned(group, "db_iris_glorefs_per_s")
    if references is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(group.values > 0, references / group.values, np.nan)


def _medians(values: NDArray[np.floating[Any]], first: NDArray[np.bool_], last: NDArray[np.bool_]) -> Pair:
    """Medians [n] of both thirds; NaN where too little was measured."""
    thirds = [values[mask & np.isfinite(values)] for mask in (first, last)]
    one, other = (float(np.median(part)) if len(part) >= _SAMPLES_MIN else float("nan") for part in thirds)
    return one, other


def _pct(pair: Pair) -> float:
    """The second of the first, in percent; NaN where the first is not above zero."""
    return 100.0 * pair[1] / pair[0] if pair[0] > 0 else float("nan")
