"""How operations per second and latency answer to load: the end of growth, the knee, the law behind it.

Load is what is under way at once: outstanding I/O, or clients. Nothing here is extrapolated without being said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.statistics.resampling import difference_interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

GROWTH = 0.05  # Judgement: per step of load; less is not worth doubling the latency for
EQUAL = 0.01  # Judgement: rates that differ by less are the same to whoever chooses a load
LOADS_MIN = 4  # three parameters and one degree of freedom
ERROR_MIN = 0.01  # Judgement: a point measured again on a machine that does other work differs by so much
DEVIATION_MAX = 0.10  # Judgement: a point that far from the law is not described by it
RESAMPLES = 1000
ITERATIONS = 60
_Z_95 = 1.96
_TINY = 1e-9


class Growth(StrEnum):
    """What a step of load did to the rate."""

    GROWING = "growing"
    ENDED = "ended"
    UNKNOWN = "unknown"


def growth(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], seed: int, share: float = GROWTH
) -> Growth:
    """Whether the rate still grew: ended when the 95 % interval of the gain excludes growth by ``share``.

    ``before`` and ``after`` are rates of seconds, round by round. Unknown with too few seconds.
    """
    _, _, high = difference_interval(before, after, seed)
    if not np.isfinite(high):
        return Growth.UNKNOWN
    return Growth.ENDED if high < share else Growth.GROWING


def knee(per_s: ArrayLike, latency_ms: ArrayLike) -> int | None:
    """Index of the point of most power, rate divided by mean latency; None where no point has both.

    Up to it a step of load gains more in rate than it costs in latency, beyond it the other way round. Of equal ones
    the first, so points should ascend in load.

    Source: Kleinrock, Power and Deterministic Rules of Thumb for Probabilistic Problems in Computer Communications,
    ICC 1979.

    >>> knee([100, 190, 250, 260], [1.0, 1.05, 1.6, 3.1])
    1
    """
    rates, times = np.asarray(per_s, dtype=np.float64), np.asarray(latency_ms, dtype=np.float64)
    known = np.isfinite(rates) & np.isfinite(times) & (times > 0.0)
    if not known.any():
        return None
    power = np.where(known, rates / np.where(known, times, 1.0), -np.inf)
    return int(np.argmax(power >= power.max() * (1.0 - _TINY)))


def little_load(per_s: float, latency_ms: float) -> float:
    """How much must be under way to have a rate at a latency: where the plateau begins, when both are the best seen.

    Source: Little, A Proof for the Queuing Formula L = lambda W (1961); Gunther, Mind Your Knees and Queues,
    MeasureIT 7.08 (2009): the asymptotes meet there.

    >>> little_load(500.0, 8.0)
    4.0
    """
    return per_s * latency_ms / 1000.0


@dataclass(frozen=True, slots=True)
class Best:
    """The best load that keeps a latency target.

    Attributes:
        load: the one to choose; None when no measured load keeps the target.
        load_max: the highest that keeps it, up to what was measured.
        interpolated: whether ``load`` lies between measured ones.
        all_kept: every measured load keeps the target, so more might.
    """

    load: int | None
    per_s: float = float("nan")
    latency_ms: float = float("nan")
    load_max: int | None = None
    interpolated: bool = False
    all_kept: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def best_under(loads: ArrayLike, per_s: ArrayLike, latency_ms: ArrayLike, target_ms: float) -> Best:
    """The smallest load with the highest rate (to within `EQUAL`) among those that keep a latency target.

    Between the last measured load that keeps it and the first that does not, the largest whole load is interpolated
    linearly; beyond a load that breaks the target none counts, and nothing is extrapolated. ``loads`` [n] ascend;
    points without a latency are left out.

    >>> best_under([1, 2, 4, 8], [100, 190, 300, 310], [10, 10.5, 13, 26], 18.0)
    Best(load=4, per_s=300.0, latency_ms=13.0, load_max=5, interpolated=False, all_kept=False)
    """
    columns = [np.asarray(values, dtype=np.float64) for values in (loads, per_s, latency_ms)]
    known = np.logical_and.reduce([np.isfinite(column) for column in columns])
    steps, rates, times = (column[known] for column in columns)
    if not len(steps):
        return Best(None)
    broken = np.flatnonzero(times > target_ms)
    kept_count = int(broken[0]) if len(broken) else len(steps)
    if kept_count == 0:
        return Best(None)
    candidates = [(int(steps[i]), float(rates[i]), float(times[i]), False) for i in range(kept_count)]
    if kept_count < len(steps):
        low, high = kept_count - 1, kept_count
        share = (target_ms - times[low]) / (times[high] - times[low])
        whole = int(steps[low] + share * (steps[high] - steps[low]) + _TINY)
        if whole > steps[low]:
            span = slice(low, high + 1)
            rate, time = (float(np.interp(whole, steps[span], column[span])) for column in (rates, times))
            candidates.append((whole, rate, time, True))
    most = max(rate for _, rate, _, _ in candidates)
    load, rate, time, between = next(candidate for candidate in candidates if candidate[1] >= most * (1.0 - EQUAL))
    return Best(load, rate, time, candidates[-1][0], between, kept_count == len(steps))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A parameter with its 95 % interval."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """Plain data."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Usl:
    """The universal scalability law of some points, X(N) = λN / (1 + σ(N-1) + κN(N-1)).

    Attributes:
        rate_of_one: λ, operations per second at a load of one.
        contention: σ, the share that is done one after the other.
        coherency: κ, what each pair costs.
        peak_load: sqrt((1-σ)/κ); None when the points do not show one.
        peak_per_s: the rate there.
        r_squared: of the rates.
        deviations: (X - law) / X of each point.
        load_max: the highest load the law was fitted to.
        untold: what these points do not tell, in words.
    """

    rate_of_one: Estimate
    contention: Estimate
    coherency: Estimate
    peak_load: Estimate | None
    peak_per_s: float
    r_squared: float
    deviations: tuple[float, ...]
    load_max: float
    untold: tuple[str, ...] = field(default=())

    @property
    def describes(self) -> bool:
        """Whether no point is further away than `DEVIATION_MAX`."""
        return max(map(abs, self.deviations)) <= DEVIATION_MAX

    def rate(self, load: float) -> float:
        """Operations per second the law gives at a load."""
        ways = 1.0 + self.contention.value * (load - 1.0) + self.coherency.value * load * (load - 1.0)
        return self.rate_of_one.value * load / ways

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        estimates = {name: value.to_dict() for name, value in plain.items() if isinstance(value, Estimate)}
        return {**plain, **estimates, "describes": self.describes}


