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
    active_sessions_every: Annotated[
        int, typer.Option(help="Milliseconds between samples of active sessions; 0: none.", min=0, max=60_000)
    ] = 100,
    statement_texts: Annotated[
        bool, typer.Option("--statement-texts", help="Keep statements without literals and application names.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record a server's statistics views again and again, without changing anything.

    Every sample is appended to CSV files that `leadline diagnose FOLDER` reads, also while they grow and after Ctrl-C
    or a crash. A password comes from PGPASSFILE, PGPASSWORD or the DSN and is written nowhere. Of a statement the verb
    and the first table are kept.
    """
    from leadline.faces.cli.verbs.collect._sampling import sample

    sessions = {"active_sessions_every_ms": active_sessions_every, "statement_texts": statement_texts}
    sample("postgresql", dsn, output, every, seconds, json=json, quiet=quiet, **sessions)
