"""Real checks of simulations as text and as plain data: the plan, and simulated beside measured."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

import typer

from leadline.faces.cli.output import console
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from leadline.app.simulate.checking_results import CheckPlan, CheckRow, RealCheck

WORDS = {
    "iops": "per s",
    "latency_ms_mean": "mean ms",
    "latency_ms_p99": "p99 ms",
    "iops_ratio": "per s, times the first",
}


def show_check_plan(plan: CheckPlan) -> None:
    """Print on stderr what a check on this machine will do, before it starts."""
    typer.echo(f"Plan: {plan.sentences[0]}; {plan.expected_s / 60.0:.1f} min", err=True)
    for sentence in plan.sentences[1:]:
        typer.echo(f"  {sentence}", err=True)


def check_cells(row: CheckRow) -> tuple[str, str, str, str, str, str]:
    """Variant, entity, measure, simulated, measured, distance."""
    distance = f"{row.distance_pct:+.1f} %" if isfinite(row.distance_pct) else "-"
    measure = WORDS.get(row.measure, row.measure)
    return row.variant, row.entity, measure, _number(row.simulated), _number(row.measured), distance


def _number(value: float) -> str:
    if not isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def show_check(checked: RealCheck) -> None:
    """Print a table of simulated beside measured numbers for each variant, then the devices and notes."""
    out = console()
    out.print()
    wrapped(out, f"Simulated beside measured (by {checked.by}; distance of the simulation)")
    for variant in dict.fromkeys(row.variant for row in checked.rows):
        if variant:
            out.print(variant, style="bold", markup=False)
        table = plain_table(
            "", "measure", "simulated", "measured", "distance", right=("simulated", "measured", "distance")
        )
        for row in checked.rows:
            if row.variant == variant:
                table.add_row(*check_cells(row)[1:])
        out.print(table)
    for calibration in checked.calibrations:
        points = ", ".join(f"{count} outstanding {mean_ms:.3g} ms" for count, _, mean_ms in calibration.points)
        wrapped(out, f"device without limits: {points}", style="dim")
    for note in checked.notes:
        wrapped(out, f"note: {note}", style="yellow")
    wrapped(out, f"kept as {len(checked.runs)} run{'s' * (len(checked.runs) != 1)}: leadline runs", style="dim")


def check_document(checked: RealCheck) -> dict[str, Any]:
    """Plain data for ``--json``."""
    return {
        "by": checked.by,
        "rows": [{**asdict(row), "distance_pct": row.distance_pct} for row in checked.rows],
        "calibrations": [
            {
                "latency_ns": calibration.latency_ns,
                "points": [list(point) for point in calibration.points],
                "spread": calibration.spread,
            }
            for calibration in checked.calibrations
        ],
        "runs": list(checked.runs),
        "notes": list(checked.notes),
    }