@dataclass(frozen=True, slots=True)
class Untold:
    """Why the points do not tell the law."""

    reason: str


def fit_usl(loads: ArrayLike, per_s: ArrayLike, errors: ArrayLike, seed: int = 0) -> Usl | Untold:
    """The law that is nearest to points, each weighted by its standard error, with 0 ≤ σ ≤ 1 and 0 ≤ κ.

    Intervals are of a parametric bootstrap: rates are drawn anew from their errors, which are widened by the misfit
    (Birge's ratio) where that is larger. Points without an error count alike, by what they deviate.

    Args:
        loads: [n], 1 or more; loads may repeat.
        per_s: [n], rates; what is not above 0 is left out.
        errors: [n], standard errors of the rates; NaN: not known.
        seed: of the bootstrap.

    Source: Gunther, Guerrilla Capacity Planning (2007), chapters 4 to 6; Birge, Phys. Rev. 40 (1932) 207.
    """
    columns = [np.asarray(values, dtype=np.float64) for values in (loads, per_s, errors)]
    keep = np.isfinite(columns[0]) & np.isfinite(columns[1]) & (columns[0] >= 1.0) & (columns[1] > 0.0)
    steps, rates, spread = (column[keep] for column in columns)
    count = len(np.unique(steps))
    if count < LOADS_MIN:
        return Untold(f"{count} different loads; three parameters need at least {LOADS_MIN}")
    is_known = bool(np.isfinite(spread).all())
    sigma = np.maximum(spread, ERROR_MIN * rates) if is_known else ERROR_MIN * rates
    law = _Law(steps)
    best = law.solve(rates[None, :], sigma)
    fitted = law.rates(best)[0]
    freedom = max(len(steps) - 3, 1)
    misfit = float(np.sqrt((((rates - fitted) / sigma) ** 2).sum() / freedom))
    drawn = np.random.default_rng(seed).normal(size=(RESAMPLES, len(steps)))
    widened = sigma * (max(misfit, 1.0) if is_known else max(misfit, _TINY))
    again = law.solve(np.maximum(fitted + drawn * widened, 0.05 * fitted), sigma)
    total = float(((rates - rates.mean()) ** 2).sum())
    r_squared = 1.0 - float(((rates - fitted) ** 2).sum()) / total if total > 0.0 else float("nan")
    deviations = tuple(float(share) for share in (rates - fitted) / rates)
    usl = _described(_Solved(best[0], again), r_squared, deviations, float(steps.max()))
    if usl.peak_load is not None and not is_known and _rests_on_last(steps, rates, sigma):
        why = "a peak: only the highest load is below the others, by an error that is not known; measure longer"
        return replace(usl, peak_load=None, peak_per_s=float("nan"), untold=(why,))
    return usl


