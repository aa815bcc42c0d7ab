"""What a sweep measured: points, a curve for each variant, and what the curve says of load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from leadline.core.model.histogram import Histogram
from leadline.core.model.run import Pooled, Run, percentiles
from leadline.core.model.sweep import OIO, Key, LoadVariant, Sweep, load_of
from leadline.core.model.workload import Workload
from leadline.core.statistics.resampling import Interval, difference_interval, mean_interval
from leadline.core.statistics.scaling import (
    GROWTH,
    Best,
    Growth,
    Untold,
    Usl,
    best_under,
    fit_usl,
    growth,
    knee,
    little_load,
    standard_error,
)

_NAN = float("nan")
_WORDS = {OIO: "outstanding I/O"}


@dataclass(frozen=True, slots=True)
class Point:
    """A measured point.

    Attributes:
        load: what was under way at once in all: outstanding I/O of all jobs, or clients.
        per_s: operations per second; its interval is NaN with too few seconds.
        mean_ms, percentiles_ms: of all operations but flushes; percentiles are absent with too few samples above.
        marks: why not to lean on it.
    """

    key: Key
    run_id: str
    load: int
    per_s: Interval
    bytes_per_s: float
    mean_ms: float
    percentiles_ms: dict[str, tuple[float, int]]
    marks: tuple[str, ...]
    seconds: tuple[tuple[float, ...], ...]

    def latency_ms(self, name: str) -> float:
        """A percentile, NaN with too few samples above it; or the ``mean``."""
        return self.mean_ms if name == "mean" else self.percentiles_ms.get(name, (_NAN, 0))[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "run": self.run_id,
            "set": self.key.load,
            "again": self.key.again,
            "load": self.load,
            "per_s": self.per_s.to_dict(),
            "bytes_per_s": self.bytes_per_s,
            "mean_ms": self.mean_ms,
            "percentiles_ms": {name: {"ms": ms, "above": above} for name, (ms, above) in self.percentiles_ms.items()},
            "marks": list(self.marks),
        }


def point_of(key: Key, run: Run) -> Point:
    """The point a run measured."""
    workload = Workload.model_validate(run.workload)
    pooled = [part for part in run.pooled() if not part.name.endswith(" sync")]
    histograms = [part.histogram for part in pooled if part.histogram is not None]
    merged = Histogram.merged(histograms) if histograms else None
    per_s = run.per_s()
    if not isfinite(per_s.mean):
        per_s = Interval(_sum([part.per_s for part in pooled]), _NAN, _NAN, _NAN, 0)
    marks = []
    if run.warm_up is None or not run.warm_up.steady:
        marks.append("no warm-up" if run.warm_up is None else "not steady")
    if per_s.too_few:
        marks.append("too few samples")
    errors = sum(result.error_count for part in run.rounds for result in part.results)
    if errors:
        marks.append(f"{errors:,} errors")
    return Point(
        key,
        run.id,
        load_of(workload),
        per_s,
        moved_per_s(pooled, per_s.mean),
        _mean_ms(pooled),
        {} if merged is None else percentiles(merged),
        tuple(marks),
        tuple(tuple(tick.per_s for tick in part.ticks) for part in run.rounds),
    )


def moved_per_s(pooled: Sequence[Pooled], per_s: float) -> float:
    """Return the bytes per second that go with a rate: the mean size of an operation times ``per_s``.

    The tool counts over all its time, the rate is of the seconds judged: only of one of both do rate times size agree.
    """
    counted = _sum([part.per_s for part in pooled if isfinite(part.bytes_per_s)])
    moved = _sum([part.bytes_per_s for part in pooled])
    return moved / counted * per_s if counted > 0.0 else moved


def _sum(values: Sequence[float]) -> float:
    known = [value for value in values if isfinite(value)]
    return float(sum(known)) if known else _NAN


def _mean_ms(pooled: Sequence[Pooled]) -> float:
    known = [(part.mean_ms, part.count) for part in pooled if isfinite(part.mean_ms) and part.count > 0]
    return float(np.average([ms for ms, _ in known], weights=[count for _, count in known])) if known else _NAN


@dataclass(frozen=True, slots=True)
class Levelled:
    """Where the rate had stopped growing: from ``start``, seen at ``end``.

    Attributes:
        rate: over the points from there on.
        falls: the rate is surely lower at the end than at the start.
    """

    start: Point
    end: Point
    rate: Interval
    falls: bool


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """A variant at all its loads, points ascending; `points` has none that was measured again."""

    variant: LoadVariant
    points: tuple[Point, ...]
    again: tuple[Point, ...]
    axis: str
    percentile: str
    levelled: Levelled | None
    knee: Point | None
    usl: Usl | Untold
    best: Best | None
    target_ms: float | None
    drift: tuple[float, float, float] | None

    @property
    def little(self) -> float:
        """Load at which Little's law lets the plateau begin; NaN when there is none."""
        times = [point.mean_ms for point in self.points if isfinite(point.mean_ms)]
        return little_load(self.levelled.rate.mean, times[0]) if self.levelled is not None and times else _NAN

    def sentences(self) -> list[str]:
        """Describe growth, knee, scalability law, best point and drift in sentences."""
        sentences = [_growth_sentence(self), *_knee_sentences(self), *_usl_sentences(self)]
        if self.target_ms is not None:
            sentences.append(_best_sentence(self, self.target_ms))
        if self.drift is not None:
            sentences.append(_drift_sentence(*self.drift))
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        levelled = self.levelled
        usl = {"untold": [self.usl.reason]} if isinstance(self.usl, Untold) else self.usl.to_dict()
        return {
            "variant": {name: getattr(self.variant, name) for name in LoadVariant.__dataclass_fields__},
            "points": [point.to_dict() for point in (*self.points, *self.again)],
            "levelled": None
            if levelled is None
            else {
                "from": levelled.start.load,
                "seen_at": levelled.end.load,
                "per_s": levelled.rate.to_dict(),
                "falls": levelled.falls,
            },
            "knee": None if self.knee is None else self.knee.load,
            "little_load": self.little,
            "usl": usl,
            "best": None if self.best is None else self.best.to_dict(),
            "drift": None if self.drift is None else dict(zip(("change", "low", "high"), self.drift, strict=True)),
            "sentences": self.sentences(),
        }


