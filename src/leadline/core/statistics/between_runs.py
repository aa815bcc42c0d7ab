"""How much two groups of runs differ, judged by how much runs of one kind differ among themselves.

Seconds of one run resemble each other more than seconds of another run: the page cache, the neighbours and the hour
differ from run to run. So the run is the unit: each gives one number, in which everything within it (rounds, seconds)
has been averaged, and the spread of these numbers holds all levels of variation at once.

Source: Kalibera and Jones, Rigorous Benchmarking in Reasonable Time (ISMM 2013), section 5: with runs as the highest
level, the variance of the means of runs is the variance of the overall mean. Ratios are compared as differences of
logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log, sqrt

from leadline.core.statistics.student import quantile_two_sided, two_sided_p

CONFIDENCE = 0.95
HISTORY_COUNT_MIN = 3  # Judgement: of two runs the spread is known so badly that an interval says nothing
_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Shift:
    """After less before as a share of before, its 95 % interval, and how probable so much is by chance.

    ``freedom`` are the degrees of freedom of the variation between runs; 0, and all else but ``change`` NaN, when it
    is not known. ``spread_pct`` is its standard deviation.
    """

    change: float
    low: float
    high: float
    p_value: float
    freedom: float
    spread_pct: float


def shift(
    before: Sequence[float],
    after: Sequence[float],
    history: Sequence[Sequence[float]] = (),
    resolution: float = 0.0,
) -> Shift:
    """How much the second group of runs differs from the first.

    Two or more runs on both sides: Welch's interval, which lets the sides vary by different amounts. One run on a
    side: whether it could be one more of the other side (a prediction interval), or, when that is no more than two
    runs and there are at least three like runs, whether two of those could differ so much.

    Args:
        before: one value per run, all above 0, any unit.
        after: the same, of the other side.
        history: values of like runs that are on neither side, by group of equal conditions.
        resolution: share of a value below which it cannot be told (width of a histogram's bucket).

    Source: Welch, The Generalization of "Student's" Problem (1947); Hahn and Meeker, Statistical Intervals (1991),
    section 4.7 (prediction); Sheppard's variance of rounding, resolution**2 / 12, is the least that is assumed.
    """
    first, second = [log(value) for value in before], [log(value) for value in after]
    counts = (len(first), len(second))
    difference = sum(second) / counts[1] - sum(first) / counts[0]
    floor = resolution * resolution / 12.0
    if min(counts) >= 2:
        parts = [max(_squares(side) / (len(side) - 1), floor) / len(side) for side in (first, second)]
        error = sqrt(sum(parts))
        freedom = _welch(parts, counts) if error > 0.0 else float(sum(counts) - 2)
        spread = sqrt(max((_squares(first) + _squares(second)) / (sum(counts) - 2), floor))
    else:
        groups = [side for side in (first, second) if len(side) > 1]
        known = [[log(value) for value in group] for group in history if len(group) > 1]
        if max(counts) < HISTORY_COUNT_MIN and sum(map(len, known)) >= HISTORY_COUNT_MIN:
            groups = known
        freedom = float(sum(len(group) - 1 for group in groups))
        if freedom == 0.0:
            return Shift(expm1(difference), _NAN, _NAN, _NAN, 0.0, _NAN)
        spread = sqrt(max(sum(map(_squares, groups)) / freedom, floor))
        error = spread * sqrt(1.0 / counts[0] + 1.0 / counts[1])
    away = quantile_two_sided(CONFIDENCE, freedom) * error
    p_value = two_sided_p(difference / error, freedom) if error > 0.0 else float(difference == 0.0)
    low, high = (expm1(min(difference + way * away, 700.0)) for way in (-1.0, 1.0))
    return Shift(expm1(difference), low, high, p_value, freedom, 100.0 * spread)


def _squares(values: Sequence[float]) -> float:
    middle = sum(values) / len(values)
    return sum((value - middle) ** 2 for value in values)


def _welch(parts: Sequence[float], counts: Sequence[int]) -> float:
    """Welch and Satterthwaite's degrees of freedom; ``parts`` are the squared errors of both means."""
    return sum(parts) ** 2 / sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
