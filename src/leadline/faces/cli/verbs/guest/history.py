"""`leadline guest history`: what was applied."""

from __future__ import annotations

from pathlib import Path

import typer

from leadline.faces.cli.options import Json
from leadline.faces.cli.verbs.guest._options import Root

EPILOG = """\
Examples:

  leadline guest history --root image
"""


def command(*, root: Root = Path("/"), json: Json = False) -> None:
    """List what was applied under a root, oldest first."""
    from leadline.app.optimising import history
    from leadline.faces.cli.output import print_json

    entries = history(root)
    if json:
        print_json(
            "leadline.guest/1", history=[{**e.to_dict(), "files": [f["path"] for f in e.files]} for e in entries]
        )
        return
    for entry in entries:
        state = "reverted" if entry.reverted else "applied"
        typer.echo(f"{entry.id}  {entry.time}  {state:<9} {entry.template}: {', '.join(entry.items)}")
    if not entries:
        typer.echo("Nothing was applied here.")
