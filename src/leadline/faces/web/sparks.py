"""Small figures of one series, as SVG paths: they need no script, and a phone shows them beside their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from leadline.faces.report.downsample import thinned

if TYPE_CHECKING:
    from leadline.app.watch.views import LiveLine

BUCKETS = 60
GAP_INTERVALS = 2.5  # a longer pause is drawn as one


@dataclass(frozen=True, slots=True)
class Spark:
    """A path in a picture of ``width`` by ``height``; empty where nothing was measured."""

    width: ClassVar[int] = 180
    height: ClassVar[int] = 30

    path: str


def spark_of(line: LiveLine) -> Spark:
    """The figure of a series over its span, from zero up to its highest."""
    known = np.isfinite(line.values)
    if known.sum() < 2:
        return Spark("")
    values = np.asarray(line.values, dtype=np.float64)
    (kept,) = thinned(values[np.newaxis], BUCKETS)
    low, high = min(float(values[known].min()), 0.0), float(values[known].max())
    scale = (Spark.height - 4) / (high - low) if high > low else 0.0
    start, end = int(line.times_ns[0]), int(line.times_ns[-1])
    across = Spark.width / max(end - start, 1)
    usual = float(np.median(np.diff(line.times_ns[kept]))) if len(kept) > 1 else 0.0
    parts, pen, before = [], "M", start
    for place in kept:
        time_ns = int(line.times_ns[place])
        if not known[place] or time_ns - before > GAP_INTERVALS * usual:
            pen = "M"
        if known[place]:
            x, y = (time_ns - start) * across, Spark.height - 2 - (values[place] - low) * scale
            parts.append(f"{pen}{x:.1f},{y:.1f}")
            pen = "L"
        before = time_ns
    return Spark("".join(parts))
