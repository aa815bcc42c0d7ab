"""`leadline runs export`: a run as one JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EPILOG = """\
Examples:

  leadline runs export last -o run.json
"""


def command(
    run: Annotated[str, typer.Argument(help="The run.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON file to write.")],
) -> None:
    """Write a run with all its histograms and seconds to a JSON file."""
    from leadline.core.errors import UsageError
    from leadline.faces.cli.output import write_json
    from leadline.stores.runs import RunStore, document

    found = RunStore().get(run)
    try:
        write_json(output, {"schema": "leadline.run/1", "run": document(found)})
    except OSError as error:
        raise UsageError(
            f"--output {output}",
            found=str(error.strerror),
            expected="a file that can be written",
            advice="Another one.",
        ) from error
    typer.echo(f"{output}: {found.id}")
