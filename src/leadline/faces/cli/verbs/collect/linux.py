"""`leadline collect linux`: the counters of this machine, or of one that is reached by SSH."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Quiet

EPILOG = """\
Examples:

  leadline collect linux -o guest --seconds 2 --every 1

  SSH_AUTH_SOCK=... leadline collect linux ssh://monitor@db1 -o db1 --seconds 600
"""


def command(
    target: Annotated[str, typer.Argument(help="This machine where it is left out, or ssh://user@host:22.")] = "",
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the recording to.")],
    seconds: Annotated[float, typer.Option(help="How long.")] = 600.0,
    every: Annotated[float, typer.Option(help="Seconds from sample to sample.")] = 1.0,
    identity: Annotated[str, typer.Option(help="File of the private key to log in with, for ssh://.")] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record a machine's disks, CPUs, memory, pressure and network as any user.

    Copies of the kernel's own files are appended to one text file that `leadline diagnose FOLDER` reads, also while it
    grows and after Ctrl-C or a crash. By ssh:// nothing is installed or written on the other machine, and its host key
    must be known.
    """
    from leadline.faces.cli.verbs.collect._sampling import sample

    options = {"identity": identity} if identity else {}
    sample("linux", target, output, every, seconds, json=json, quiet=quiet, **options)