def _rests_on_last(steps: NDArray[np.float64], rates: NDArray[np.float64], sigma: NDArray[np.float64]) -> bool:
    """Whether the points without the highest load do not fall, to within `EQUAL`, after a peak among them."""
    rest = steps < steps.max()
    if len(np.unique(steps[rest])) < LOADS_MIN:
        return True
    parameters = _Law(steps[rest]).solve(rates[None, rest], sigma[rest])
    top = float(steps[rest].max())
    peak = min(float(_peak(parameters[0])), top)
    most, last = _Law(np.array([peak, top])).rates(parameters)[0]
    return bool(last >= most * (1.0 - EQUAL))


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """Parameters [3] of the points, and [b, 3] of the resampled ones."""

    best: NDArray[np.float64]
    again: NDArray[np.float64]

    def estimate(self, of: Any) -> Estimate:  # noqa: ANN401 - a function of parameters [..., 3]
        low, high = np.quantile(of(self.again), [0.025, 0.975])
        return Estimate(float(of(self.best)), float(low), float(high))


def _described(solved: _Solved, r_squared: float, deviations: tuple[float, ...], load_max: float) -> Usl:
    rate_of_one = solved.estimate(lambda p: 1.0 / p[..., 0])
    contention = solved.estimate(lambda p: p[..., 1] / p[..., 0])
    coherency = solved.estimate(lambda p: p[..., 2] / p[..., 0])
    untold = []
    peak, peak_per_s = None, float("nan")
    if coherency.low <= 0.0 or coherency.value <= 0.0:
        untold.append("a peak: the interval of κ includes 0, so the rate may level off as well as fall")
    else:
        peak = solved.estimate(_peak)
    law = Usl(
        rate_of_one, contention, coherency, peak, peak_per_s, r_squared, deviations, load_max, untold=tuple(untold)
    )
    if peak is None:
        return law
    return replace(law, peak_per_s=law.rate(peak.value))


def _peak(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
    """The load of the highest rate, at least 1; inf without κ."""
    share = np.maximum(parameters[..., 0] - parameters[..., 1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        peak: NDArray[np.float64] = np.maximum(np.sqrt(share / parameters[..., 2]), 1.0)
    return np.where(np.isnan(peak), np.inf, peak)


# From the free parameters to (1/λ, σ/λ, κ/λ): all free, and every bound of σ (0, 1) and κ (0) on its own and together.
_ACTIVE = (
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((1, 0, 0), (0, 0, 1)),
    ((1, 0, 0), (0, 1, 0)),
    ((1, 0, 0),),
    ((1, 1, 0), (0, 0, 1)),
    ((1, 1, 0),),
)


class _Law:
    """Least squares of the law at some loads.

    N/X is linear in p = (1/λ, σ/λ, κ/λ), so it is solved by weighted linear steps, whose weights make their fixed point
    the least squares of X itself. The bounds are few enough to try every set of active ones; the best feasible is the
    optimum, since each step is convex.
    """

    def __init__(self, loads: NDArray[np.float64]) -> None:
        self.loads = loads
        self.columns = np.stack([np.ones_like(loads), loads - 1.0, loads * (loads - 1.0)], axis=1)

    def rates(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rates [b, n] of parameters [b, 3]."""
        rates: NDArray[np.float64] = self.loads / (parameters @ self.columns.T)
        return rates

    def solve(self, rates: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Parameters [b, 3] of rates [b, n] with errors [n]."""
        wanted = self.loads / rates
        model = wanted
        for _ in range(ITERATIONS):
            weights = rates * (self.loads / model) / (errors * model) ** 2
            parameters = self._bounded(wanted, weights)
            before, model = model, parameters @ self.columns.T
            if float(np.abs(model / before - 1.0).max()) < 1e-12:
                break
        return parameters

    def _bounded(self, wanted: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        best = np.zeros((len(wanted), 3))
        least = np.full(len(wanted), np.inf)
        for active in _ACTIVE:
            free = np.array(active, dtype=np.float64)
            design = self.columns @ free.T
            scale = np.maximum(np.abs(design).max(axis=0), _TINY)
            scaled = design / scale
            normal = np.einsum("nk,bn,nl->bkl", scaled, weights, scaled)
            right = np.einsum("nk,bn->bk", scaled, weights * wanted)
            solution = np.linalg.solve(normal, right[..., None])[..., 0] / scale
            full = solution @ free
            full[:, 1:][np.abs(full[:, 1:]) < _TINY * np.abs(full[:, :1])] = 0.0
            lost = (weights * (wanted - full @ self.columns.T) ** 2).sum(axis=1)
            feasible = (full[:, 0] > 0) & (full[:, 1:] >= 0).all(axis=1) & (full[:, 1] <= full[:, 0] * (1.0 + _TINY))
            better = feasible & (lost < least)
            best[better], least[better] = full[better], lost[better]
        return best


def standard_error(low: float, high: float) -> float:
    """Of a 95 % interval; NaN when that is not known."""
    return (high - low) / (2.0 * _Z_95)
