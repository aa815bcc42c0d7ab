"""`leadline watch init`: write the settings of a first watch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.consent import Yes, wanted
from leadline.faces.cli.outputs import Force, output_file

EPILOG = """\
Examples:

  leadline watch init

  leadline watch init --yes -o everything-here.yaml --force
"""


def command(
    ctx: typer.Context,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path("watch.yaml"),
    yes: Yes = False,
    force: Force = False,
) -> None:
    """Ask what to watch and write watch.yaml: this machine, and the databases that run on it.

    With --yes it asks nothing and watches all that is here.
    """
    from leadline.app.watch.first_settings import databases_here, settings_text

    file = output_file(ctx, "output", output, force=force)
    asks = not yes and sys.stdin.isatty()
    has_linux = Path("/proc/stat").exists()
    if asks and has_linux:
        has_linux = wanted("Watch this machine?", default=True)
    databases = [
        one for one in databases_here() if not asks or wanted(f"Watch {one.name} at {one.target}?", default=True)
    ]
    mail = None
    if asks and wanted("Send mail when something goes wrong?", default=False):
        mail = typer.prompt("SMTP server"), typer.prompt("Mail address")
    if file is not None:
        file.write(settings_text(databases, has_linux=has_linux, mail=mail).encode())
    names = [*(["this machine"] if has_linux else []), *(one.name for one in databases)]
    typer.echo(f"{output}: watches {', '.join(names) or 'nothing yet; add a source'}")
    typer.echo("Next: leadline watch check, then leadline watch")
