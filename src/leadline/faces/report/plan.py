"""The page of a plan: the answer, its arithmetic, tables, pictures, what it bends, and the settings to apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.faces.plans import number, numeric_columns, with_unit
from leadline.faces.report import write_page
from leadline.faces.report.page import standalone
from leadline.faces.report.xy import Line, XyChart, drawn

if TYPE_CHECKING:
    from pathlib import Path

    from leadline.app.planning import PlannedAnswer
    from leadline.core.io.outputs import Output
    from leadline.core.model.picture import Picture


def write_plan(output: Output | Path, planned: PlannedAnswer) -> int:
    """Write the page; returns its size in bytes.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    return write_page(output, plan_page(planned))


def plan_page(planned: PlannedAnswer) -> str:
    """The whole page as a string."""
    plan = planned.plan
    return standalone(
        "plan.html.j2",
        name=planned.name,
        about=planned.planner.META.about,
        plan=plan,
        figures=[(figure, with_unit(figure)) for figure in plan.figures],
        sheets=[
            (sheet, [[number(cell) for cell in row] for row in sheet.rows], numeric_columns(sheet))
            for sheet in plan.sheets
        ],
        charts=[chart for chart in (drawn(_chart(picture)) for picture in plan.pictures) if chart is not None],
        inputs=planned.inputs.model_dump(mode="json"),
    )


def _chart(picture: Picture) -> XyChart:
    lines = tuple(
        Line(curve.name, tuple(zip(curve.x, curve.y, strict=True)), (), colour, curve.is_published)
        for colour, curve in enumerate(picture.curves)
    )
    return XyChart(f"{picture.y_label} by {picture.x_label}", picture.x_label, picture.y_label, lines)
