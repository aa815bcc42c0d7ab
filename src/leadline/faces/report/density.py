"""Density runs as one page that loads nothing: the answer, the curves as SVG, every count with its evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leadline.app.density.model import CountState
from leadline.faces.report.page import standalone
from leadline.faces.report.xy import Level as Bound
from leadline.faces.report.xy import Line, Mark, XyChart, drawn

if TYPE_CHECKING:
    from leadline.app.density.comparison import DensityComparison
    from leadline.app.density.model import CountLevel
    from leadline.app.density.results import Density

_CLASS = {
    CountState.HELD: "cleared",
    CountState.BROKE: "convicted",
    CountState.UNSURE: "suspected",
    CountState.FAILED: "convicted",
}
Values = Callable[["CountLevel"], tuple[float, float, float]]  # with the ends of its 95 % interval


def density_page(runs: Sequence[Density], comparison: DensityComparison | None = None) -> str:
    """The whole page of one density run, or of two with their comparison."""
    return standalone(
        "density.html.j2",
        headline=_first(runs[0].answer.sentence) if comparison is None else comparison.sentence,
        unlike=[] if comparison is None else comparison.unlike,
        charts=[chart for chart in map(drawn, density_charts(runs)) if chart is not None],
        runs=[_run(run) for run in runs],
    )


def _first(text: str) -> str:
    """The first sentence; the rest stands with the run."""
    return f"{text.split('. ', maxsplit=1)[0].rstrip('.')}."


def density_charts(runs: Sequence[Density]) -> list[XyChart]:
    """Throughput of all instances and latency of the worst one, each against the number of instances."""
    levels = [level for run in runs for level in run.levels]
    if not levels:
        return []
    name = levels[0].latency_name
    bounds = [part.bound for level in levels for part in level.clauses if part.unit == "ms"]
    asked = tuple(Bound(bound, f"{bound:.4g} is asked") for bound in bounds[:1])
    rate = _chart(runs, "Operations per second of all instances", "per second", _rate)
    return [rate, replace(_chart(runs, f"{name} of the worst instance, ms", "ms", _worst), levels=asked)]


def _rate(level: CountLevel) -> tuple[float, float, float]:
    return level.per_s.mean, level.per_s.low, level.per_s.high


def _worst(level: CountLevel) -> tuple[float, float, float]:
    return level.worst_ms, *level.worst_ms_interval


def _chart(runs: Sequence[Density], title: str, unit: str, values: Values) -> XyChart:
    """A line for each run, a mark for each count in the colour of its state."""
    lines = []
    for index, run in enumerate(runs):
        marks = tuple(_mark(run, level, *values(level)) for level in run.by_count)
        lines.append(Line(run.id, tuple((mark.x, mark.y) for mark in marks), marks, index))
    summary = "; ".join(mark.text for line in lines for mark in line.marks if math.isfinite(mark.y))
    return XyChart(title, "instances", unit, tuple(lines), whole_x=True, summary=summary)


def _mark(run: Density, level: CountLevel, value: float, low: float, high: float) -> Mark:
    text = f"{run.id}, {level.count} instances: {value:,.4g}, {level.state.value}"
    return Mark(level.count, value, text, low=low, high=high, state=_CLASS[level.state])


def _run(run: Density) -> dict[str, Any]:
    facts = [
        ("Workload", run.name),
        ("On", run.where),
        ("Service level of each", ", ".join(run.clauses)),
        ("Each asks for", f"{run.offered_per_s:.4g}/s" if math.isfinite(run.offered_per_s) else "a closed loop"),
        ("Each limited to", run.limits.words() if run.are_limited and run.limits.words() else "nothing"),
        ("Begun (UTC)", run.started[:19].replace("T", " ")),
        *((key.replace("_", " "), text) for key, text in run.host.items()),
    ]
    return {
        "id": run.id,
        "sentence": run.answer.sentence,
        "facts": facts,
        "rows": [_row(level) for level in run.by_count],
        "notes": run.notes,
        "latency": run.levels[0].latency_name if run.levels else "p95",
    }


def _row(level: CountLevel) -> dict[str, Any]:
    low, high = level.worst_ms_interval
    return {
        "count": level.count,
        "state": level.state.value,
        "class": _CLASS[level.state],
        "cells": [
            _shown(level.per_s.mean),
            _between(level.per_s.low, level.per_s.high),
            _shown(level.median_per_s),
            _shown(level.worst_per_s),
            _shown(level.pooled_ms),
            _shown(level.worst_ms),
            _between(low, high),
            f"{level.fairness:.3f}" if math.isfinite(level.fairness) else "–",
        ],
        "pooled": "  ".join(f"{name} {_shown(ms)}" for name, ms in level.percentiles_ms.items()),
        "evidence": [*(level.reasons if level.state is not CountState.HELD else ()), *level.notes],
        "run": level.run,
    }


def _shown(value: float) -> str:
    return f"{value:,.4g}" if math.isfinite(value) and abs(value) < 1e4 else _large(value)


def _large(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "–"


def _between(low: float, high: float) -> str:
    return f"{_shown(low)} to {_shown(high)}" if math.isfinite(low) and math.isfinite(high) else "–"
