"""`leadline watch maintenance`: a time in which nobody is told."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from leadline.faces.cli.options import Json
from leadline.faces.cli.verbs.watch._common import Settings, incidents_of

EPILOG = """\
Examples:

  leadline watch maintenance "vm:db*" --minutes 60 --why "patch day" --settings watch.yaml

  leadline watch maintenance

  leadline watch maintenance --end 3
"""
NS_PER_MINUTE = 60_000_000_000


def command(
    pattern: Annotated[str, typer.Argument(help="Whom it concerns, such as vm:db*; nothing: list them.")] = "",
    *,
    minutes: Annotated[float, typer.Option(help="How long, from now.", min=0.1)] = 60.0,
    why: Annotated[str, typer.Option(help="What for.")] = "",
    end: Annotated[int | None, typer.Option(help="End the window of this number now.", show_default=False)] = None,
    settings: Settings = None,
    json: Json = False,
) -> None:
    """Tell nobody of incidents on some entities for a while; incidents are opened and kept all the same."""
    from leadline.core.model.finding import iso
    from leadline.faces.cli.output import print_json
    from leadline.stores.incidents import Maintenance

    kept, now_ns = incidents_of(settings), time.time_ns()
    if end is not None:
        kept.end_maintenance(end, now_ns)
    elif pattern:
        kept.add_maintenance(Maintenance(pattern, now_ns, now_ns + round(minutes * NS_PER_MINUTE), why))
    windows = kept.maintenance(now_ns)
    if json:
        rows = [
            {
                "number": one.id,
                "pattern": one.pattern,
                "start": iso(one.start_ns),
                "end": iso(one.end_ns),
                "why": one.why,
            }
            for one in windows
        ]
        print_json("leadline.maintenance/1", windows=rows)
        return
    for one in windows:
        typer.echo(f"{one.id}: {one.pattern} until {iso(one.end_ns)} {one.why}".rstrip())
    if not windows:
        typer.echo("No maintenance.")
