"""`leadline runs baseline forget`: a baseline no more."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline runs baseline forget passing
"""


def command(name: Annotated[str, typer.Argument(help="Name of the baseline.")], *, json: Json = False) -> None:
    """Judge no run against a baseline any more; its runs are kept."""
    from leadline.app.measure.baselines import forget
    from leadline.faces.cli.output import print_json
    from leadline.stores.runs import RunStore

    runs = forget(RunStore(), name)
    if json:
        print_json("leadline.baseline/1", name=name, runs=[])
    else:
        typer.echo(f"{name} is no baseline any more; its {len(runs)} run{'s' if len(runs) > 1 else ''} stay")
