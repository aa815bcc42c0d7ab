"""Two systems by how many instances fit and what they do: the change, how sure it is, and what was not alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from leadline.app.density.model import CountLevel, CountState
from leadline.app.density.steps import FitRange, counted
from leadline.core.model.units import share_text
from leadline.core.statistics.resampling import Interval

Z_95 = 1.96
_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Side:
    """One density result: how many fit, and its counts, fewest first."""

    name: str
    answer: FitRange
    levels: tuple[CountLevel, ...]

    @property
    def full(self) -> CountLevel | None:
        """The last count that surely held; None when none did."""
        return next((level for level in self.levels if level.count == self.answer.last_held), None)


@dataclass(frozen=True, slots=True)
class DensityChange:
    """After against before as a share of before, with its 95 % interval; NaN bounds with too few samples."""

    before: float
    after: float
    change: float
    low: float
    high: float

    @property
    def is_shown(self) -> bool:
        """Whether the interval leaves no change out."""
        return self.low > 0.0 or self.high < 0.0

    def words(self) -> str:
        """``30 % more (95 % between 27 and 33 %)``."""
        if math.isnan(self.change):
            return "not measured on both"
        word = "more" if self.change >= 0 else "less"
        if math.isnan(self.low):
            return f"{share_text(abs(self.change), 1)} {word}, too few samples to be sure"
        between = f"95 % between {100 * self.low:+.1f} and {100 * self.high:+.1f} %"
        return (
            f"{share_text(abs(self.change), 1)} {word} ({between})"
            if self.is_shown
            else f"no difference shown ({between})"
        )


@dataclass(frozen=True, slots=True)
class CountChange:
    """What both systems did at the same count of instances; latencies are the worst instance's, in ms."""

    count: int
    per_s: DensityChange
    before_ms: float
    after_ms: float
    before: CountState
    after: CountState


@dataclass(frozen=True, slots=True)
class DensityComparison:
    """Two density results side by side.

    Attributes:
        fit: instances that fit, the interval being what the counts that were measured allow.
        full: operations per second of all instances, each system at the last count that surely held.
        counts: at the counts both measured.
        unlike: conditions that differ, because of which the two may not be comparable.
    """

    before: Side
    after: Side
    fit: DensityChange
    full: DensityChange
    counts: tuple[CountChange, ...]
    unlike: tuple[str, ...]

    @property
    def worse(self) -> bool:
        """Whether surely fewer fit after than before."""
        return self.fit.high < 0.0

    @property
    def sentence(self) -> str:
        """The answer for people."""
        old, new = (_fits(side.answer) for side in (self.before, self.after))
        text = f"{self.before.name}: {old}; {self.after.name}: {new}."
        if math.isinf(self.fit.low):
            text += " None surely fit before."
        elif self.fit.high < 0.0 or self.fit.low > 0.0:
            word = "more" if self.fit.low > 0.0 else "fewer"
            low, high = sorted(abs(bound) for bound in (self.fit.low, self.fit.high))
            text += f" {_span(low, high)} {word} instances fit after."
        else:
            text += " That as many fit cannot be ruled out."
        if not math.isnan(self.full.change):
            text += f" Throughput with the service level kept: {self.full.words()}."
        return text

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "before": {"name": self.before.name, "answer": self.before.answer.to_dict()},
            "after": {"name": self.after.name, "answer": self.after.answer.to_dict()},
            **{name: asdict(getattr(self, name)) for name in ("fit", "full")},
            "counts": [asdict(part) for part in self.counts],
            "unlike": list(self.unlike),
            "worse": self.worse,
            "sentence": self.sentence,
        }


def compare(before: Side, after: Side, unlike: Sequence[str] = ()) -> DensityComparison:
    """How many fit, throughput at the last count that held, and what both did at equal counts."""
    (old_low, old_high), (new_low, new_high) = before.answer.bounds, after.answer.bounds
    count_range = (float(old_low), float(new_low))
    fit = DensityChange(
        *count_range,
        _ratio(new_low, old_low),
        low=new_low / old_high - 1.0 if old_high else math.inf if new_low else 0.0,
        high=new_high / old_low - 1.0 if old_low else math.inf,
    )
    full = change_of(
        before.full.per_s if before.full is not None else None, after.full.per_s if after.full is not None else None
    )
    later = {level.count: level for level in after.levels}
    counts = tuple(_at(level, later[level.count]) for level in before.levels if level.count in later)
    return DensityComparison(before, after, fit, full, counts, tuple(unlike))


def _ratio(after: float, before: float) -> float:
    return after / before - 1.0 if before else _NAN


def _at(old: CountLevel, new: CountLevel) -> CountChange:
    return CountChange(old.count, change_of(old.per_s, new.per_s), old.worst_ms, new.worst_ms, old.state, new.state)


def change_of(before: Interval | None, after: Interval | None) -> DensityChange:
    """The ratio of two means that were measured apart, less one.

    Source: delta method on the logarithm of the ratio (Casella and Berger, Statistical Inference, 5.5.4): the relative
    standard errors, half the 95 % intervals over 1.96, add as squares.
    """
    if before is None or after is None or not before.mean > 0.0 or not after.mean > 0.0:
        nan = (_NAN, _NAN, _NAN)
        return DensityChange(_NAN if before is None else before.mean, _NAN if after is None else after.mean, *nan)
    errors = [(side_rate.high - side_rate.low) / (2.0 * Z_95) / side_rate.mean for side_rate in (before, after)]
    away = Z_95 * math.hypot(*errors)
    ratio = after.mean / before.mean
    return DensityChange(
        before.mean, after.mean, ratio - 1.0, ratio * math.exp(-away) - 1.0, ratio * math.exp(away) - 1.0
    )


def _fits(answer: FitRange) -> str:
    low, high = answer.bounds
    if math.isinf(high):
        return f"at least {counted(low)} fit{'s' if low == 1 else ''}"
    return f"{counted(low)} fit{'s' if low == 1 else ''}" if low == high else f"{low} to {high:.0f} instances fit"


def _span(low: float, high: float) -> str:
    if math.isinf(high) or high == 1.0:  # nothing broke on the side with more
        return f"At least {share_text(low)}"
    return f"{share_text(low)}" if math.isclose(low, high, abs_tol=5e-3) else f"{share_text(low)} to {share_text(high)}"
