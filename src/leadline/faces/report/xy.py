"""Charts of one quantity against another, as SVG shapes ready to be drawn: the report's own charts are over time only.

No script is needed for them, so they are in print and in mail as they are on the screen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor, isfinite, log10

WIDTH, HEIGHT = 760.0, 340.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 16.0, 26.0, 44.0
TICKS = 6
COLOURS = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """A point: where, and what is said of it when it is pointed at; hollow ones are not to be leaned on."""

    x: float
    y: float
    text: str
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """Points joined in the order given; without marks a smooth line such as a law."""

    name: str
    points: tuple[tuple[float, float], ...]
    marks: tuple[Mark, ...] = ()
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A value of y that is drawn across, with its label."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn; y on a logarithmic axis where it is said."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    levels: tuple[Level, ...] = ()
    log_y: bool = False


@dataclass(slots=True)
class Drawn:
    """A chart in the coordinates of its picture: ticks as (place, label), paths, marks as (x, y, mark, colour)."""

    chart: Chart
    x_ticks: list[tuple[float, str]] = field(default_factory=list)
    y_ticks: list[tuple[float, str]] = field(default_factory=list)
    paths: list[tuple[str, Line]] = field(default_factory=list)
    marks: list[tuple[float, float, Mark, int]] = field(default_factory=list)
    levels: list[tuple[float, str]] = field(default_factory=list)


def drawn(chart: Chart) -> Drawn | None:
    """The chart's shapes; None when nothing of it was measured. Points that are not measured are left out."""
    shapes = [[(x, y) for x, y in line.points if _shown(chart, x, y)] for line in chart.lines]
    every = [point for shape in shapes for point in shape]
    if not every:
        return None
    heights = [y for _, y in every] + [level.y for level in chart.levels if not chart.log_y or level.y > 0]
    x_ticks = ticks(0.0, max(x for x, _ in every))
    y_ticks = log_ticks(min(heights), max(heights)) if chart.log_y else ticks(0.0, max(heights))

    def x_of(value: float) -> float:
        return round(LEFT + value / x_ticks[-1] * (WIDTH - LEFT - RIGHT), 1)

    def y_of(value: float) -> float:
        low, high, own = y_ticks[0], y_ticks[-1], value
        if chart.log_y:
            low, high, own = log10(low), log10(high), log10(own)
        return round(HEIGHT - BOTTOM - (own - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    found = Drawn(chart, [(x_of(t), number(t)) for t in x_ticks], [(y_of(t), number(t)) for t in y_ticks])
    found.levels = [(y_of(level.y), level.label) for level in chart.levels if not chart.log_y or level.y > 0]
    for line, shape in zip(chart.lines, shapes, strict=True):
        places = [f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in shape]
        if len(places) > 1:
            found.paths.append((f"M{'L'.join(places)}", line))
        for mark in line.marks:
            if _shown(chart, mark.x, mark.y):
                found.marks.append((x_of(mark.x), y_of(mark.y), mark, line.colour % COLOURS))
    return found


def _shown(chart: Chart, x: float, y: float) -> bool:
    return isfinite(x) and isfinite(y) and x >= 0.0 and (y > 0.0 if chart.log_y else y >= 0.0)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers, evenly spaced, from at or below ``low`` to at or above ``high``.

    >>> ticks(0.0, 730.0), ticks(0.0, 0.0)
    ([0.0, 200.0, 400.0, 600.0, 800.0], [0.0, 1.0])
    """
    span = high - low
    if span <= 0.0:
        return [low, low + 1.0]
    rough = span / TICKS
    power = 10.0 ** floor(log10(rough))
    step = power * next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough)
    first, last = floor(low / step), ceil(high / step - 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten, from at or below ``low`` to at or above ``high``; over long spans powers alone.

    >>> log_ticks(3.0, 40.0)
    [2.0, 5.0, 10.0, 20.0, 50.0]
    """
    powers = range(floor(log10(low)) - 1, ceil(log10(high)) + 2)
    factors = (1.0, 2.0, 5.0) if log10(high / low) <= 3.0 else (1.0,)
    every = [float(f"{factor * 10.0**power:.3g}") for power in powers for factor in factors]
    first = max(index for index, value in enumerate(every) if value <= low)
    last = min(index for index, value in enumerate(every) if value >= high)
    return every[first : max(last, first + 1) + 1]


def number(value: float) -> str:
    """As an axis shows it.

    >>> number(12000.0), number(0.25), number(2.0)
    ('12,000', '0.25', '2')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"
