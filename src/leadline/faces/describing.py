"""Statistics of a series, NaN left out, and a picture of it in one line."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_BARS = "▁▂▃▄▅▆▇█"
_GAP = " "


def describe(values: NDArray[np.floating[Any]]) -> dict[str, float]:
    """Count, share measured, min, mean, median, p95, p99, max and standard deviation of values [n].

    Quantiles are of the samples the tool printed (averages of an interval), not of single I/Os. All are NaN when
    nothing was measured.
    """
    known = values[np.isfinite(values)].astype(np.float64)
    share = len(known) / len(values) if len(values) else float("nan")
    if not len(known):
        names = ("min", "mean", *QUANTILES, "max", "stddev")
        return {"count": 0.0, "measured_share": share, **dict.fromkeys(names, float("nan"))}
    marks = np.quantile(known, list(QUANTILES.values()))
    return {
        "count": float(len(known)),
        "measured_share": share,
        "min": float(known.min()),
        "mean": float(known.mean()),
        **dict(zip(QUANTILES, map(float, marks), strict=True)),
        "max": float(known.max()),
        "stddev": float(known.std(ddof=1)) if len(known) > 1 else float("nan"),
    }


def sparkline(values: NDArray[np.floating[Any]], width: int = 40) -> str:
    """Values [n] as a line of ``width`` bars from the lowest to the highest; each bar is the highest of its samples.

    >>> sparkline(np.array([0.0, 1.0, 2.0, np.nan]), 4)
    '▁▄█ '
    """
    if not len(values):
        return ""
    edges = np.linspace(0, len(values), min(width, len(values)) + 1).astype(int)
    peaks = [_highest(values[a:b]) for a, b in pairwise(edges)]
    known = [peak for peak in peaks if np.isfinite(peak)]
    if not known:
        return _GAP * len(peaks)
    low, span = min(known), max(known) - min(known)
    return "".join(
        _GAP if not np.isfinite(p) else _BARS[int((p - low) / span * (len(_BARS) - 1)) if span > 0 else 0]
        for p in peaks
    )


def _highest(values: NDArray[np.floating[Any]]) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else float("nan")
