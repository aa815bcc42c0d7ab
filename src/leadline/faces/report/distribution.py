"""A latency histogram as columns: both axes logarithmic, so that the tail is seen beside the bulk."""

from __future__ import annotations

from math import ceil, floor, log, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.units import factor, show

if TYPE_CHECKING:
    from leadline.faces.report.lead import Spread

COLUMNS_MAX = 60
STEP_MIN = 1.035  # narrower columns than two of fio's buckets would leave gaps
HEIGHT = 150
_ROUND = (1.0, 2.0, 5.0)
_CLOSE_PCT = 7.0  # labels nearer to each other than this are written in the next line


def distribution(spread: Spread) -> dict[str, Any]:
    """Columns, round latencies, counts and percentiles with positions in percent of the width, and as a table.

    A bucket counts where its middle lies; an open one at its lower bound.
    """
    histogram = spread.histogram
    to_ms = factor(histogram.unit, "ms")
    middle = np.where(np.isfinite(histogram.upper), (histogram.lower + histogram.upper) / 2.0, histogram.lower) * to_ms
    middle = np.maximum(middle, 1e-6)
    edges = _edges(float(middle.min()), float(middle.max()))
    counts = np.histogram(middle, edges, weights=histogram.counts)[0].astype(np.int64)
    top = max(ceil(log10(counts.max() + 1.0)), 1)
    low, span = log(edges[0]), log(edges[-1]) - log(edges[0])

    def at(ms: float) -> float:
        return 100.0 * (log(ms) - low) / span

    columns = [
        {
            "x": f"{at(start):.3f}%",
            "width": f"{max(at(end) - at(start) - 0.15, 0.2):.3f}%",
            "y": f"{HEIGHT * (1.0 - log10(count + 1.0) / top):.1f}",
            "height": f"{HEIGHT * log10(count + 1.0) / top:.1f}",
        }
        for start, end, count in zip(edges[:-1], edges[1:], counts, strict=True)
        if count
    ]
    return {
        "name": spread.name,
        "total": f"{histogram.total:,}",
        "columns": columns,
        "ticks": [(f"{at(ms):.3f}%", show(ms, "ms"), _anchor(at(ms))) for ms in _round_values(edges[0], edges[-1])],
        "levels": [(f"{HEIGHT * (1.0 - log10(10.0**k + 1.0) / top):.1f}", f"{10**k:,}") for k in range(top)],
        "marks": _marks(spread, at),
        "height": HEIGHT,
        "rows": [
            (f"{show(float(start), 'ms')} to {show(float(end), 'ms')}", f"{count:,}", f"{count / histogram.total:.3%}")
            for start, end, count in zip(edges[:-1], edges[1:], counts, strict=True)
            if count
        ],
    }


def _edges(low: float, high: float) -> Any:  # noqa: ANN401 - an array
    """Bounds of columns of equal ratio around all values."""
    low, high = low / STEP_MIN, high * STEP_MIN
    count = min(max(int(log(high / low) / log(STEP_MIN)), 1), COLUMNS_MAX)
    return np.geomspace(low, high, count + 1)


def _round_values(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, or powers alone where that would be many."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for steps in (_ROUND, _ROUND[:1]):
        values = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
        if len(values) <= 9:
            break
    return values


def _anchor(share: float) -> str:
    return "start" if share < 3.0 else "end" if share > 97.0 else "middle"


def _marks(spread: Spread, at: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a function
    """Percentiles with the line their label stands in: neighbours must not be written over each other."""
    free: list[float] = []
    marked = []
    for name, ms in spread.marks:
        x = min(max(at(ms), 0.0), 100.0)
        line = next((k for k, taken in enumerate(free) if x - taken >= _CLOSE_PCT), len(free))
        free[line : line + 1] = [x]
        anchor = "end" if x > 90.0 else "start"
        marked.append({"x": f"{x:.3f}%", "label": name, "ms": show(ms, "ms"), "line": line, "anchor": anchor})
    return marked
