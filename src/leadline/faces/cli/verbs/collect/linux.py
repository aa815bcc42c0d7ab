"""`leadline collect linux`: this machine's own counters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Quiet

EPILOG = """\
Examples:

  leadline collect linux -o guest --seconds 2 --every 1
"""


def command(
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the recording to.")],
    seconds: Annotated[float, typer.Option(help="How long.")] = 600.0,
    every: Annotated[float, typer.Option(help="Seconds from sample to sample.")] = 1.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record this machine's disks, CPUs, memory, pressure and network as any user.

    Copies of the kernel's own files are appended to one text file that `leadline diagnose FOLDER` reads, also while it
    grows and after Ctrl-C or a crash.
    """
    from leadline.faces.cli.verbs.collect._sampling import sample

    sample("linux", "", output, every, seconds, json=json, quiet=quiet)
