"""Plans as text and as plain data: the answer, how it came out, what it bends, what to apply."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from leadline.core.model.units import symbol
from leadline.faces.cli.output import console
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from leadline.app.planning import PlannedAnswer
    from leadline.core.contracts.planner import Figure, Planner, Sheet

ROWS_SHOWN = 40


def document(planned: PlannedAnswer) -> dict[str, Any]:
    """Plain data for ``--json``."""
    return {
        "planner": planned.name,
        "inputs": planned.inputs.model_dump(mode="json"),
        "is_feasible": planned.plan.infeasible is None,
        **asdict(planned.plan),
    }


def list_planners(planners: Mapping[str, Planner]) -> None:
    """Every planner with the question it answers."""
    out = console()
    for name, planner in planners.items():
        wrapped(out, planner.META.about, f"{name:<9}")
    wrapped(out, "leadline plan NAME --example prints its inputs; leadline explain NAME its method.", style="dim")


def show_plan(planned: PlannedAnswer) -> None:
    """The answer first, then its arithmetic, tables, what it assumes and bends, and the settings."""
    out, plan = console(), planned.plan
    wrapped(out, plan.headline, style="bold")
    if plan.infeasible is not None:
        wrapped(out, plan.infeasible.constraint, "Does not fit: ", style="bold red")
        wrapped(out, plan.infeasible.nearest, "Nearest: ", style="yellow")
    for line in plan.evidence:
        wrapped(out, line, "measured: ", style="dim")
    _show_figures(out, plan.figures)
    for sheet in plan.sheets:
        _show_sheet(out, sheet)
    for title, lines in (("Assumed", plan.assumptions), ("Bent", [f"{b.rule}: {b.cost}" for b in plan.bends])):
        if lines:
            out.print()
            out.print(title, style="bold")
            for line in lines:
                wrapped(out, line, "- ", style="yellow" if title == "Bent" else "")
    for snippet in plan.snippets:
        out.print()
        wrapped(out, f"{snippet.title} ({snippet.tool}; printed, not applied)", style="bold")
        out.print(snippet.text.rstrip(), markup=False, soft_wrap=True)


def number(value: float | int | str) -> str:
    """A value of a plan for people: whole numbers whole, others with four significant digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value != value:  # noqa: PLR0124 - NaN
        return "not known"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 10_000 else f"{value:,.4g}"


def with_unit(figure: Figure) -> str:
    """The value of a figure with its unit."""
    unit = symbol(figure.unit)
    return f"{number(figure.value)} {unit}".rstrip() if unit != "%" else f"{number(figure.value)} %"


def _show_figures(out: Console, figures: Sequence[Figure]) -> None:
    """Print a table of figures; below it the numbered sources, each once."""
    if not figures:
        return
    out.print()
    sources = list(dict.fromkeys(figure.source for figure in figures if figure.source))
    table = plain_table("figure", "", "how it comes out")
    table.columns[0].no_wrap = True
    for figure in figures:
        mark = f" [{sources.index(figure.source) + 1}]" if figure.source else ""
        table.add_row(figure.name, Text(with_unit(figure), style="bold"), Text(f"{figure.arithmetic}{mark}".strip()))
    out.print(table)
    for number_of, source in enumerate(sources, 1):
        wrapped(out, source, f"[{number_of}] ", style="dim")


def _show_sheet(out: Console, sheet: Sheet) -> None:
    out.print()
    wrapped(out, sheet.title, style="bold")
    table = plain_table(*sheet.columns, right=numeric_columns(sheet))
    for row in sheet.rows[:ROWS_SHOWN]:
        table.add_row(*(number(cell) for cell in row))
    out.print(table)
    if len(sheet.rows) > ROWS_SHOWN:
        wrapped(out, f"and {len(sheet.rows) - ROWS_SHOWN} more rows, with --json or --html", style="dim")


def numeric_columns(sheet: Sheet) -> tuple[str, ...]:
    """Columns that hold numbers alone."""
    return tuple(
        column
        for index, column in enumerate(sheet.columns)
        if sheet.rows and all(not isinstance(row[index], str) for row in sheet.rows)
    )
