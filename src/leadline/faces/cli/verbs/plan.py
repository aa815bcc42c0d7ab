"""`leadline plan`: what to buy, how to size, where to put it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Html, Json, Quiet, read_paths, said_report
from leadline.faces.cli.outputs import Force, output_file

QUESTION = "size"
EPILOG = """\
Examples:

  leadline plan

  leadline plan protect --example

  leadline plan protect --set nodes=6 --set survives=2

  leadline plan queues --set iops=40000 --set latency_ms=1 --html queues.html

  leadline plan remote --set link=4g
"""


def command(
    ctx: typer.Context,
    planner_name: Annotated[
        str | None, typer.Argument(metavar="WHAT", help="The planner; without one, all are listed.")
    ] = None,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATHS]", help="Inventories and captures to take numbers from.", show_default=False),
    ] = None,
    *,
    inputs: Annotated[
        Path | None, typer.Option("--input", "-i", metavar="FILE", help="Inputs in YAML.", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One input, over the file's.", show_default=False),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Print a file of inputs with every key.")] = False,
    html: Html = None,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Size, place and configure: answers with their arithmetic, sources, bent rules and the settings to apply.

    Settings are printed, never applied. Exit 1 when nothing fits what was asked; the constraint that binds and the
    nearest answer are named.
    """
    from leadline.app.planning import make_plan, planner_of, planners
    from leadline.core.contracts.planner import example_text, parse_setting
    from leadline.faces.cli.output import print_json
    from leadline.faces.plans import document, list_planners, show_plan

    if planner_name is None:
        if json:
            known = [{"name": name, "about": planner.META.about} for name, planner in planners().items()]
            print_json("leadline.planners/1", planners=known)
        else:
            list_planners(planners())
        return
    if example and json:
        planner = planner_of(planner_name)
        inputs_of = planner.MODEL.model_validate(planner.META.example).model_dump(mode="json")
        print_json("leadline.plan-inputs/1", planner=planner_name, inputs=inputs_of)
        return
    if example:
        sys.stdout.write(example_text(planner_name, planner_of(planner_name)))
        return
    page = output_file(ctx, "html", html, force=force, reads=paths or [])
    capture = read_paths(ctx, paths, quiet=quiet).capture if paths else None
    planned = make_plan(planner_name, inputs, dict(parse_setting(text) for text in settings or []), capture)
    if page is not None:
        from leadline.faces.report.plan import write_plan

        said_report(page.path, write_plan(page, planned), quiet=quiet or json)
    if json:
        print_json("leadline.plan/1", **document(planned))
    else:
        show_plan(planned)
    if planned.plan.infeasible is not None:
        raise typer.Exit(1)
