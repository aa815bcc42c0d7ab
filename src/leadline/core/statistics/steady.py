"""When load has become steady: the means of the last windows spread and drift little.

Source: SNIA Solid State Storage Performance Test Specification, steady state (range of the means within 20 % of their
average, excursion of the best linear fit within 10 %).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from leadline.core.model.workload import Steadiness


@dataclass(frozen=True, slots=True)
class SteadyState:
    """How steady the last windows were; both are percentages of their average, NaN with too few windows."""

    steady: bool
    range_pct: float
    slope_pct: float
    window_count: int

    def sentence(self) -> str:
        """For people."""
        if self.window_count == 0:
            return "not steady: too short to tell"
        verb = "steady" if self.steady else "not steady"
        return f"{verb}: windows range over {self.range_pct:.1f} % of their mean, drift by {self.slope_pct:.1f} %"


def steady_state(times_s: Sequence[float], per_s: Sequence[float], bounds: Steadiness) -> SteadyState:
    """Whether the last windows are steady; ``times_s`` [n] ascending ends of samples, ``per_s`` [n] their rates.

    >>> from leadline.core.model.workload import Steadiness
    >>> steady_state(range(1, 11), [100.0] * 10, Steadiness(window_s=2, window_count=5)).steady
    True
    """
    times, rates = np.asarray(times_s, dtype=np.float64), np.asarray(per_s, dtype=np.float64)
    means = []
    end = times[-1] if len(times) else 0.0
    for index in range(bounds.window_count):
        upper = end - index * bounds.window_s
        inside = (times > upper - bounds.window_s + 1e-9) & (times <= upper + 1e-9) & np.isfinite(rates)
        if upper - bounds.window_s < -0.5 * bounds.window_s or not inside.any():
            return SteadyState(False, float("nan"), float("nan"), 0)
        means.append(float(rates[inside].mean()))
    values = np.array(means[::-1])
    average = float(values.mean())
    if average <= 0.0:
        return SteadyState(False, float("nan"), float("nan"), len(values))
    slope = float(np.polyfit(np.arange(len(values)), values, 1)[0]) * (len(values) - 1)
    range_pct, slope_pct = 100.0 * float(np.ptp(values)) / average, 100.0 * abs(slope) / average
    steady = range_pct <= bounds.range_pct and slope_pct <= bounds.slope_pct
    return SteadyState(steady, range_pct, slope_pct, len(values))
