"""`leadline collect postgresql`: statistics of a running server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Quiet

EPILOG = """\
Examples:

  PGPASSFILE=... leadline collect postgresql "host=db1 user=monitor" -o db1 --seconds 600

  PGHOST=/run/postgresql leadline collect postgresql -o db1
"""


def command(
    dsn: Annotated[str, typer.Argument(help="Where it is, as for psql; PGHOST and others count.")] = "",
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the recordings to.")],
    seconds: Annotated[float, typer.Option(help="How long.")] = 600.0,
    every: Annotated[float, typer.Option(help="Seconds from sample to sample.")] = 5.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record a server's statistics views again and again, without changing anything.

    Every sample is appended to CSV files that `leadline diagnose FOLDER` reads, also while they grow and after Ctrl-C
    or a crash. A password comes from PGPASSFILE, PGPASSWORD or the DSN and is written nowhere.
    """
    from leadline.app.recording import record
    from leadline.faces.cli.output import print_json, work_progress

    with work_progress("recording", quiet=quiet) as progress:
        done = record("postgresql", dsn, output, every_s=every, seconds=seconds, progress=progress)
    for note in done.notes if not quiet else ():
        typer.echo(f"postgresql: {note}", err=True)
    if json:
        print_json("leadline.recording/1", output=str(output), samples=done.sample_count, notes=list(done.notes))
    else:
        typer.echo(f"{output}: {done.sample_count} samples; next: leadline diagnose {output}")
