"""The page of published figures: the claim, its source, what was published and found, the picture, the verdict, why."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from leadline.core.contracts.docstrings import paragraphs
from leadline.core.contracts.experiment import VERIFIED, FigureVerdict
from leadline.faces.report import write_page
from leadline.faces.report.page import standalone
from leadline.faces.report.xy import Line, Mark, XyChart, drawn
from leadline.faces.reproductions import basis, counts, error, published, sentence, value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from leadline.app.simulate.reproducing import Reproduction
    from leadline.core.contracts.experiment import Published
    from leadline.core.io.outputs import Output
    from leadline.core.model.picture import Picture

STATES = {
    FigureVerdict.REPRODUCED: "cleared",
    FigureVerdict.DIRECTION_ONLY: "suspected",
    FigureVerdict.NOT_REPRODUCED: "convicted",
}
GAUGE_WIDTH, GAUGE_MIDDLE = 140.0, 70.0
GAUGE_SPAN = 3.0  # tolerances from the middle to an end
BAR_WIDTH = 1000.0
HEADINGS = ("Setup", "Run", "Limits")


@dataclass(frozen=True, slots=True)
class Gauge:
    """Where an error lies: the band of the tolerance around 0 and a mark, in pixels; at an end, it lies beyond."""

    band_start: float
    band_width: float
    place: float
    is_beyond: bool


def write_reproductions(output: Output | Path, reproductions: Sequence[Reproduction]) -> int:
    """Write the page; returns its size in bytes.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    return write_page(output, reproduction_page(reproductions))


def reproduction_page(reproductions: Sequence[Reproduction]) -> str:
    """The whole page as a string."""
    return standalone(
        "reproduction.html.j2",
        sentence=sentence(reproductions),
        bar=bar(reproductions),
        facts=[(kind.value.capitalize(), str(count)) for kind, count in counts(reproductions).items()]
        + [
            ("Scenarios simulated", f"{sum(len(reproduction.runs) for reproduction in reproductions):,}"),
            ("Events", f"{sum(run.event_count for reproduction in reproductions for run in reproduction.runs):,}"),
        ],
        figures=[_figure(reproduction) for reproduction in reproductions],
        gauge_width=GAUGE_WIDTH,
        gauge_middle=GAUGE_MIDDLE,
    )


def bar(reproductions: Sequence[Reproduction]) -> list[dict[str, Any]]:
    """The verdicts as parts of one bar: state, start and width [px], words."""
    parts, start = [], 0.0
    for kind, count in counts(reproductions).items():
        width = BAR_WIDTH * count / max(len(reproductions), 1)
        if count:
            parts.append({"state": STATES[kind], "start": start, "width": width, "text": f"{count} {kind.value}"})
        start += width
    return parts


def gauge(part: Published, tolerance: float) -> Gauge | None:
    """Where the error of a comparison lies; None where nothing was measured."""
    if not isfinite(part.error):
        return None
    half = GAUGE_MIDDLE / GAUGE_SPAN
    place = part.error / tolerance * half if tolerance > 0.0 else 0.0
    inside = min(max(place, 4.0 - GAUGE_MIDDLE), GAUGE_MIDDLE - 4.0)
    return Gauge(GAUGE_MIDDLE - half, 2.0 * half, round(GAUGE_MIDDLE + inside, 1), inside != place)


def _figure(reproduction: Reproduction) -> dict[str, Any]:
    meta, findings = reproduction.meta, reproduction.findings
    rows = [
        {
            "name": part.name,
            "published": published(part),
            "found": value(part.found, part.unit),
            "error": error(part),
            "gauge": gauge(part, meta.tolerance),
            "state": "" if part.is_calibrated else "cleared" if part.is_within(meta.tolerance) else "suspected",
            "is_calibrated": part.is_calibrated,
        }
        for part in findings.comparisons
    ]
    chart = None if findings.picture is None else drawn(picture(reproduction.title, findings.picture))
    return {
        "id": reproduction.name,
        "state": STATES[reproduction.verdict],
        "verdict": reproduction.verdict.value,
        "claim": meta.claim,
        "source": f"{meta.source} ({VERIFIED[meta.verified]})",
        "basis": basis(meta),
        "rows": rows,
        "checks": findings.checks,
        "chart": chart,
        "why": findings.why,
        "sections": [
            (name, paragraphs(reproduction.sections.get(name, "")))
            for name in HEADINGS
            if reproduction.sections.get(name)
        ],
        "runs": reproduction.runs,
    }


def picture(title: str, given: Picture) -> XyChart:
    """An experiment's picture as a chart; what was published is hollow and dashed, in the colour of what was found."""
    names = [curve.name for curve in given.curves if not curve.is_published]
    lines = []
    for number, curve in enumerate(given.curves):
        plain_name = curve.name.removesuffix(", published")
        colour = names.index(plain_name) if plain_name in names else number
        points = tuple(zip(curve.x, curve.y, strict=True))
        words = "published" if curve.is_published else "Leadline"
        marks = tuple(Mark(x, y, f"{curve.name}, {words}: {y:.4g}", hollow=curve.is_published) for x, y in points)
        name = f"{plain_name}, published" if curve.is_published else curve.name
        lines.append(Line(name, points, marks, colour, dashed=curve.is_published))
    return XyChart(title, given.x_label, given.y_label, tuple(lines), hollow="published")
