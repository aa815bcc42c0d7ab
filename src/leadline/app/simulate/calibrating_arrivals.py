"""How requests come: the source of a simulation whose arrivals are as bursty as those of a recording.

The index of dispersion of counts, variance over mean by window, is compared with that of the sources there are: at
random (Poisson), at even distances, in bursts of one length with pauses of another. The first that fits in every window
is taken; where none does, the recording itself has to be the load.

Source: Gusella, "Characterizing the variability of arrival processes with indexes of dispersion" (IEEE JSAC 9, 1991).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leadline.app.simulate.calibrating_fits import BurstWindow
from leadline.app.simulate.calibrating_loads import Array

WINDOWS_S = (0.01, 0.1, 1.0, 10.0)
WINDOWS_MIN = 30  # Judgement: fewer say little of a variance
OFF_MAX = 0.25  # Judgement: of the index of dispersion, or of that of random arrivals where that is more
SHIFTS = 8  # windows begin anywhere: those in step with bursts would see one part of them alone
PAUSES_MIN = 5  # Judgement: fewer are no rhythm
POISSON, EVEN, BURSTY, TRACE = "poisson", "even", "bursty", "trace"


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A source of a simulation: its requests per second while it is on, and seconds on and off of one with bursts."""

    name: str
    rate: float
    on_s: float = 1.0
    off_s: float = 0.0

    @property
    def on_share(self) -> float:
        """Of the time."""
        return self.on_s / (self.on_s + self.off_s)

    @property
    def keys(self) -> dict[str, Any]:
        """Of a stream of a workload."""
        if self.name == BURSTY:
            return {"burst": {"on_s": round(self.on_s, 4), "off_s": round(self.off_s, 4)}}
        return {"arrivals": EVEN} if self.name == EVEN else {}

    def dispersion(self, window_s: float) -> float:
        """Variance over mean of the requests in windows of that length."""
        if self.name == EVEN:
            part = self.rate * window_s % 1.0
            return part * (1.0 - part) / (self.rate * window_s)
        if self.name != BURSTY:
            return 1.0
        period = self.on_s + self.off_s
        begin = np.linspace(0.0, period, 512, endpoint=False)
        is_on = self._passed(begin + window_s) - self._passed(begin)  # seconds of each window
        return 1.0 + self.rate * float(is_on.var() / is_on.mean())

    def _passed(self, at_s: Array) -> Array:
        """Seconds on until then."""
        period = self.on_s + self.off_s
        return np.asarray(np.floor(at_s / period) * self.on_s + np.minimum(at_s % period, self.on_s))

    def describe(self, windows: Sequence[BurstWindow]) -> str:
        """Describe in a sentence how requests arrive, with the index of dispersion in each window."""
        if not windows:
            return "too few requests to say how they come: replayed as recorded"
        words = {
            POISSON: "requests come at random (Poisson)",
            EVEN: "requests come at even distances",
            BURSTY: f"requests come in bursts of {self.on_s:.3g} s with pauses of {self.off_s:.3g} s",
            TRACE: "no source of a simulation is as bursty as these requests, which are replayed as recorded",
        }
        if self.name == TRACE:
            indices = ", ".join(f"{_number(window.trace)} in {window.window_s:g} s" for window in windows)
            return f"{words[TRACE]}; index of dispersion: {indices}"
        indices = ", ".join(
            f"{_number(window.trace)} and {_number(window.fitted)} in {window.window_s:g} s" for window in windows
        )
        return f"{words[self.name]}; index of dispersion, recorded and of the source: {indices}"


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10.0 else f"{value:,.0f}"


def fit_arrivals(times_s: Array) -> tuple[Arrivals, tuple[BurstWindow, ...]]:
    """The first source whose index of dispersion is that of the arrivals in every window; times [n], s."""
    measured = {width: dispersion for width in WINDOWS_S if (dispersion := _dispersion(times_s, width)) is not None}
    rate = (len(times_s) - 1) / float(times_s[-1])
    for source in (Arrivals(POISSON, rate), Arrivals(EVEN, rate), _bursts(times_s, measured)):
        if (
            source is not None
            and measured
            and all(_off(source, w, *estimate) <= OFF_MAX for w, estimate in measured.items())
        ):
            return source, tuple(BurstWindow(w, estimate[0], source.dispersion(w)) for w, estimate in measured.items())
    return Arrivals(TRACE, rate), tuple(BurstWindow(w, estimate[0], estimate[0]) for w, estimate in measured.items())


def _dispersion(times_s: Array, window_s: float) -> tuple[float, int] | None:
    """Index of dispersion over whole windows, and how many there are; None of too few."""
    count = int(times_s[-1] / window_s) - 1
    if count < WINDOWS_MIN:
        return None
    variances, mean = [], 0.0
    for shift in np.arange(SHIFTS) / SHIFTS:
        index = np.floor(times_s / window_s - shift).astype(np.int64)
        counts = np.bincount(index[index >= 0], minlength=count)[:count]
        variances.append(counts.var(ddof=1))
        mean += counts.mean() / SHIFTS
    return float(np.mean(variances) / mean), count


def _off(source: Arrivals, window_s: float, measured: float, count: int) -> float:
    """How far the source is from what was measured, less what chance does: twice the deviation of a variance."""
    fitted = source.dispersion(window_s)
    return abs(measured - fitted) / max(fitted, 1.0) - 2.0 * float(np.sqrt(2.0 / (count - 1)))


def _bursts(times_s: Array, measured: dict[float, tuple[float, int]]) -> Arrivals | None:
    """Bursts and pauses as long as they are on average, for the least pause with which they fit best."""
    gaps = np.diff(times_s)
    candidates = []
    middle = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 0.0
    for least in np.geomspace(10.0 * middle, gaps.max(), 24) if gaps.max() > 10.0 * middle > 0.0 else []:
        is_pause = gaps >= least
        count = int(is_pause.sum())
        if count < PAUSES_MIN:
            break
        inside = float(gaps[~is_pause].mean())
        # A pause is seen from the last request of a burst to the first of the next: longer by a distance at each end.
        off = float(gaps[is_pause].mean()) - 2.0 * inside
        on = float(gaps[~is_pause].sum()) / (count + 1) + 2.0 * inside
        if off > 0.0:
            source = Arrivals(BURSTY, len(times_s) / (on * (count + 1)), on, off)
            candidates.append(
                (max((_off(source, w, *estimate) for w, estimate in measured.items()), default=0.0), least, source)
            )
    return min(candidates)[2] if candidates else None
