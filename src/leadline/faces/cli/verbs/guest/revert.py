"""`leadline guest revert`: put back what was there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.consent import Yes, agree
from leadline.faces.cli.options import Json
from leadline.faces.cli.verbs.guest._options import Root

EPILOG = """\
Examples:

  leadline guest revert --root image --yes
"""


def command(
    entry: Annotated[
        str | None, typer.Argument(help="Which application. [default: the last]", show_default=False)
    ] = None,
    *,
    root: Root = Path("/"),
    yes: Yes = False,
    force: Annotated[bool, typer.Option("--force", help="Revert files that were changed since, too.")] = False,
    json: Json = False,
) -> None:
    """Print what would be put back, ask, and restore every file of an application exactly.

    Files that somebody changed since are left and named; --force puts them back too.
    """
    from leadline.app.optimising import plan_revert, revert
    from leadline.faces.cli.output import print_json

    planned, fates = plan_revert(root, entry, force=force)
    lines = [f"Plan for {root}: take back {planned.id}", *(f"  {fate} {path}" for path, fate in fates.items())]
    agree("guest revert", lines, yes=yes, quiet=json)
    reverted, left = revert(root, planned.id, force=force)
    if json:
        print_json("leadline.guest/1", reverted=reverted.id, left=left)
    else:
        for file in reverted.files:
            state = (
                "left: changed since" if file["path"] in left else "removed" if file["before"] is None else "restored"
            )
            typer.echo(f"{file['path']}: {state}")
        if left:
            typer.echo("Files somebody changed since were left; --force puts them back too.")
    if left:
        raise typer.Exit(1)
