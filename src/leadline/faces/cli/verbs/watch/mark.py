"""`leadline watch mark`: tell the watch of a change, such as a deployment."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from leadline.faces.cli.verbs.watch._common import Settings, incidents_of

EPILOG = """\
Examples:

  leadline watch mark "orders 4.2 deployed" --settings watch.yaml

  leadline watch mark "index dropped" --entity database:orders --kind maintenance
"""


def command(
    text: Annotated[str, typer.Argument(help="What was changed.")],
    *,
    entity: Annotated[str, typer.Option(help="What it was done to, such as vm:db01.")] = "",
    kind: Annotated[str, typer.Option(help="What it was.")] = "deployment",
    settings: Settings = None,
) -> None:
    """Put a change on every time line: what else moved when it became slow."""
    from leadline.stores.incidents import Marker

    incidents_of(settings).mark(Marker(time.time_ns(), kind, entity, text))
    typer.echo(f"{kind}: {text}")