def curve_of(sweep: Sweep, index: int, points: Sequence[Point]) -> LoadCurve:
    """The curve of a variant, of its points in any order."""
    first = tuple(sorted((p for p in points if not p.key.again), key=lambda point: point.load))
    again = tuple(point for point in points if point.key.again)
    rates = [point.per_s.mean for point in first]
    means = [point.mean_ms for point in first]
    at = knee(rates, means)
    all_points = [*first, *again]
    errors = [standard_error(point.per_s.low, point.per_s.high) for point in all_points]
    best = None
    if sweep.target_ms is not None:
        times = [point.latency_ms(sweep.percentile) for point in first]
        best = best_under([point.load for point in first], rates, times, sweep.target_ms)
    return LoadCurve(
        sweep.variants[index],
        first,
        again,
        sweep.axis,
        sweep.percentile,
        levelled_off(first, sweep.seed),
        None if at is None else first[at],
        fit_usl([point.load for point in all_points], [point.per_s.mean for point in all_points], errors, sweep.seed),
        best,
        sweep.target_ms,
        _drift(first, again, sweep.seed),
    )


def levelled_off(points: Sequence[Point], seed: int) -> Levelled | None:
    """Where the rate stopped growing, None while it grows or cannot be told.

    A step ended the growth when the interval of its gain over the highest point before excludes growth; at a point that
    was not steady the next one must say so too. ``points`` ascend in load.
    """
    best: Point | None = None
    seen: list[Point] = []
    for point in points:
        if best is not None and growth(best.seconds, point.seconds, seed) is Growth.ENDED:
            seen.append(point)
        else:
            seen = []
            best = point if best is None or point.per_s.mean > best.per_s.mean else best
    if best is None or not seen or (len(seen) == 1 and "not steady" in seen[0].marks):
        return None
    plateau = [point for point in points if point.load >= best.load]
    change, _, high = difference_interval(best.seconds, seen[-1].seconds, seed)
    falls = change < -GROWTH and high < 0.0
    rounds = [list(part) for point in ([best] if falls else plateau) for part in point.seconds]
    return Levelled(best, seen[-1], mean_interval(rounds, seed), falls)


def _drift(first: Sequence[Point], again: Sequence[Point], seed: int) -> tuple[float, float, float] | None:
    for late in again:
        early = next((point for point in first if point.load == late.load), None)
        if early is not None:
            return difference_interval(early.seconds, late.seconds, seed)
    return None


def load_words(curve: LoadCurve, load: float) -> str:
    """A load with what it counts."""
    word = _WORDS.get(curve.axis, curve.axis)
    number = f"{load:,.0f}" if load >= 10 or load == round(load) else f"{load:.1f}"
    return f"{number} {word}" if word.endswith("I/O") or load != 1 else f"{number} {word.removesuffix('s')}"


def between(interval: Interval) -> str:
    """Return the bounds of an interval in words, or that there were too few samples for one."""
    return "too few samples for an interval" if interval.too_few else f"{interval.low:,.0f} to {interval.high:,.0f}"


