"""`leadline facts`: what a guest can say of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Quiet
from leadline.faces.cli.outputs import Force, output_file

QUESTION = "record"
EPILOG = """\
Examples:

  leadline facts -o facts.json

  leadline facts --json
"""


def command(
    ctx: typer.Context,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to a file. [default: stdout]", show_default=False)
    ] = None,
    root: Annotated[Path, typer.Option(help="Read the files under this folder instead.")] = Path("/"),
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Record a Linux guest's settings: kernel, disks, memory, clock, PostgreSQL.

    Run it on the guest as any user and give the file to diagnose or audit. It holds no passwords, addresses or command
    lines (of the kernel's only options for CPU fixes); read it before you send it.
    """
    from datetime import UTC, datetime

    from leadline.app.read.machine_facts import record_facts
    from leadline.faces.cli.output import print_json, write_json

    file = output_file(ctx, "output", output, force=force)
    facts = record_facts(root, datetime.now(UTC))
    if file is not None:
        write_json(file, facts)
    if json or file is None:
        print_json("leadline.facts/1", **facts)
    if file is not None:
        typer.echo(f"{output}: facts of {facts['guests'][0]['name']}", err=json)
    hidden = facts["unreadable"]
    if hidden and not quiet:
        typer.echo(f"not readable by this user, left out: {len(hidden)} file(s), listed as unreadable", err=True)
