"""`leadline lab list`: labs that run, and what killed ones left behind."""

from __future__ import annotations

import typer

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline lab list
"""


def command(*, json: Json = False) -> None:
    """Labs that run now, with their guests, and folders of labs that were killed."""
    from leadline.faces.cli.output import print_json
    from leadline.lab.folders import labs

    known_labs = labs()
    if json:
        plain = [
            {"lab": lab.path.name, "running": lab.is_running, "guests": [guest.name for guest in lab.guests]}
            for lab in known_labs
        ]
        print_json("leadline.labs/1", labs=plain)
        return
    if not known_labs:
        typer.echo("No lab runs. Start one: leadline lab run FILE")
    for lab in known_labs:
        state = "runs" if lab.is_running else "was killed; `leadline lab clean` removes it"
        typer.echo(f"{lab.path.name}  {state}: {', '.join(guest.name for guest in lab.guests)}")
