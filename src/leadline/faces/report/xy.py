"""Charts of one quantity against another, as SVG shapes ready to be drawn: the report's own charts are over time only.

No script is needed for them, so they are in print and in mail as they are on the screen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor, isfinite, log10, nan
from typing import ClassVar

WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 24, 26, 44
CAP = 4  # half the width of a whisker's end
TICKS = 6
COLOURS = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """A point: where, and what is said of it when it is pointed at.

    Attributes:
        hollow: not to be leaned on.
        low: where its whisker begins, in units of y; NaN for no whisker.
        high: where its whisker ends, in units of y; NaN for no whisker.
        state: the class of a state (``cleared``, ``suspected``, ``convicted``) whose colour it has; else its line's.
    """

    x: float
    y: float
    text: str
    hollow: bool = False
    low: float = nan
    high: float = nan
    state: str = ""

    @property
    def has_whisker(self) -> bool:
        """Whether the interval is known."""
        return isfinite(self.low) and isfinite(self.high)


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
class XyChart:
    """What is drawn.

    Attributes:
        log_y: y on a logarithmic axis.
        whole_x: x counts things: no ticks between whole numbers.
        summary: what is said to those who cannot see it, after the title.
        whiskers: what the marks' whiskers show.
        hollow: what hollow marks say.
    """

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    levels: tuple[Level, ...] = ()
    log_y: bool = False
    whole_x: bool = False
    summary: str = "the numbers are in the table"
    whiskers: str = "95 % intervals"
    hollow: str = "do not lean on it"


@dataclass(slots=True)
class Drawn:
    """A chart in the coordinates of its picture.

    Ticks and levels are (place, label), paths (shape, line), whiskers (shape, colour), marks (x, y, mark, colour);
    ``lines`` are those of which anything is shown.
    """

    width: ClassVar[int] = WIDTH
    height: ClassVar[int] = HEIGHT
    left: ClassVar[int] = LEFT
    right: ClassVar[int] = WIDTH - RIGHT
    floor: ClassVar[int] = HEIGHT - BOTTOM

    chart: XyChart
    x_ticks: list[tuple[float, str]] = field(default_factory=list)
    y_ticks: list[tuple[float, str]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    paths: list[tuple[str, Line]] = field(default_factory=list)
    whiskers: list[tuple[str, int]] = field(default_factory=list)
    marks: list[tuple[float, float, Mark, int]] = field(default_factory=list)
    levels: list[tuple[float, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to places between the first and the last tick."""

    ticks: list[float]
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """The place of a value; one beyond the axis is at its end."""
        low, high, clipped = self.ticks[0], self.ticks[-1], min(max(value, self.ticks[0]), self.ticks[-1])
        if self.is_log:
            low, high, clipped = log10(low), log10(high), log10(clipped)
        return round(self.start + (clipped - low) / (high - low) * (self.end - self.start), 1)

    def labelled(self) -> list[tuple[float, str]]:
        """The ticks as (place, label)."""
        return [(self.at(tick), number(tick)) for tick in self.ticks]


def drawn(chart: XyChart) -> Drawn | None:
    """The chart's shapes; None when nothing of it was measured. Points that are not measured are left out."""
    shapes = [[(x, y) for x, y in line.points if _shown(chart, x, y)] for line in chart.lines]
    marks = [[mark for mark in line.marks if _shown(chart, mark.x, mark.y)] for line in chart.lines]
    scales = _scales(
        chart, [point for shape in shapes for point in shape], [mark for line_marks in marks for mark in line_marks]
    )
    if scales is None:
        return None
    across, up = scales
    drawing = Drawn(chart, across.labelled(), up.labelled())
    drawing.levels = [(up.at(level.y), level.label) for level in chart.levels if _on_axis(chart, level.y)]
    for line, shape, line_marks in zip(chart.lines, shapes, marks, strict=True):
        places = [f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in shape]
        if len(places) > 1:
            drawing.paths.append((f"M{'L'.join(places)}", line))
        if places or line_marks:
            drawing.lines.append(line)
        colour = line.colour % COLOURS
        drawing.whiskers += [(_whisker(across.at(mark.x), mark, up), colour) for mark in line_marks if mark.has_whisker]
        drawing.marks += [(across.at(mark.x), up.at(mark.y), mark, colour) for mark in line_marks]
    return drawing


def _scales(chart: XyChart, points: list[tuple[float, float]], marks: list[Mark]) -> tuple[_Scale, _Scale] | None:
    """The axes, long enough for all that is shown: x from 0, y from 0 unless it is logarithmic."""
    places = points + [(mark.x, mark.y) for mark in marks]
    if not places:
        return None
    ends = [end for mark in marks if mark.has_whisker for end in (mark.low, mark.high)]
    heights = [y for y in (*(y for _, y in places), *(level.y for level in chart.levels), *ends) if _on_axis(chart, y)]
    x_ticks = ticks(0.0, max(x for x, _ in places), 1.0 if chart.whole_x else 0.0)
    y_ticks = log_ticks(min(heights), max(heights)) if chart.log_y else ticks(0.0, max(heights))
    return _Scale(x_ticks, LEFT, WIDTH - RIGHT), _Scale(y_ticks, HEIGHT - BOTTOM, TOP, is_log=chart.log_y)


def _whisker(x: float, mark: Mark, up: _Scale) -> str:
    """A vertical with a cap at each end; an end below the axis has none: it goes on."""
    low, high = up.at(mark.low), up.at(mark.high)
    ends = [place for value, place in ((mark.low, low), (mark.high, high)) if value >= up.ticks[0]]
    caps = "".join(f"M{x - CAP:.1f},{place:.1f}H{x + CAP:.1f}" for place in ends)
    return f"M{x:.1f},{low:.1f}V{high:.1f}{caps}"


def _shown(chart: XyChart, x: float, y: float) -> bool:
    return isfinite(x) and x >= 0.0 and _on_axis(chart, y)


def _on_axis(chart: XyChart, y: float) -> bool:
    return isfinite(y) and (y > 0.0 if chart.log_y else y >= 0.0)


def ticks(low: float, high: float, step_min: float = 0.0) -> list[float]:
    """Round numbers, at least ``step_min`` apart, from at or below ``low`` to at or above ``high``.

    >>> ticks(0.0, 730.0), ticks(0.0, 0.0), ticks(0.0, 2.0, 1.0)
    ([0.0, 200.0, 400.0, 600.0, 800.0], [0.0, 1.0], [0.0, 1.0, 2.0])
    """
    span = high - low
    if span <= 0.0:
        return [low, low + 1.0]
    rough = max(span / TICKS, step_min)
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
