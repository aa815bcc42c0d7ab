"""What `bench fleet` and `bench fleet --easy` have in common: problems of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from leadline.app.fleet.model import FleetPlan


def show_problems(plan: FleetPlan, schema: str, *, json: bool) -> None:
    """Print all that speaks against a fleet; nothing was made."""
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table

    if json:
        rows = [{"where": problem.where, "found": problem.found, "advice": problem.advice} for problem in plan.problems]
        print_json(schema, problems=rows)
    out = console(stderr=True)
    table = plain_table("on", "found", "do")
    for problem in plan.problems:
        table.add_row(problem.where, problem.found, problem.advice)
    out.print(table, markup=False)
    typer.echo(f"error: bench fleet: {len(plan.problems)} problems; expected none. Nothing was made.", err=True)
