"""Sweeps as text: a table and a small figure for each curve, and what they say."""

from __future__ import annotations

from math import isfinite, log10
from typing import TYPE_CHECKING

from leadline.core.model.sweep import OIO
from leadline.faces.cli.output import console
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from leadline.app.sweep.curves import LoadCurve, Point
    from leadline.app.sweep.sweeping import SweepOutcome
    from leadline.core.statistics.resampling import Interval

PLOT_WIDTH, PLOT_HEIGHT = 56, 11
SURE, UNSURE = "*", "o"


def show_sweep(outcome: SweepOutcome) -> None:
    """Every curve of a sweep, and how to go on with one that is not complete."""
    out = console()
    sweep = outcome.sweep
    wrapped(out, f"{sweep.workload['name']} on {sweep.target}, {sweep.started}", f"{sweep.id}  ")
    for curve in outcome.curves:
        _show_curve(out, curve)
    for note in outcome.notes:
        wrapped(out, note, "note: ", style="yellow")
    if not outcome.is_complete:
        wrapped(
            out,
            "points are left; what was measured is kept. Go on with",
            f"{sum(len(c.points) + len(c.again) for c in outcome.curves)} points: ",
            style="yellow",
        )
        out.print(f"  leadline bench sweep --resume {sweep.id}", markup=False, soft_wrap=True)


def _show_curve(out: Console, curve: LoadCurve) -> None:
    out.print()
    label = curve.variant.label()
    if label:
        out.print(label, style="bold", markup=False)
    name = "p99" if curve.percentile in ("mean", "p50") else curve.percentile
    columns = (curve.axis, "per s", "±", "mean ms", "p50", name, "MB/s")
    has_more = any(point.load != point.key.load for point in curve.points)
    shown = (columns[0], "in all", *columns[1:]) if has_more else columns
    table = plain_table(*shown, "", right=shown)
    for point in (*curve.points, *curve.again):
        marks = [*point.marks, *(["measured again"] if point.key.again else []), *_places(curve, point)]
        cells = [f"{point.key.load:,}"] + ([f"{point.load:,}"] if has_more else [])
        span = "-" if point.per_s.too_few else _half_width(point.per_s)
        numbers = (point.mean_ms, point.latency_ms("p50"), point.latency_ms(name))
        cells += [f"{point.per_s.mean:,.0f}", span, *map(_number, numbers), _number(point.bytes_per_s / 1e6)]
        table.add_row(*cells, ", ".join(marks))
    out.print(table)
    wrapped(out, "±: half of the 95 % interval of the rate; -: too few samples, or not measured", style="dim")
    out.print()
    for line in plot(curve.points, curve.axis):
        out.print(line, markup=False, highlight=False)
    out.print()
    for sentence in curve.sentences():
        wrapped(out, sentence, "- ")


def _half_width(interval: Interval) -> str:
    share = 50.0 * (interval.high - interval.low) / interval.mean if interval.mean > 0 else float("nan")
    return f"{share:.2g} %" if share < 100 else f"{share:,.0f} %"


def _places(curve: LoadCurve, point: Point) -> list[str]:
    landmarks = []
    if point is curve.knee:
        landmarks.append("knee")
    if curve.levelled is not None and point is curve.levelled.start and not curve.levelled.falls:
        landmarks.append("plateau")
    return landmarks


def plot(points: Sequence[Point], axis: str) -> list[str]:
    """Mean latency (upwards, logarithmic) against operations per second (to the right); one mark for each point.

    Empty when fewer than two points have both.
    """
    known = [point for point in points if isfinite(point.per_s.mean) and isfinite(point.mean_ms) and point.mean_ms > 0]
    if len(known) < 2:
        return []
    right = max(point.per_s.mean for point in known)
    heights = [log10(point.mean_ms) for point in known]
    low, span = min(heights), max(max(heights) - min(heights), 0.1)
    grid = [[" "] * (PLOT_WIDTH + 1) for _ in range(PLOT_HEIGHT)]
    for point, height in zip(known, heights, strict=True):
        row = round((1.0 - (height - low) / span) * (PLOT_HEIGHT - 1))
        grid[row][round(point.per_s.mean / right * PLOT_WIDTH)] = UNSURE if point.marks else SURE
    lines = []
    for index, row_of in enumerate(grid):
        value = 10 ** (low + span * (1.0 - index / (PLOT_HEIGHT - 1)))
        label = f"{_number(value):>8}" if index % 5 == 0 else " " * 8
        lines.append(f"{label} |{''.join(row_of).rstrip()}")
    most = f"{right:,.0f}/s"
    lines.append(f"{'ms':>8} +{'-' * PLOT_WIDTH}")
    lines.append(f"{'':9} 0{most:>{PLOT_WIDTH}}")
    word = "outstanding I/O" if axis == OIO else axis
    lines.append(f"{'':10}mean latency against operations, {known[0].load} to {known[-1].load} {word}")
    if any(point.marks for point in known):
        lines.append(f"{'':10}{UNSURE}: do not lean on it")
    return lines


def _number(value: float) -> str:
    if not isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
