"""`leadline watch check`: what a watch would collect."""

from __future__ import annotations

import typer

from leadline.faces.cli.options import Json
from leadline.faces.cli.verbs.watch._common import Settings, settings_of

EPILOG = """\
Examples:

  leadline watch check --settings watch.yaml

  leadline watch check --json
"""
TOOL_EXIT = 4


def command(*, settings: Settings = None, json: Json = False) -> None:
    """Try every source and say how much it would collect. Exit 4 when one does not work. Nothing is kept."""
    from rich.text import Text

    from leadline.app.watch.checking import checked
    from leadline.faces.cli.output import console, print_json

    chosen = settings_of(settings)
    out = console()
    sources = []
    for source in checked(chosen):
        sources.append(source)
        if json:
            continue
        if source.error:
            out.print(Text(f"{source.name} ({source.kind}): does not work. {source.error}", style="red"))
        else:
            every = f"{source.name} ({source.kind}, every {source.every_s:g} s)"
            amount = f"{source.samples_per_s:,.0f} samples/s, about {source.gb_a_month:,.2f} GB a month"
            out.print(Text(f"{every}: {source.series_count:,} series, {amount}"))
        for note in source.notes:
            out.print(Text(f"  {note}", style="dim"))
    if json:
        rows = [
            {
                "name": one.name,
                "kind": one.kind,
                "every_s": one.every_s,
                "series": one.series_count,
                "samples_per_s": one.samples_per_s,
                "gb_a_month": one.gb_a_month,
                "error": one.error,
                "notes": list(one.notes),
            }
            for one in sources
        ]
        print_json("leadline.watch-check/1", store=str(chosen.store.path()), sources=rows)
    else:
        days = chosen.store.raw_days
        stored_gb = sum(one.gb_a_month for one in sources) * days / 30
        out.print(Text(f"Store {chosen.store.path()}: {stored_gb:,.2f} GB for {days:g} days"))
        names = ", ".join(one.name for one in chosen.tell) or "nobody; add a list `tell`"
        out.print(Text(f"Told: {names}"))
    if any(one.error for one in sources):
        raise typer.Exit(TOOL_EXIT)
