"""`leadline runs export`: a run as one JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.outputs import Force, output_file

EPILOG = """\
Examples:

  leadline runs export last -o run.json
"""


def command(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(help="The run.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON file to write.")],
    force: Force = False,
) -> None:
    """Write a run with all its histograms and seconds to a JSON file."""
    from leadline.faces.cli.output import write_json
    from leadline.stores.runs import RunStore, document

    file = output_file(ctx, "output", output, force=force)
    stored_run = RunStore().get(run)
    write_json(file, {"schema": "leadline.run/1", "run": document(stored_run)})
    typer.echo(f"{output}: {stored_run.id}")
