"""`leadline guest export`: a PowerShell script for a Windows guest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Quiet
from leadline.faces.cli.outputs import Force, output_file
from leadline.faces.cli.verbs.guest._options import All, Leave, Take

EPILOG = """\
Examples:

  leadline guest export

  leadline guest export --take rss -o database.ps1

  leadline guest export --from template.xml -o vdi.ps1
"""


def command(
    ctx: typer.Context,
    *,
    template: Annotated[str, typer.Option("--template", "-t", help="windows-database.")] = "windows-database",
    origin: Annotated[
        Path | None, typer.Option("--from", help="An OS Optimization Tool template (XML).", show_default=False)
    ] = None,
    take: Take = None,
    leave: Leave = None,
    every: All = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. [default: stdout]", show_default=False)
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a PowerShell script that does on Windows what a template intends.

    Leadline does not run it and has not tested it on Windows: only its syntax is checked. It shows what it would
    change; with -Apply it keeps a journal and changes it, with -Revert it goes back.
    """
    from leadline.app.optimising import export

    file = output_file(ctx, "output", output, force=force)
    script = export(template, origin, take or [], leave or [], every=every)
    if file is None:
        typer.echo(script.text, nl=False)
    else:
        file.write(script.encoded)
    if not quiet:
        typer.echo(f"{len(script.items)} item(s) written; not tested on Windows: read it first", err=True)
        for untaken in script.left:
            typer.echo(f"left out: {untaken.step.name[:60]}: {untaken.why}", err=True)
