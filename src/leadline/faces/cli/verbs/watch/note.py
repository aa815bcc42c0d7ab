"""`leadline watch note`: say something of an incident."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from leadline.faces.cli.verbs.watch._common import Settings, author, incidents_of

EPILOG = """\
Examples:

  leadline watch note last "The batch job was started by hand." --settings watch.yaml

  leadline watch note last "I look at it." --take
"""


def command(
    incident: Annotated[str, typer.Argument(help="An id, its beginning or end, or last.")],
    text: Annotated[str, typer.Argument(help="What you say.")],
    *,
    take: Annotated[bool, typer.Option("--take", help="Take it on yourself: others see it is in hand.")] = False,
    settings: Settings = None,
) -> None:
    """Write a note to an incident, or take it on yourself."""
    from leadline.stores.incidents import Remark

    kept = incidents_of(settings)
    one = kept.get(incident)
    kept.remark(one.id, Remark(time.time_ns(), author(), text, take))
    typer.echo(f"{one.id}: {'taken by ' + author() if take else 'noted'}")
