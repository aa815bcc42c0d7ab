"""`leadline facts`: what a guest can say of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Quiet

EPILOG = """\
Examples:

  leadline facts -o facts.json

  leadline facts --json
"""


def command(
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to a file. [default: stdout]", show_default=False)
    ] = None,
    root: Annotated[Path, typer.Option(help="Read the files under this folder instead.")] = Path("/"),
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Record a Linux guest's settings: kernel, disks, memory, clock, PostgreSQL.

    Run it on the guest as any user and give the file to diagnose or audit. It holds no passwords, addresses or command
    lines; read it before you send it.
    """
    from datetime import UTC, datetime

    from leadline.app.facts import record_facts
    from leadline.core.errors import UsageError
    from leadline.faces.cli.output import print_json, write_json

    facts = record_facts(root, datetime.now(UTC))
    if json or output is None:
        print_json("leadline.facts/1", **facts)
    if output is not None:
        try:
            write_json(output, facts)
        except OSError as error:
            raise UsageError(
                f"--output {output}",
                found=str(error.strerror),
                expected="a file that can be written",
                advice="Name another file.",
            ) from error
        typer.echo(f"{output}: facts of {facts['guests'][0]['name']}", err=json)
    hidden = facts["unreadable"]
    if hidden and not quiet:
        typer.echo(f"not readable by this user, left out: {len(hidden)} file(s), listed as unreadable", err=True)
