"""`leadline recorder`: a script that records where nothing can be installed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json
from leadline.faces.cli.outputs import Force, output_file

QUESTION = "record"
EPILOG = """\
Examples:

  leadline recorder

  leadline recorder linux -o record.sh

  leadline recorder linux postgresql --minutes 30 -o record-db.sh

  leadline recorder windows sqlserver -o record.ps1
"""


def command(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None, typer.Argument(help="What to record; none: list the targets.", show_default=False)
    ] = None,
    *,
    minutes: Annotated[int, typer.Option(min=1, max=1440, help="How long it records.")] = 10,
    interval: Annotated[int, typer.Option(min=1, max=3600, help="Seconds between two samples.")] = 1,
    max_mib: Annotated[int, typer.Option(min=1, max=100_000, help="It ends when its files are larger.")] = 200,
    with_queries: Annotated[bool, typer.Option("--with-queries", help="Also texts of statements.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to a file. [default: stdout]", show_default=False)
    ] = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Print a script that records where nothing can be installed.

    Send it to whoever may log in there. It is readable, only reads, uses what is there (sh with /proc, psql, esxtop,
    typeperf), ends by itself and leaves one archive: give that to diagnose.
    """
    from leadline.app.recorders import RecorderAsk, script

    file = output_file(ctx, "output", output, force=force)
    if not targets:
        _list(json=json)
        return
    text = script(targets, RecorderAsk(minutes, interval, max_mib, with_queries))
    if file is None:
        typer.echo(text, nl=False)
        return
    file.write(text.encode())
    typer.echo(f"{output}: read it, send it, and give the archive it makes to leadline diagnose.", err=True)


def _list(*, json: bool) -> None:
    """The targets, what each records and what it was tried on."""
    from leadline.app.recorders import parts
    from leadline.faces.cli.output import console, print_json

    known = parts()
    if json:
        listed = [
            {"name": p.name, "target": p.target, "collects": p.collects, "queries": p.queries, "tried": p.tried}
            for p in known.values()
        ]
        print_json("leadline.recorders/1", targets=listed)
        return
    out = console()
    for part in known.values():
        out.print(f"{part.name:<12} {part.target}", markup=False, highlight=False)
        out.print(f"{'':<12} tried on: {part.tried}", markup=False, highlight=False, style="dim")
    out.print("\nOne script may record several: leadline recorder linux postgresql > record.sh", markup=False)
