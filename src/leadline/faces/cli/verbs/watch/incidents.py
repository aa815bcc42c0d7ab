"""`leadline watch incidents`: what was opened, and one of them whole."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json
from leadline.faces.cli.verbs.watch._common import Settings, incidents_of, show_incidents

EPILOG = """\
Examples:

  leadline watch incidents

  leadline watch incidents last

  leadline watch incidents --days 30 --json
"""
DAY_NS = 86_400 * 1_000_000_000


def command(
    incident: Annotated[str, typer.Argument(help="An id, its beginning or end, or last: show it whole.")] = "",
    *,
    days: Annotated[float, typer.Option(help="How far back.", min=0.01)] = 7.0,
    settings: Settings = None,
    json: Json = False,
) -> None:
    """List incidents, or show one: the answer, who took it, what else changed at that time, where its recording is."""
    from rich.text import Text

    from leadline.app.watch.state import incident_plain
    from leadline.faces.cli.output import console, print_json

    kept = incidents_of(settings)
    if not incident:
        now_ns = time.time_ns()
        listed = [incident_plain(one) for one in kept.between(now_ns - round(days * DAY_NS), now_ns)]
        if json:
            print_json("leadline.incidents/1", incidents=listed)
            return
        show_incidents(console(), listed, f"No incident in {days:g} days.")
        return
    one = kept.get(incident)
    plain = incident_plain(one)
    markers = kept.markers(one.opened_ns - 900 * 1_000_000_000, (one.closed_ns or time.time_ns()) + 1)
    if json:
        changes = [{"time_ns": m.time_ns, "kind": m.kind, "entity": m.entity, "text": m.text} for m in markers]
        print_json("leadline.incident/1", incident=plain, changes=changes)
        return
    from leadline.core.model.finding import iso

    out = console()
    until = "goes on" if one.closed_ns is None else f"until {plain['closed']}"
    out.print(Text(f"{one.id}: {one.severity.name.lower()}, since {plain['opened']}, {until}", style="bold"))
    out.print()
    out.print(Text(one.text))
    if markers:
        out.print()
        out.print(Text("Changed shortly before or meanwhile:"))
    for marker in markers:
        out.print(Text(f"  {iso(marker.time_ns)[11:19]} {marker.kind} {marker.entity}: {marker.text}"))
    for remark in plain["remarks"]:
        out.print(Text(f"  {remark['time'][11:19]} {remark['author']}: {remark['text']}"))
    if one.capture and Path(one.capture).is_file():
        out.print()
        out.print(Text(f"Recording: leadline diagnose {one.capture} --html report.html", style="dim"))
