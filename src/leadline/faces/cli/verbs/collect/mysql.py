"""`leadline collect mysql`: statistics of a running MySQL or MariaDB server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Quiet

EPILOG = """\
Examples:

  MYSQL_PWD=... leadline collect mysql mysql://monitor@db1:3306/ -o db1 --seconds 600

  MYSQL_PWD=... leadline collect mysql "mysql://monitor@localhost/?unix_socket=/run/mysqld/mysqld.sock" -o db1
"""


def command(
    dsn: Annotated[str, typer.Argument(help="mysql://user@host:3306/, or localhost with ?unix_socket=PATH.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the recordings to.")],
    seconds: Annotated[float, typer.Option(help="How long.")] = 600.0,
    every: Annotated[float, typer.Option(help="Seconds from sample to sample.")] = 5.0,
    active_sessions_every: Annotated[
        int, typer.Option(help="Milliseconds between samples of active sessions; 0: none.", min=0, max=60_000)
    ] = 1000,
    statement_texts: Annotated[
        bool, typer.Option("--statement-texts", help="Keep statements without literals.")
    ] = False,
    ca_file: Annotated[
        Path | None, typer.Option(help="Encrypt, and check the server's certificate against this authority.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record a server's status variables, InnoDB's status and its sessions, without changing anything.

    Every sample is appended to files that `leadline diagnose FOLDER` reads, also while they grow and after Ctrl-C or a
    crash. A password comes from MYSQL_PWD or the DSN and is written nowhere. Of a statement the verb and the first
    table are kept.
    """
    from leadline.faces.cli.verbs.collect._sampling import sample

    authority = "" if ca_file is None else str(ca_file)
    sessions = {"active_sessions_every_ms": active_sessions_every, "statement_texts": statement_texts}
    sample("mysql", dsn, output, every, seconds, json=json, quiet=quiet, ca_file=authority, **sessions)
