"""The page of a sweep: latency against operations, operations against load with the law, every point in a table."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.app.sweep.curves import between
from leadline.core.model.sweep import OIO
from leadline.core.statistics.scaling import Usl
from leadline.faces.report import write_page
from leadline.faces.report.page import standalone
from leadline.faces.report.xy import Level, Line, Mark, XyChart, drawn

if TYPE_CHECKING:
    from pathlib import Path

    from leadline.app.sweep.curves import LoadCurve, Point
    from leadline.app.sweep.sweeping import SweepOutcome
    from leadline.core.io.outputs import Output

LAW_POINTS = 80


def write_sweep(output: Output | Path, outcome: SweepOutcome) -> int:
    """Write the page of a sweep; returns its size in bytes.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    return write_page(output, sweep_page(outcome))


def sweep_page(outcome: SweepOutcome) -> str:
    """The whole page as a string."""
    sweep = outcome.sweep
    charts = [*latency_charts(outcome), rate_chart(outcome)]
    facts = [
        ("Begun", sweep.started.replace("T", " ")),
        ("Points", str(sum(len(curve.points) + len(curve.again) for curve in outcome.curves))),
        ("Seed", str(sweep.seed)),
    ]
    return standalone(
        "sweep.html.j2",
        outcome=outcome,
        name=sweep.workload["name"],
        facts=facts,
        charts=[chart for chart in map(drawn, charts) if chart is not None],
        curves=[_curve(curve) for curve in outcome.curves],
        axis=_axis(sweep.axis),
    )


def latency_charts(outcome: SweepOutcome) -> list[XyChart]:
    """Latency against operations per second, joined in the order of load: the mean, and the percentile asked for."""
    sweep = outcome.sweep
    charts = []
    for name in dict.fromkeys(("mean", sweep.percentile)):
        lines = []
        for index, curve in enumerate(outcome.curves):
            marks = tuple(_mark(curve, p, p.per_s.mean, p.latency_ms(name), f"{name} %.3g ms") for p in curve.points)
            lines.append(Line(_name(curve), tuple((m.x, m.y) for m in marks), marks, index))
        levels: tuple[Level, ...] = ()
        if sweep.target_ms is not None and name == sweep.percentile:
            levels = (Level(sweep.target_ms, f"target {sweep.target_ms:g} ms"),)
        word = "Mean latency" if name == "mean" else f"Latency, {name}"
        title = f"{word} against operations per second"
        charts.append(XyChart(title, "operations per second", "ms (logarithmic)", tuple(lines), levels, log_y=True))
    return charts


def rate_chart(outcome: SweepOutcome) -> XyChart:
    """Operations per second against load, with the law where it describes the points."""
    lines = []
    for index, curve in enumerate(outcome.curves):
        marks = tuple(_mark(curve, p, p.load, p.per_s.mean, "%.4g/s") for p in (*curve.points, *curve.again))
        shape = tuple((float(p.load), p.per_s.mean) for p in curve.points)
        lines.append(Line(_name(curve), shape, marks, index))
        if isinstance(curve.usl, Usl) and curve.usl.describes:
            loads = np.linspace(1.0, curve.usl.load_max, LAW_POINTS)
            law = tuple((float(load), float(curve.usl.rate(load))) for load in loads)
            name = f"{_name(curve)}: universal scalability law"
            lines.append(Line(name, law, (), index, dashed=True))
    title, x_title = "Operations per second against load", _axis(outcome.sweep.axis)
    return XyChart(title, x_title, "operations per second", tuple(lines), whole_x=True)


def _mark(curve: LoadCurve, point: Point, x: float, y: float, form: str) -> Mark:
    words = [f"{_axis(curve.axis)} {point.load}", f"{point.per_s.mean:,.0f}/s", form % y, *point.marks]
    if point is curve.knee:
        words.append("knee")
    return Mark(x, y, ", ".join(dict.fromkeys(words)), hollow=bool(point.marks))


def _name(curve: LoadCurve) -> str:
    return curve.variant.label() or "measured"


def _axis(axis: str) -> str:
    return "outstanding I/O" if axis == OIO else axis


def _curve(curve: LoadCurve) -> dict[str, Any]:
    percentiles = list(dict.fromkeys(("p50", "p99", *(() if curve.percentile == "mean" else (curve.percentile,)))))
    rows = []
    for point in (*curve.points, *curve.again):
        times = [_cell(point.latency_ms(name), ".3g") for name in ("mean", *percentiles)]
        marks = [*point.marks, *(["measured again"] if point.key.again else [])]
        if point is curve.knee:
            marks.append("knee")
        span = "–" if point.per_s.too_few else between(point.per_s)
        rate = _cell(point.per_s.mean, ",.0f")
        cells = [f"{point.load:,}", rate, span, *times, _cell(point.bytes_per_s / 1e6, ",.4g")]
        rows.append({"cells": cells, "marks": ", ".join(marks), "run": point.run_id})
    heads = ["per s", "95 % interval", "mean ms", *(f"{name} ms" for name in percentiles), "MB/s"]
    return {"label": curve.variant.label(), "heads": heads, "rows": rows, "sentences": curve.sentences()}


def _cell(value: float, form: str) -> str:
    return f"{value:{form}}" if isfinite(value) else "–"
