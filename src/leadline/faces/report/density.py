"""Density runs as one page that loads nothing: the answer, the curves as SVG, every count with its evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jinja2

from leadline import __version__
from leadline.core.density import State
from leadline.faces.report.page import asset, policy

if TYPE_CHECKING:
    from leadline.app.density_results import Density
    from leadline.core.density import Level
    from leadline.core.density_comparison import DensityComparison

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 260, 62, 14, 12, 36
TICKS = 5
_CLASS = {State.HELD: "cleared", State.BROKE: "convicted", State.UNSURE: "suspected", State.FAILED: "convicted"}
Value = Callable[["Level"], float]


@dataclass(frozen=True, slots=True)
class _Axis:
    """From values to a stretch of pixels, from zero to a round number."""

    most: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value; values beyond the end are drawn at it."""
        return round(self.start + min(value / self.most, 1.0) * (self.end - self.start), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Pixels and labels of round values."""
        step = _round_step(self.most / TICKS)
        count = int(self.most / step + 1e-9)
        return [(self.at(i * step), f"{i * step:,.10g}") for i in range(count + 1)]


def _round_step(value: float) -> float:
    """1, 2 or 5 times a power of ten, at least ``value``."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= value * (1 - 1e-9))


def density_page(runs: Sequence[Density], comparison: DensityComparison | None = None) -> str:
    """The whole page of one density run, or of two with their comparison."""
    style = asset(("report.css", "density.css"))
    return (
        jinja2.Environment(
            loader=jinja2.PackageLoader("leadline.faces.report"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        .get_template("density.html.j2")
        .render(
            policy=policy("", style),
            style=style,
            version=__version__,
            headline=_first(runs[0].answer.sentence) if comparison is None else comparison.sentence,
            unlike=[] if comparison is None else comparison.unlike,
            charts=_charts(runs),
            runs=[_run(own) for own in runs],
            size=(WIDTH, HEIGHT),
        )
    )


def _first(text: str) -> str:
    """The first sentence; the rest stands with the run."""
    return f"{text.split('. ', maxsplit=1)[0].rstrip('.')}."


def _charts(runs: Sequence[Density]) -> list[dict[str, Any]]:
    levels = [level for own in runs for level in own.levels]
    if not levels:
        return []
    name = levels[0].latency_name
    bounds = [part.bound for level in levels for part in level.clauses if part.unit == "ms"]
    latency = _chart(runs, f"{name} of the worst instance, ms", lambda level: level.worst_ms, bounds[:1])
    return [_chart(runs, "Operations per second of all instances", lambda level: level.per_s.mean, []), latency]


def _chart(runs: Sequence[Density], title: str, value: Value, bounds: Sequence[float]) -> dict[str, Any]:
    """A line for each run, a dot for each count in the colour of its state."""
    levels = [level for own in runs for level in own.levels]
    known = [value(level) for level in levels if math.isfinite(value(level))]
    highest = max([*known, *bounds], default=1.0) or 1.0
    step = _round_step(highest / TICKS)
    across = _Axis(float(max(level.count for level in levels)), LEFT, WIDTH - RIGHT)
    up = _Axis(step * math.ceil(highest / step - 1e-9), HEIGHT - BOTTOM, TOP)
    lines: list[dict[str, Any]] = []
    for index, own in enumerate(runs):
        dots = [
            {
                "x": across.at(level.count),
                "y": up.at(value(level)),
                "state": _CLASS[level.state],
                "title": f"{level.count} instances: {value(level):,.4g}, {level.state.value}",
            }
            for level in own.by_count
            if math.isfinite(value(level))
        ]
        path = " ".join(f"{dot['x']},{dot['y']}" for dot in dots)
        lines.append({"index": index, "path": path, "dots": dots, "label": own.id})
    ticks = sorted({round(i * across.most / TICKS) for i in range(TICKS + 1)})
    return {
        "title": title,
        "lines": lines,
        "bounds": [(up.at(bound), f"{bound:.4g} is asked") for bound in bounds],
        "across": [(across.at(count), str(count)) for count in ticks],
        "up": up.ticks(),
        "summary": "; ".join(f"{d['title']}" for line in lines for d in line["dots"]),
    }


def _run(own: Density) -> dict[str, Any]:
    facts = [
        ("Workload", own.name),
        ("On", own.where),
        ("Service level of each", ", ".join(own.clauses)),
        ("Each asks for", f"{own.offered_per_s:.4g}/s" if math.isfinite(own.offered_per_s) else "a closed loop"),
        ("Each limited to", own.limits.words() if own.are_limited and own.limits.words() else "nothing"),
        ("Begun (UTC)", own.started[:19].replace("T", " ")),
        *((key.replace("_", " "), text) for key, text in own.host.items()),
    ]
    return {
        "id": own.id,
        "sentence": own.answer.sentence,
        "facts": facts,
        "rows": [_row(level) for level in own.by_count],
        "notes": own.notes,
        "latency": own.levels[0].latency_name if own.levels else "p95",
    }


def _row(level: Level) -> dict[str, Any]:
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
        "evidence": [*(level.reasons if level.state is not State.HELD else ()), *level.notes],
        "run": level.run,
    }


def _shown(value: float) -> str:
    return f"{value:,.4g}" if math.isfinite(value) and abs(value) < 1e4 else _large(value)


def _large(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "–"


def _between(low: float, high: float) -> str:
    return f"{_shown(low)} to {_shown(high)}" if math.isfinite(low) and math.isfinite(high) else "–"