def _drift_sentence(change: float, low: float, high: float) -> str:
    if not isfinite(low):
        return "Whether the system changed meanwhile cannot be told: too few samples."
    text = f"{100 * change:+.1f} % ({100 * low:+.1f} to {100 * high:+.1f} %)"
    if low > GROWTH or high < -GROWTH:
        return (
            f"The system changed meanwhile: the lowest load, measured again at the end, gave {text}. Loads measured "
            "late do not compare with early ones."
        )
    return f"The lowest load, measured again at the end, gave {text}."


def _growth_sentence(curve: LoadCurve) -> str:
    levelled = curve.levelled
    if levelled is None:
        last = curve.points[-1]
        if any(point.per_s.too_few for point in curve.points):
            return "Too few samples to tell where operations stop growing; measure longer."
        return f"Operations still grew at {load_words(curve, last.load)}: the limit was not reached."
    if levelled.falls:
        return (
            f"Operations peaked at {load_words(curve, levelled.start.load)}, "
            f"{levelled.rate.mean:,.0f}/s ({between(levelled.rate)}), "
            f"and fell to {levelled.end.per_s.mean:,.0f}/s at {load_words(curve, levelled.end.load)}."
        )
    return (
        f"Operations stopped growing at {load_words(curve, levelled.start.load)}: "
        f"{levelled.rate.mean:,.0f}/s from there on ({between(levelled.rate)}); "
        f"{load_words(curve, levelled.end.load)} gave less than {100 * GROWTH:.0f} % more."
    )


def _knee_sentences(curve: LoadCurve) -> list[str]:
    if curve.knee is None:
        return ["No knee: no latency was measured."]
    knee_point = curve.knee
    if knee_point is curve.points[0]:
        return [
            f"Knee not found: it is at or below the lowest load tried, {load_words(curve, knee_point.load)}. "
            "Try lower loads."
        ]
    text = (
        f"Knee at {load_words(curve, knee_point.load)}: {knee_point.per_s.mean:,.0f}/s at "
        f"{knee_point.mean_ms:.3g} ms on average, the most operations for their latency (Kleinrock's power)."
    )
    if knee_point is curve.points[-1]:
        text += " It is the highest load measured, so the true knee may lie beyond."
    sentences = [text]
    if isfinite(curve.little):
        sentences.append(
            f"By Little's law {load_words(curve, curve.little)} are enough for that rate at the lowest load's latency; "
            "more only wait."
        )
    return sentences


def _usl_sentences(curve: LoadCurve) -> list[str]:
    law = curve.usl
    if isinstance(law, Untold):
        return [f"Universal scalability law: cannot be told ({law.reason})."]
    sentences = [
        f"Universal scalability law: λ {_estimate(law.rate_of_one, ',.0f')}/s, σ {_estimate(law.contention, '.3f')}, "
        f"κ {_estimate(law.coherency, '.2g')}; R² {law.r_squared:.3f}."
    ]
    worst = int(np.argmax(np.abs(law.deviations)))
    if not law.describes:
        load = [*curve.points, *curve.again][worst].load
        return [
            *sentences,
            f"It does not describe these points: at {load_words(curve, load)} it is "
            f"{abs(100 * law.deviations[worst]):.0f} % off, as beside a hard limit or in much noise. Its parameters "
            "and a peak mean nothing here.",
        ]
    if law.peak_load is None:
        return [*sentences, *(f"These points do not tell {text}." for text in law.untold)]
    peak = law.peak_load
    beyond = f", beyond what was measured (up to {law.load_max:,.0f})" if peak.value > law.load_max else ""
    upper = f"{peak.high:,.0f}" if isfinite(peak.high) else "any load"
    at = f"{load_words(curve, round(peak.value))} ({peak.low:,.0f} to {upper})"
    text = f"Its peak: {law.peak_per_s:,.0f}/s at {at}{beyond}."
    return [*sentences, text]


def _estimate(estimate: Any, form: str) -> str:  # noqa: ANN401 - an Estimate
    return f"{estimate.value:{form}} ({estimate.low:{form}} to {estimate.high:{form}})"


def _best_sentence(curve: LoadCurve, target_ms: float) -> str:
    best, name = curve.best, curve.percentile
    word = "mean" if name == "mean" else name
    if best is None or all(not isfinite(point.latency_ms(name)) for point in curve.points):
        return f"Load under {word} {target_ms:g} ms: cannot be told, {word} was not measured at any load."
    if best.load is None:
        return f"No load at which {word} was measured keeps it within {target_ms:g} ms."
    how = "interpolated between measured loads" if best.interpolated else "measured"
    text = (
        f"Best load with {word} within {target_ms:g} ms: {load_words(curve, best.load)}, {best.per_s:,.0f}/s at "
        f"{best.latency_ms:.3g} ms ({how})."
    )
    if best.all_kept:
        return f"{text} Every measured load keeps it."
    return text if best.load == best.load_max else f"{text} Up to {best.load_max} keep it, for no more operations."
